#include "sluice/train/callbacks/freeze.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"

namespace sluice::train {
namespace {

bool is_meant(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0 ||
         ::fnmatch((pattern + ".*").c_str(), name.c_str(), 0) == 0;
}

// Returns the names of the parameters, and of the modules that contain them.
std::vector<std::string> names_of(const torch::nn::Module& module) {
  std::set<std::string> names;
  for (const auto& item : module.named_parameters())
    for (size_t end = item.key().find('.');; end = item.key().find('.', end + 1)) {
      names.insert(item.key().substr(0, end));
      if (end == std::string::npos) break;
    }
  return {names.begin(), names.end()};
}

[[noreturn]] void refuse(const std::string& pattern, const torch::nn::Module& module) {
  const std::vector<std::string> names = names_of(module);
  const std::string plain = base::ends_with(pattern, ".*") ? pattern.substr(0, pattern.size() - 2) : pattern;
  const std::string near = base::nearest(plain, names);
  std::vector<std::string> outer;
  for (const std::string& name : names)
    if (name.find('.') == std::string::npos) outer.push_back(name);
  throw_error(Code::kInvalidArgument, base::str("to freeze '", pattern, "': no parameter has such a name",
                                                near.empty() ? "" : base::str("; the nearest is ", near),
                                                "; the model is made of ", base::join(outer, ", ")));
}

}  // namespace

Freeze::Freeze(FreezeOptions options) : options_(std::move(options)) {
  if (options_.names.empty() || options_.epochs < 0)
    throw_error(
        Code::kInvalidArgument,
        base::str("to freeze parameters needs at least one name and 0 (for ever) or more epochs, not ",
                  options_.names.size(), " and ", options_.epochs));
}

void Freeze::find(const torch::nn::Module& module) {
  parameters_.clear();
  std::set<std::string> unused(options_.names.begin(), options_.names.end());
  bool any_left = false;
  for (const auto& item : module.named_parameters()) {
    bool meant = false;
    for (const std::string& pattern : options_.names) {
      if (!is_meant(pattern, item.key())) continue;
      meant = true;
      unused.erase(pattern);
    }
    if (!item.value().requires_grad()) continue;
    if (meant) parameters_.push_back(item.value());
    any_left = any_left || !meant;
  }
  if (!unused.empty()) refuse(*unused.begin(), module);
  if (!any_left)
    throw_error(Code::kInvalidArgument, base::str("to freeze ", base::join(options_.names, ", "),
                                                  " leaves no parameter that would be trained"));
}

void Freeze::set_frozen(bool frozen) {
  for (torch::Tensor& parameter : parameters_) parameter.requires_grad_(!frozen);
}

void Freeze::before_optimizers(Run& run) {
  find(run.module());
  if (options_.epochs == 0) set_frozen(true);
}

void Freeze::begin(Run& run) { before_epoch(run); }

void Freeze::before_epoch(Run& run) {
  if (options_.epochs > 0) set_frozen(run.place().epoch < static_cast<double>(options_.epochs));
}

void Freeze::end(Run&) {
  set_frozen(false);
  parameters_.clear();
}

}  // namespace sluice::train
