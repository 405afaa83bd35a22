#include "sluice/device/product_updates.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "sluice/ops/fusions.h"
#include "sluice/ops/kernel_operands.h"

namespace sluice::device {

// A namespace of its own: this room is built in unity files.
namespace product_updates_detail {

using Nodes = std::vector<uint32_t>;

// Who reads what in a plan.
class Readers {
 public:
  Readers(const Trace& trace, const Plan& plan)
      : trace_(trace), of_node_(trace.nodes.size()), is_output_(trace.nodes.size(), false) {
    for (uint32_t number : plan.nodes)
      for (size_t k = 0; k < operands(number); ++k) {
        const Ref ref = input(number, k);
        (ref.leaf() ? of_leaf_[ref.node] : of_node_[ref.node]).push_back(number);
      }
    for (Ref output : plan.outputs) is_output_[output.node] = true;
  }

  size_t operands(uint32_t node) const { return trace_.nodes[node].instance->operands.size(); }
  Ref input(uint32_t node, size_t k) const { return trace_.inputs[trace_.nodes[node].first_input + k]; }
  // One tensor made of one: a view, mostly.
  bool has_one_operand(uint32_t node) const {
    return operands(node) == 1 && trace_.nodes[node].instance->results.size() == 1;
  }
  const Nodes& of_node(uint32_t node) const { return of_node_[node]; }
  const Nodes& of_leaf(uint32_t leaf) const { return of_leaf_.at(leaf); }
  bool is_output(uint32_t node) const { return is_output_[node]; }

  // What a value is a view of.
  uint32_t source(uint32_t node) const {
    while (has_one_operand(node) && !input(node, 0).leaf()) node = input(node, 0).node;
    return node;
  }

  // [node]: whether `end` needs it.
  std::vector<bool> needed_by(uint32_t end) const {
    std::vector<bool> needed(of_node_.size(), false);
    needed[end] = true;
    for (uint32_t node = end + 1; node-- > 0;)
      for (size_t k = 0; needed[node] && k < operands(node); ++k)
        if (const Ref ref = input(node, k); !ref.leaf()) needed[ref.node] = true;
    return needed;
  }

 private:
  const Trace& trace_;
  std::vector<Nodes> of_node_;
  std::unordered_map<uint32_t, Nodes> of_leaf_;
  std::vector<bool> is_output_;
};

// Whether nothing but views and an update's nodes reads a value.
bool is_only_for(const Readers& readers, const std::unordered_set<uint32_t>& update, uint32_t node) {
  const Nodes& all = readers.of_node(node);
  return !readers.is_output(node) && std::all_of(all.begin(), all.end(), [&](uint32_t reader) {
    return update.contains(reader) ||
           (readers.has_one_operand(reader) && is_only_for(readers, update, reader));
  });
}

// Collects the nodes among these readers, and among those of their views, that the gradient does not need:
// they must be done before an update overwrites what they read. Where a single node goes on with what such a
// one makes, that one is taken: the two may be lowered together.
void collect_before(const Readers& readers, const std::unordered_set<uint32_t>& update,
                    const std::vector<bool>& needed, const Nodes& all, Nodes& before) {
  for (uint32_t reader : all) {
    if (update.contains(reader) || needed[reader]) continue;
    if (readers.has_one_operand(reader) && !readers.of_node(reader).empty()) {
      collect_before(readers, update, needed, readers.of_node(reader), before);
      continue;
    }
    uint32_t last = reader;
    while (!readers.is_output(last) && readers.of_node(last).size() == 1) {
      const uint32_t next = readers.of_node(last)[0];
      if (update.contains(next)) break;
      last = next;
      if (!readers.has_one_operand(last)) break;
    }
    if (std::find(before.begin(), before.end(), last) == before.end()) before.push_back(last);
  }
}

// Where a product by a kernel made the value, perhaps in other dims: the product, and its dims.
std::optional<std::pair<ops::Product, stablehlo::Dims>> product_of(stablehlo::Builder& b,
                                                                   const ops::Fusions& notes,
                                                                   stablehlo::Value value) {
  for (; value; value = b.reshaped_from(value))
    if (const auto found = notes.products.find(value.id()); found != notes.products.end())
      return std::pair(found->second, value.dims());
  return {};
}

}  // namespace product_updates_detail

ProductUpdates::ProductUpdates(const Trace& trace, const Plan& plan, std::vector<UpdateGroup>& groups) {
  using namespace product_updates_detail;
  if (groups.empty()) return;
  const Readers readers(trace, plan);
  for (UpdateGroup& group : groups) {
    const size_t results = group.code.results.size();
    for (Update& update : group.members) {
      const std::unordered_set<uint32_t> own(update.nodes.begin(), update.nodes.end());
      for (size_t i = results; i < update.tensors.size(); ++i) {
        const Ref gradient = update.tensors[i];
        if (gradient.leaf() || gradient.output != 0) continue;
        const uint32_t source = readers.source(gradient.node);
        if (!is_only_for(readers, own, source)) continue;
        Candidate candidate = {&group.code, &update, i, {}};
        const std::vector<bool> needed = readers.needed_by(source);
        for (size_t leaf = 0; leaf < results; ++leaf)
          collect_before(readers, own, needed, readers.of_leaf(update.tensors[leaf].node), candidate.before);
        uint32_t last = gradient.node;
        for (const auto* refs : {&update.tensors, &update.units})
          for (Ref ref : *refs)
            if (!ref.leaf()) last = std::max(last, ref.node);
        for (uint32_t reader : candidate.before) last = std::max(last, reader);
        candidates_.emplace(last, std::move(candidate));
      }
    }
  }
}

void ProductUpdates::lower_at(uint32_t node, stablehlo::Builder& b, ops::Slots& slots,
                              const std::function<stablehlo::Value(Ref)>& value_of, stablehlo::Value numbers,
                              std::vector<stablehlo::Values>& values) const {
  const auto [first, end] = candidates_.equal_range(node);
  for (auto at = first; at != end; ++at)
    if (!at->second.update->lowered) lower(at->second, b, slots, value_of, numbers, values);
}

void ProductUpdates::lower(const Candidate& candidate, stablehlo::Builder& b, ops::Slots& slots,
                           const std::function<stablehlo::Value(Ref)>& value_of, stablehlo::Value numbers,
                           std::vector<stablehlo::Values>& values) {
  const auto& [code, update, gradient, before] = candidate;
  ops::Fusions& notes = *slots.fusions();
  const auto found = product_updates_detail::product_of(b, notes, value_of(update->tensors[gradient]));
  if (!found) return;
  const auto& [product, dims] = *found;
  if (product.bias || dims.size() != 2 ||
      !slots.kernels()->has_with_update({.m = dims[0],
                                         .k = product.a.dim(product.transposed_a ? 0 : 1),
                                         .n = dims[1],
                                         .transposed_a = product.transposed_a,
                                         .transposed_b = product.transposed_b}))
    return;

  stablehlo::Values operands;
  for (size_t i = 0; i < update->tensors.size(); ++i)
    if (i != gradient) operands.push_back(value_of(update->tensors[i]));
  for (Ref unit : update->units) operands.push_back(value_of(unit));
  if (code->numbers > 0) operands.push_back(numbers);
  operands.insert(operands.end(), {product.a, product.b});
  for (uint32_t reader : before) {
    const auto& made = values[reader];
    const auto any = std::find_if(made.begin(), made.end(), [](stablehlo::Value v) { return bool(v); });
    if (any == made.end()) return;
    operands.push_back(*any);
    ++notes.readers[any->id()];  // so that it stays what is made
  }
  std::vector<stablehlo::Type> results;
  for (size_t i = 0; i < update->results.size(); ++i) results.push_back(operands[i].type());
  stablehlo::CallOptions options{.in_place = true, .pure = true};
  for (const auto operand : operands) options.operand_layouts.push_back(ops::rows_layout(operand.rank()));
  for (const auto& type : results) options.result_layouts.push_back(ops::rows_layout(type.rank()));
  const stablehlo::Values updated = b.custom_call(stablehlo::ProductCall::kUpdateTarget, operands, results,
                                                  {{"code", code->to_words()},
                                                   {"numbers", stablehlo::Dims(update->numbers)},
                                                   {"product", static_cast<int64_t>(gradient)},
                                                   {"transposed_a", int64_t{product.transposed_a}},
                                                   {"transposed_b", int64_t{product.transposed_b}}},
                                                  options);
  for (size_t i = 0; i < updated.size(); ++i) values[update->results[i]] = {updated[i]};
  update->lowered = true;
}

}  // namespace sluice::device
