// Matches the update of a weight (updates.h) whose gradient is a product of matrices that nothing else reads.
// Makes one call of "sluice_product_update" (stablehlo/kernel_library.h): rows of the gradient are made, used
// while they are in the L2 cache, and never written to memory. Values that are computed from the weight
// before it is overwritten, such as the gradient of the layer's input, become operands that the kernel
// ignores: they are thus computed first, and XLA copies nothing.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "sluice/patterns/products/product_call.h"
#include "sluice/patterns/updates.h"

namespace sluice::patterns {
namespace {

using stablehlo::Rewriter;
using Readers = std::unordered_map<int32_t, std::vector<const Operation*>>;  // by value

// Returns whether the operation makes one tensor of one: mostly a view.
bool has_one_operand(const Operation& op) { return op.operands.size() == 1 && op.results.size() == 1; }

class Finder {
 public:
  Finder(const Rewriter& r, const Update& update)
      : r_(r), own_(update.operations.begin(), update.operations.end()) {
    for (const auto& op : r.operations())
      stablehlo::for_operands(*op, [&](Value v) { readers_[v.id()].push_back(op.get()); });
    for (const Value v : r.results()) results_.insert(v.id());
  }

  // Returns whether nothing but views and the update's operations reads a value.
  bool is_only_for_update(Value v) const {
    return !results_.contains(v.id()) && std::all_of(of(v).begin(), of(v).end(), [&](const Operation* op) {
      return own_.contains(op) || (has_one_operand(*op) && is_only_for_update(op->results[0]));
    });
  }

  // Returns the value that v is a view of.
  Value source(Value v) const {
    for (const Operation* op = r_.maker(v); op != nullptr && has_one_operand(*op); op = r_.maker(v))
      v = op->operands[0];
    return v;
  }

  // Returns the operations from which a value is computed.
  std::unordered_set<const Operation*> needed_by(Value v) const {
    std::unordered_set<const Operation*> needed;
    std::vector<Value> open = {v};
    while (!open.empty()) {
      const Operation* const op = r_.maker(open.back());
      open.pop_back();
      if (op != nullptr && needed.insert(op).second)
        stablehlo::for_operands(*op, [&](Value operand) { open.push_back(operand); });
    }
    return needed;
  }

  // Collects results of the readers of v and of its views, except the operations in `needed`: they must be
  // computed before v's memory is overwritten. If only one operation reads such a result, its result is taken
  // instead: the compiler may fuse the two.
  void collect_before(const std::unordered_set<const Operation*>& needed, Value v, Values& before) const {
    for (const Operation* reader : of(v)) {
      if (own_.contains(reader) || needed.contains(reader)) continue;
      if (has_one_operand(*reader) && !of(reader->results[0]).empty()) {
        collect_before(needed, reader->results[0], before);
        continue;
      }
      const Operation* last = reader;
      while (const Operation* next = only_reader(*last)) {
        if (own_.contains(next)) break;
        last = next;
        if (!has_one_operand(*last)) break;
      }
      if (std::find(before.begin(), before.end(), last->results[0]) == before.end())
        before.push_back(last->results[0]);
    }
  }

 private:
  const std::vector<const Operation*>& of(Value v) const {
    static const std::vector<const Operation*> kNone;
    const auto found = readers_.find(v.id());
    return found == readers_.end() ? kNone : found->second;
  }
  const Operation* only_reader(const Operation& op) const {
    if (op.results.size() != 1 || results_.contains(op.results[0].id())) return nullptr;
    const auto& all = of(op.results[0]);
    return all.size() == 1 ? all[0] : nullptr;
  }

  const Rewriter& r_;
  std::unordered_set<const Operation*> own_;
  Readers readers_;
  std::unordered_set<int32_t> results_;
};

Values call(Rewriter& r, const UpdateCode& code, const Update& update, size_t gradient,
            const Product& product, const Values& before) {
  Values operands;
  for (size_t i = 0; i < update.tensors.size(); ++i)
    if (i != gradient) operands.push_back(update.tensors[i]);
  operands.insert(operands.end(), update.units.begin(), update.units.end());
  if (code.numbers > 0) operands.push_back(update.vector);
  operands.insert(operands.end(), {product.a, product.b});
  operands.insert(operands.end(), before.begin(), before.end());
  std::vector<Type> results;
  for (size_t i = 0; i < update.results.size(); ++i) results.push_back(operands[i].type());
  return call_on_rows(r.b, stablehlo::ProductCall::kUpdateTarget, operands, results,
                      {{"code", code.to_words()},
                       {"numbers", update.numbers},
                       {"product", static_cast<int64_t>(gradient)},
                       {"transposed_a", int64_t{product.transposed_a}},
                       {"transposed_b", int64_t{product.transposed_b}}},
                      /*in_place=*/results.size());
}

}  // namespace

Values update_in_product(Rewriter& r, const stablehlo::KernelLibrary& kernels, const UpdateCode& code,
                         const Update& update) {
  const size_t results = code.results.size();
  for (size_t i = results; i < update.tensors.size(); ++i) {
    const Value made = r.before_reshapes(update.tensors[i]);
    const auto product = product_of(r, made);
    if (!product || product->bias || product->matrix || product->result.rank() != 2) continue;
    if (!kernels.has_with_update({.m = product->result.dims[0],
                                  .k = product->a.dim(product->transposed_a ? 0 : 1),
                                  .n = product->result.dims[1],
                                  .transposed_a = product->transposed_a,
                                  .transposed_b = product->transposed_b}))
      continue;
    const Finder finder(r, update);
    const Value source = finder.source(update.tensors[i]);
    if (!finder.is_only_for_update(source)) continue;
    const auto needed = finder.needed_by(source);
    Values before;
    for (size_t p = 0; p < results; ++p) finder.collect_before(needed, update.tensors[p], before);
    r.name_as(*r.maker(made));
    return call(r, code, update, i, *product, before);
  }
  return {};
}

}  // namespace sluice::patterns
