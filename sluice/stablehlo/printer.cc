// Operations as text, and the module around them.
#include <algorithm>
#include <cctype>

#include "sluice/stablehlo/builder/impl.h"

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

void Builder::Impl::append_name(std::string& text, Value v) const {
  const ValueInfo& found = info(v);
  text += found.kind == 'p' ? "%arg" : found.kind == 'b' ? "%b" : "%";
  append_number(text, found.number);
}

void Builder::Impl::append_location(std::string& text, int number) const {
  const std::string& name = locations[static_cast<size_t>(number)].name;
  if (name.empty()) return;
  text += " loc(";
  text += quoted(name);
  text += ')';
}

void Builder::Impl::append_names(std::string& text, std::span<const Value> list) const {
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) text += ", ";
    append_name(text, list[i]);
  }
}

void Builder::Impl::append_types(std::string& text, std::span<const TypeEntry* const> list) const {
  text += '(';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) text += ", ";
    text += list[i]->text;
  }
  text += ')';
}

void Builder::Impl::append_signature(std::string& text, std::span<const Value> operands,
                                     std::span<const Value> results) const {
  const auto append = [&](std::span<const Value> list) {
    text += '(';
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) text += ", ";
      text += entry(list[i])->text;
    }
    text += ')';
  };
  text += " : ";
  append(operands);
  text += " -> ";
  if (results.size() == 1) {
    text += entry(results[0])->text;
  } else {
    append(results);
  }
}

void Builder::Impl::append_operation(std::string& text, const Operation& op, size_t depth) const {
  text.append(2 * depth, ' ');
  append_names(text, op.results);
  text += op.results.empty() ? "\"" : " = \"";
  text += op.name;
  text += "\"(";
  append_names(text, op.operands);
  text += ')';
  for (size_t i = 0; i < op.bodies.size(); ++i) {
    text += i == 0 ? " ({\n" : "}, {\n";
    append_block(text, op.bodies[i], depth, op.is(kManual) ? "sdy.return" : "stablehlo.return");
    text.append(2 * depth, ' ');
  }
  if (!op.bodies.empty()) text += "})";
  text += op.attributes.text();
  append_signature(text, op.operands, op.results);
  if (op.named) append_location(text, op.location);
  text += '\n';
}

// Appends a region's block inside an operation of this depth.
void Builder::Impl::append_block(std::string& text, const Block& block, size_t depth,
                                 std::string_view ending) const {
  if (!block.arguments.empty()) {
    text.append(2 * depth, ' ');
    text += "^bb0(";
    for (size_t i = 0; i < block.arguments.size(); ++i) {
      if (i > 0) text += ", ";
      append_name(text, block.arguments[i]);
      text += ": ";
      text += entry(block.arguments[i])->text;
    }
    text += "):\n";
  }
  for (const auto& op : block.operations) append_operation(text, *op, depth + 1);
  text.append(2 * depth + 2, ' ');
  text += base::str('"', ending, "\"(");
  append_names(text, block.results);
  text += ')';
  append_signature(text, block.results, {});
  if (block.named) append_location(text, block.location);
  text += '\n';
}

std::string Builder::finish(std::span<const Value> results, std::span<const Donation> donations,
                            int num_replicas, std::string_view module_name) {
  Impl& self = *impl_;
  if (self.finished) throw_error(Code::kFailedPrecondition, "finish: the program is finished already");
  if (self.scopes.size() != 1) {
    throw_error(Code::kFailedPrecondition, "finish: called inside a region's body");
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

  const Operations& body = self.scopes.back().block.operations;
  std::string text;
  text.reserve(128 * (body.size() + self.parameters.size() + results.size()) + 256);
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
  for (const auto& op : body) self.append_operation(text, *op, 2);
  text += "    \"func.return\"(";
  self.append_names(text, results);
  text += ") : ";
  self.append_types(text, types);
  text += " -> ()\n  }\n}\n";
  return text;
}

}  // namespace sluice::stablehlo
