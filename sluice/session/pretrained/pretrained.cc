#include "sluice/session/pretrained/pretrained.h"

#include <algorithm>
#include <functional>
#include <set>

#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/session/pretrained/weight_files.h"

namespace sluice {

namespace pretrained_detail {

// Replaces the folder's heads in `tensors` by the model's own head.
void replace_head(const models::LanguageModel& model, sessions::NamedTensors& tensors) {
  const std::string body = models::body_prefix(model.options());
  const auto is_of_body = [&body](const auto& named) { return base::starts_with(named.first, body); };
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(), std::not_fn(is_of_body)), tensors.end());
  for (auto& named : sessions::module_tensors(model))
    if (!is_of_body(named)) tensors.push_back(std::move(named));
}

// Checks that the folder has the model's head, and not only another one (for questions, for classes of
// tokens, …). load_module() reports the tensors of a head that are missing.
void check_head(const models::LanguageModel& model, const sessions::NamedTensors& tensors,
                const std::string& folder) {
  const std::string body = models::body_prefix(model.options());
  std::set<std::string> own, others;
  for (const auto& [name, tensor] : sessions::module_tensors(model))
    if (!base::starts_with(name, body)) own.insert(name);
  bool has_head = own.empty();
  for (const auto& [name, tensor] : tensors) {
    if (base::starts_with(name, body)) continue;
    if (own.count(name) > 0)
      has_head = true;
    else
      others.insert(name);
  }
  if (has_head) return;
  const char* const head = model.options().classes > 0 ? "classes" : "words";
  throw_error(
      Code::kInvalidArgument,
      base::str(folder, " has no head of ", head, " (", *own.begin(), " …), but ",
                others.empty() ? "only the body"
                               : base::str("another head (", *others.begin(), " …), which is not known"),
                ": take a folder of a model for causal or masked language modelling or for the "
                "classification of sequences, or give its body a fresh head of classes (--task "
                "classify, PretrainedOptions::new_classes)"));
}

}  // namespace pretrained_detail

models::LanguageModelPtr load_pretrained(const std::string& folder, const PretrainedOptions& how) {
  const std::string config = base::join_path(folder, "config.json");
  models::LanguageOptions options =
      models::parse_language_config(base::value_or_throw(base::read_file(config)), config);
  sessions::NamedTensors tensors =
      models::with_own_names(options, base::value_or_throw(sessions::read_weight_files(folder)));
  if (how.new_classes > 0) {
    if (options.classes != how.new_classes) options.labels.clear();
    options.classes = how.new_classes;
  }
  options.recompute = how.recompute;
  models::LanguageModelPtr model = models::language_model(options);
  if (how.new_classes > 0)
    pretrained_detail::replace_head(*model, tensors);
  else
    pretrained_detail::check_head(*model, tensors, folder);
  base::value_or_throw(sessions::load_module(*model, tensors, folder));
  return model;
}

void save_pretrained(const models::LanguageModel& model, const std::string& folder) {
  sessions::NamedTensors tensors = sessions::module_tensors(model);
  for (auto& [name, tensor] : tensors) tensor = tensor.detach().cpu();
  base::value_or_throw(base::make_directories(folder));
  base::value_or_throw(sessions::write_safetensors(base::join_path(folder, "model.safetensors"), tensors));
  base::value_or_throw(base::write_file_atomically(base::join_path(folder, "config.json"),
                                                   models::language_config(model.options())));
}

}  // namespace sluice
