// A program as a sequence of symbols.
#include <algorithm>
#include <array>

#include "sluice/patterns/loops/loop_plan.h"

namespace sluice::patterns {
namespace {

using stablehlo::Block;
using stablehlo::Dims;
using stablehlo::Operation;
using stablehlo::Value;
using stablehlo::Values;

void append_type(std::string& key, Value v) {
  if (!v) return key.push_back('-');  // a missing operand of a composite
  const stablehlo::Type& type = v.type();
  key += static_cast<char>('A' + static_cast<int>(type.dtype));
  for (const int64_t dim : type.dims) key.append(std::to_string(dim)).push_back('x');
  key += ';';
}

// Returns the attributes without places that may move, and without the number that identifies a kernel's call
// in a profile.
std::string fixed_attributes(const Operation& op) {
  const auto text = [](const Dims& dims) {
    std::string text;
    for (const int64_t dim : dims) text.append(std::to_string(dim)).push_back(',');
    return text;
  };
  if (op.is("stablehlo.slice")) {
    Dims sizes = op.attributes.list("limit_indices");
    const Dims start = op.attributes.list("start_indices");
    for (size_t i = 0; i < sizes.size(); ++i) sizes[i] -= start[i];
    return text(sizes) + "/" + text(op.attributes.list("strides"));
  }
  if (op.is("stablehlo.pad")) {
    const Dims low = op.attributes.list("edge_padding_low"), high = op.attributes.list("edge_padding_high");
    const auto negative = [](int64_t edge) { return edge < 0; };
    if (std::none_of(low.begin(), low.end(), negative) && std::none_of(high.begin(), high.end(), negative))
      return text(op.attributes.list("interior_padding"));
  }
  std::string all = op.attributes.text();
  const size_t recorded = all.find("recorded = ");
  if (op.is("stablehlo.custom_call") && recorded != std::string::npos)
    all.erase(recorded, all.find(" : i64", recorded) - recorded);
  return all;
}

// Appends the properties that operations with one symbol share. local: the values inside the enclosing
// bodies.
void append_operation(std::string& key, const Operation& op, bool in_body,
                      std::unordered_map<int32_t, size_t>& local) {
  key.append(op.name).push_back('(');
  for (Value v : op.operands) append_type(key, v);
  key += ')';
  for (Value v : op.results) append_type(key, v);
  key += in_body ? op.attributes.text() : fixed_attributes(op);
  for (const Block& body : op.bodies) {
    key += '{';
    for (Value v : body.arguments) local.emplace(v.id(), local.size());
    const auto append_values = [&](const Values& values) {
      for (Value v : values) {
        const auto found = local.find(v.id());
        key.append(found == local.end() ? "outside" : std::to_string(found->second)).push_back(',');
      }
    };
    for (const auto& inner : body.operations) {
      append_operation(key, *inner, true, local);
      append_values(inner->operands);
      for (Value v : inner->results) local.emplace(v.id(), local.size());
    }
    append_values(body.results);
    key += '}';
  }
}

void append_seen(const Block& body, std::unordered_map<int32_t, bool>& inside, Values& seen) {
  for (Value v : body.arguments) inside[v.id()] = true;
  for (const auto& op : body.operations) {
    for (Value v : op->operands)
      if (!inside.contains(v.id())) seen.push_back(v);
    for (const Block& inner : op->bodies) append_seen(inner, inside, seen);
    for (Value v : op->results) inside[v.id()] = true;
  }
  for (Value v : body.results)
    if (!inside.contains(v.id())) seen.push_back(v);
}

}  // namespace

Values operands_of(const Operation& op) {
  Values all = op.operands;
  std::unordered_map<int32_t, bool> inside;
  for (const Block& body : op.bodies) append_seen(body, inside, all);
  return all;
}

Sequence::Sequence(const stablehlo::Rewriter& r) {
  std::unordered_map<std::string, uint32_t> known;
  uint32_t next = 0;
  std::string key;
  for (const auto& op : r.operations()) {
    for (size_t i = 0; i < op->results.size(); ++i) {
      const auto id = static_cast<size_t>(op->results[i].id());
      if (id >= places_.size()) places_.resize(id + 1);
      if (op->is("stablehlo.constant")) continue;
      places_[id] = {static_cast<int32_t>(operations_.size()), static_cast<uint32_t>(i)};
    }
    if (op->is("stablehlo.constant")) continue;
    operations_.push_back(op.get());
    if (!op->removable) {
      symbols_.push_back(next++);
      continue;
    }
    key.clear();
    std::unordered_map<int32_t, size_t> local;
    append_operation(key, *op, false, local);
    const auto [found, added] = known.try_emplace(key, next);
    if (added) ++next;
    symbols_.push_back(found->second);
  }
}

}  // namespace sluice::patterns
