// x[i, :, j]: one gather or scatter for any combination of index tensors and full slices.
//
// Reading through a boolean mask would give a result whose shape depends on values, which a compiled program
// cannot have, so it is left to the CPU (kUnimplemented). Writing under a mask is a select: the n-th chosen
// place takes the n-th value. If there are fewer values, LibTorch raises; here the last value is used again.
#include <algorithm>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/ops/indexing/index.h"
#include "sluice/ops/indexing/indexing.h"

namespace sluice::ops::index {
namespace {

bool is_mask(Value index) { return index.dtype() == DType::kPred || index.dtype() == DType::kU8; }

// The index tensors of one call, joined.
struct Indices {
  Dims indexed;   // the dims of x that have an index tensor
  Value vectors;  // [index dims…, indexed dims], s32; empty when nothing is indexed
  Dims result;    // dims of x[…]
  Dims window;    // the result's dims that are x's unindexed ones, in order
};

[[noreturn]] void refuse_mask(const Emit& e) {
  throw_error(
      Code::kUnimplemented,
      base::str(e.op(),
                ": the result's shape depends on the values of a boolean mask, which a compiled program "
                "cannot express; use torch::where or masked_fill"));
}

Indices read(Emit& e, Value x) {
  Builder& b = e.b;
  const Values& list = e.tensors("indices");
  e.check(static_cast<int64_t>(list.size()) <= x.rank(),
          base::str("expected at most ", x.rank(), " indices for ", in_words(x), ", found ", list.size()));
  Indices r;
  Values parts;
  for (size_t d = 0; d < list.size(); ++d) {
    if (!list[d]) continue;
    if (is_mask(list[d])) refuse_mask(e);
    e.check(stablehlo::is_integer(list[d].dtype()),
            base::str("expected integer indices, found ", in_words(list[d])));
    const auto dim = static_cast<int64_t>(d);
    e.expect({.argument = "indices", .values = list[d], .low = -x.dim(dim), .high = x.dim(dim)});
    r.indexed.push_back(dim);
    parts.push_back(wrap_index(b, narrow_index(b, list[d], x.dim(dim)), x.dim(dim)));
  }
  if (parts.empty()) return r;
  parts = broadcast_together(b, parts);
  for (int64_t d : r.indexed)
    e.check(x.dim(d) > 0 || parts[0].type().numel() == 0,
            base::str("an index is out of bounds for dimension ", d, " of ", in_words(x)));
  const Dims common = parts[0].dims();
  for (Value& part : parts) {
    Dims column = common;
    column.push_back(1);
    part = b.reshape(part, column);
  }
  r.vectors = parts.size() == 1 ? parts[0] : b.concatenate(parts, static_cast<int64_t>(common.size()));
  // The index dims take the place of the indexed dims, or come first if those are not neighbours.
  const bool neighbours = r.indexed.back() - r.indexed.front() + 1 == static_cast<int64_t>(r.indexed.size());
  const int64_t before = neighbours ? r.indexed.front() : 0;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (static_cast<int64_t>(r.window.size()) == before && r.result.size() == at(before))
      r.result.insert(r.result.end(), common.begin(), common.end());
    if (std::find(r.indexed.begin(), r.indexed.end(), d) != r.indexed.end()) continue;
    r.window.push_back(static_cast<int64_t>(r.result.size()));
    r.result.push_back(x.dim(d));
  }
  return r;
}

// Returns for each element of a mask the number of chosen elements before it, s32; [n].
Value numbers_of_chosen(Builder& b, Value mask) {
  const Value flat = to(b, b.reshape(mask, {mask.type().numel()}), DType::kS32);
  const Values sums = scan(b, {flat}, {b.splat(0, Type{DType::kS32, {}})}, 0,
                           [](Builder& body, const Values& earlier, const Values& later) {
                             return Values{body.add(earlier[0], later[0])};
                           });
  return b.subtract(sums[0], flat);
}

// Returns values [before…, chosen, after…] with x's dims: each place has the value with its number. The
// mask's dims are x's dims from `first_dim` on.
Value spread_over_mask(Emit& e, Value x, Value mask, int64_t first_dim, Value values) {
  Builder& b = e.b;
  const int64_t behind = x.rank() - first_dim - mask.rank(), rank = first_dim + 1 + behind;
  e.check(values.rank() <= rank,
          base::str("expected values of at most ", rank, " dimensions, found ", in_words(values)));
  Dims dims(at(rank - values.rank()), 1);
  dims.insert(dims.end(), values.dims().begin(), values.dims().end());
  const int64_t chosen = dims[at(first_dim)];
  Dims wanted(x.dims().begin(), x.dims().begin() + first_dim);
  wanted.push_back(chosen);
  wanted.insert(wanted.end(), x.dims().end() - behind, x.dims().end());
  const Value all = b.broadcast(b.reshape(values, dims), wanted);
  const Value number = numbers_of_chosen(b, mask);
  return b.reshape(take_along(b, all, first_dim, chosen == 1 ? zeros(b, number.type()) : number), x.dims());
}

// Puts a value (or old + value) into x where a boolean mask selects.
Value put_masked(Emit& e, Value x, Value mask, int64_t first_dim, Value values) {
  Builder& b = e.b;
  Dims dims;
  for (int64_t d = 0; d < mask.rank(); ++d) dims.push_back(first_dim + d);
  bool fits = first_dim + mask.rank() <= x.rank();
  for (int64_t d = 0; fits && d < mask.rank(); ++d) fits = mask.dim(d) == x.dim(first_dim + d);
  e.check(fits, base::str("expected a mask that fits ", in_words(x), " from dimension ", first_dim,
                          ", found ", in_words(mask)));
  if (x.type().numel() == 0 || values.type().numel() == 0) return x;
  const Value truth = to(b, mask, DType::kPred), chosen = b.broadcast_in_dim(truth, x.dims(), dims);
  Value written = values.type().numel() == 1 ? b.broadcast(b.reshape(values, {}), x.dims())
                                             : spread_over_mask(e, x, truth, first_dim, values);
  if (e.boolean("accumulate")) written = b.add(x, written);
  return b.select(chosen, written, x);
}

}  // namespace

Values advanced_get(Emit& e) {
  Builder& b = e.b;
  const Value x = e.tensor("self");
  const Indices r = read(e, x);
  if (!r.vectors) return {x};
  if (x.type().numel() == 0 || r.vectors.type().numel() == 0) return {zeros(b, Type{x.dtype(), r.result})};
  Dims sizes = x.dims();
  for (int64_t d : r.indexed) sizes[at(d)] = 1;
  return {b.gather(x, r.vectors,
                   {.offset_dims = r.window,
                    .collapsed_slice_dims = r.indexed,
                    .start_index_map = r.indexed,
                    .index_vector_dim = r.vectors.rank() - 1,
                    .slice_sizes = sizes})};
}

Values advanced_put(Emit& e) {
  Builder& b = e.b;
  const Value self = e.tensor("self"), values = e.tensor("values");
  e.check(values.dtype() == self.dtype(), base::str("expected values of the tensor's element type, found ",
                                                    in_words(values), " for ", in_words(self)));
  const bool accumulate = e.boolean("accumulate");
  const DType compute = accumulate ? compute_type(self.dtype()) : self.dtype();
  const Value x = to(b, self, compute), updates = to(b, values, compute);

  const Values& list = e.tensors("indices");
  const auto given = [](Value index) { return static_cast<bool>(index); };
  const auto first = std::find_if(list.begin(), list.end(), given);
  if (first != list.end() && is_mask(*first)) {
    if (std::count_if(list.begin(), list.end(), given) != 1) refuse_mask(e);
    return {to(b, put_masked(e, x, *first, first - list.begin(), updates), self.dtype())};
  }
  const Indices r = read(e, x);
  if (!r.vectors) {
    const Value written = b.broadcast(updates, x.dims());
    return {to(b, accumulate ? b.add(x, written) : written, self.dtype())};
  }
  const Value written = b.broadcast(updates, r.result);
  if (x.type().numel() == 0 || written.type().numel() == 0) return {self};
  const Value result = b.scatter(x, r.vectors, written,
                                 {.update_window_dims = r.window,
                                  .inserted_window_dims = r.indexed,
                                  .scatter_dims_to_operand_dims = r.indexed,
                                  .index_vector_dim = r.vectors.rank() - 1},
                                 accumulate ? add_update() : replace_by_update());
  return {to(b, result, self.dtype())};
}

// Puts the values of `source`, one after another, where the mask is true.
Values masked_scatter(Emit& e) {
  Builder& b = e.b;
  const Value self = e.tensor("self"), mask = e.tensor("mask"), source = e.tensor("source");
  e.check(mask.dtype() == DType::kPred, base::str("expected a mask of bool, found ", in_words(mask)));
  e.check(source.dtype() == self.dtype(), base::str("expected a source of the tensor's element type, found ",
                                                    in_words(source), " for ", in_words(self)));
  const Values v = broadcast_together(b, {self, mask});
  if (v[0].type().numel() == 0 || source.type().numel() == 0) return {v[0]};
  const Value values = b.reshape(source, {source.type().numel()});
  const Value read = take_along(b, values, 0, numbers_of_chosen(b, v[1]));
  return {b.select(v[1], b.reshape(read, v[0].dims()), v[0])};
}

// Returns the gradient of its source: the elements under the mask, one after another, then zeros.
Values masked_scatter_backward(Emit& e) {
  Builder& b = e.b;
  const Values v = broadcast_together(b, {e.tensor("grad_output"), e.tensor("mask")});
  const Value source = zeros(b, Type{v[0].dtype(), e.ints("sizes")});
  const int64_t count = source.type().numel(), all = v[0].type().numel();
  if (count == 0 || all == 0) return {source};
  const Value number = numbers_of_chosen(b, v[1]);
  const Value place = b.select(b.reshape(v[1], {all}), number, b.splat(count, number.type()));
  const Value made =
      scatter_slices(b, b.reshape(source, {count}), 0, place, b.reshape(v[0], {all}), replace_by_update());
  return {b.reshape(made, source.dims())};
}

}  // namespace sluice::ops::index
