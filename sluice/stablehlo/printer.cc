// The module around main's operations.
#include <algorithm>
#include <cctype>

#include "sluice/stablehlo/builder_impl.h"

namespace sluice::stablehlo {
namespace {

void check_module_name(std::string_view name) {
  const bool plain =
      !name.empty() && (std::isalpha(static_cast<unsigned char>(name[0])) != 0 || name[0] == '_') &&
      std::all_of(name.begin(), name.end(),
                  [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '$'; });
  if (!plain) {
    reject("finish",
           "a module's name is letters, digits, '_', '.' and '$', beginning with a letter or '_'; found \"",
           name, "\"");
  }
}

}  // namespace

std::string Builder::finish(std::span<const Value> results, std::span<const Donation> donations,
                            int num_replicas, std::string_view module_name) {
  Impl& self = *impl_;
  if (self.finished) throw Error(Code::kFailedPrecondition, "finish: the program is finished already");
  if (self.scopes.size() != 1) {
    throw Error(Code::kFailedPrecondition, "finish: called inside a region's body");
  }
  self.use("finish", results);
  check_module_name(module_name);
  if (num_replicas < 1) reject("finish", "there must be at least one replica, found ", num_replicas);
  if (!donations.empty() && donations.size() != self.parameters.size()) {
    reject("finish", "donations must be empty or have one entry a parameter (", self.parameters.size(),
           "), found ", donations.size());
  }
  std::vector<bool> taken(results.size(), false);
  for (size_t i = 0; i < donations.size(); ++i) {
    if (donations[i].kind != Donation::Kind::kAliasOutput) continue;
    const int32_t output = donations[i].output;
    if (output < 0 || static_cast<size_t>(output) >= results.size()) {
      reject("finish", "parameter ", i, " is donated to output ", output, ", but there are ", results.size());
    }
    const TypeEntry* from = self.entry(self.parameters[i]);
    const TypeEntry* to = self.entry(results[static_cast<size_t>(output)]);
    if (from->type.bytes() != to->type.bytes()) {
      reject("finish", "parameter ", i, " (", from->text, ") is donated to output ", output, " (", to->text,
             "), which has another size");
    }
    if (taken[static_cast<size_t>(output)]) reject("finish", "two parameters are donated to output ", output);
    taken[static_cast<size_t>(output)] = true;
  }
  self.finished = true;

  const std::string& body = self.scopes.back().text;
  std::string text;
  text.reserve(body.size() + 256 + 64 * (self.parameters.size() + 2 * results.size()));
  text += base::str("module @", module_name, " attributes {mhlo.num_replicas = ", num_replicas,
                    " : i32, mhlo.num_partitions = 1 : i32} {\n  func.func public @main(");
  for (size_t i = 0; i < self.parameters.size(); ++i) {
    if (i > 0) text += ", ";
    self.append_name(text, self.parameters[i]);
    text += ": ";
    text += self.entry(self.parameters[i])->text;
    if (donations.empty()) continue;
    if (donations[i].kind == Donation::Kind::kAliasOutput) {
      text += base::str(" {tf.aliasing_output = ", donations[i].output, " : i32}");
    } else if (donations[i].kind == Donation::Kind::kDonor) {
      text += " {jax.buffer_donor = true}";
    }
  }
  text += ") -> ";
  std::vector<const TypeEntry*> types;
  types.reserve(results.size());
  for (Value v : results) types.push_back(self.entry(v));
  self.append_types(text, types);
  text += " {\n";
  text += body;
  text += "    \"func.return\"(";
  self.append_names(text, results);
  text += ") : ";
  self.append_types(text, types);
  text += " -> ()\n  }\n}\n";
  return text;
}

}  // namespace sluice::stablehlo
