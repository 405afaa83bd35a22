// Matches dot_general of two matrices, [m, k] and [k, n], or of two batches of them, for which the target has
// a kernel. Makes "sluice_product" (stablehlo/kernel_library.h). A transposed operand is read as it is in
// memory: the transpose is an attribute of the call. In the body of a loop the transpose stays, because it is
// made once before the loop.
#include <utility>

#include "sluice/patterns/products/product_call.h"
#include "sluice/patterns/table.h"

namespace sluice::patterns {
namespace {

// Returns x with its last two dimensions swapped, if a transpose made it from a tensor whose last dimension
// is x's last but one: without that transpose the dimension is contiguous in memory. Else empty.
Value with_rows_together(Rewriter& r, Value x) {
  const Operation* const transpose = r.made_by(x, "stablehlo.transpose");
  if (transpose == nullptr) return {};
  const Value operand = transpose->operands[0];
  Dims permutation = transpose->attributes.list("permutation");
  int64_t& last_but_one = permutation[permutation.size() - 2];
  if (last_but_one != operand.rank() - 1) return {};
  std::swap(last_but_one, permutation.back());
  return r.b.transpose(operand, permutation);
}

// Returns whether the last dimension of the left operand meets the last but one of the right one, and all
// earlier ones are batches.
bool is_product_of_matrices(const Operation& op) {
  const int64_t rank = op.operands[0].rank();
  if (rank < 2 || rank > 3 || op.operands[1].rank() != rank) return false;
  const Dims batch = rank == 3 ? Dims{0} : Dims{};
  return op.attributes.list("lhs_batch") == batch && op.attributes.list("rhs_batch") == batch &&
         op.attributes.list("lhs_contract") == Dims{rank - 1} &&
         op.attributes.list("rhs_contract") == Dims{rank - 2};
}

}  // namespace

void product(Rewriter& r, const KernelLibrary& kernels) {
  const auto pattern = [&](const Operation& op, bool in_loop) -> Values {
    if (!op.is("stablehlo.dot_general") || !is_product_of_matrices(op)) return {};
    const Value a = op.operands[0], b = op.operands[1];
    if (!all_f32({a, b, op.results[0]})) return {};
    const int64_t rank = a.rank();
    stablehlo::ProductCall call{
        .batch = rank == 3 ? a.dim(0) : 1, .m = a.dim(rank - 2), .k = a.dim(rank - 1), .n = b.dim(rank - 1)};
    Product found{.a = a, .b = b, .bias = {}, .matrix = {}, .result = op.results[0].type()};
    if (!in_loop) {
      if (const Value swapped = with_rows_together(r, a)) found.a = swapped, found.transposed_a = true;
      if (const Value swapped = with_rows_together(r, b)) found.b = swapped, found.transposed_b = true;
    }
    call.transposed_a = found.transposed_a;
    call.transposed_b = found.transposed_b;
    return kernels.has(call) ? Values{call_product(r.b, found)} : Values{};
  };
  r.each([&](const Operation& op) { return pattern(op, false); });
  // The steps of recurrent layers. A transpose before the loop runs once, not in each step.
  r.each_in_loops([&](const Operation& op) { return pattern(op, true); });
}

}  // namespace sluice::patterns
