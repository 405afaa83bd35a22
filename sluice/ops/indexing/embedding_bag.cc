// Sums, means and maxima of bags of an embedding's rows, and their gradients. A bag is a run of `indices`
// that begins at its offset. The bag of an index is the number of offsets up to the index, so bags may be
// empty.
//
// The results after the first are the values that LibTorch keeps for the gradient: each index's bag, each
// bag's size without padding, and for maxima the index that won.
#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/ops/indexing/index.h"
#include "sluice/ops/indexing/indexing.h"

namespace sluice::ops::index {
namespace {

enum Mode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

Mode read_mode(Emit& e) {
  const int64_t mode = e.integer("mode");
  e.check(mode >= kSum && mode <= kMax,
          base::str("expected a mode of 0 (sum), 1 (mean) or 2 (max), found ", mode));
  return static_cast<Mode>(mode);
}

// Repeats x, one number for each row, as [rows, width].
Value for_rows(Builder& b, Value x, int64_t width) { return b.broadcast_in_dim(x, {x.dim(0), width}, {0}); }

// The bags of one call. There is one row for each index.
struct Bags {
  int64_t bags = 0;
  Value index;    // s32 [rows]
  Value bag;      // s32 [rows]
  Value counted;  // predicate [rows]: in a bag, and not padding
};

Value counted_rows(Emit& e, Value index, Value bag, int64_t bags) {
  Builder& b = e.b;
  const Value inside = b.and_(b.compare(bag, zeros(b, bag.type()), Compare::kGe),
                              b.compare(bag, b.splat(bags, bag.type()), Compare::kLt));
  const int64_t padding = e.integer("padding_idx");
  if (padding < 0) return inside;
  return b.and_(inside, b.compare(index, b.splat(padding, index.type()), Compare::kNe));
}

Bags read_bags(Emit& e, int64_t rows_of_table) {
  Builder& b = e.b;
  const Value indices = e.tensor("indices"), offsets = e.tensor("offsets");
  for (const Value given : {indices, offsets})
    e.check(given.rank() == 1 && stablehlo::is_integer(given.dtype()),
            base::str("expected 'indices' and 'offsets' to be vectors of integers, found ", in_words(indices),
                      " and ", in_words(offsets)));
  const bool last_is_end = e.boolean("include_last_offset");
  e.check(!last_is_end || offsets.dim(0) >= 1,
          "expected at least one offset with include_last_offset, found none");
  Bags r;
  r.bags = offsets.dim(0) - (last_is_end ? 1 : 0);
  r.index = narrow_index(b, indices, rows_of_table);
  const Dims pairs = {indices.dim(0), offsets.dim(0)};
  const Value begins = b.broadcast_in_dim(narrow_index(b, offsets, indices.dim(0)), pairs, {1});
  const Value begun = b.compare(begins, positions(b, pairs, 0), Compare::kLe);
  r.bag = b.subtract(b.reduce_sum(to(b, begun, DType::kS32), {1}), b.splat(1, r.index.type()));
  r.counted = counted_rows(e, r.index, r.bag, r.bags);
  return r;
}

// Combines the rows into their bags; rows that do not count are dropped.
Value into_bags(Builder& b, const Bags& r, Value start, Value rows, const stablehlo::Region& body) {
  const Value place = b.select(r.counted, r.bag, b.splat(r.bags, r.bag.type()));
  return scatter_slices(b, start, 0, place, rows, body);
}

Value bag_sizes(Builder& b, const Bags& r) {
  return into_bags(b, r, zeros(b, Type{DType::kS32, {r.bags}}), b.splat(1, r.index.type()), add_update());
}

// Returns for each bag and column the first index that holds the maximum; -1 in an empty bag.
Value winners(Builder& b, const Bags& r, Value rows, Value maxima) {
  const int64_t count = rows.dim(0), width = rows.dim(1);
  const Type places{DType::kS32, {count, width}};
  const Value of_bag = take_along(b, maxima, 0, r.bag);
  const Value wins = b.or_(b.compare(rows, of_bag, Compare::kEq), is_nan(b, rows));
  const Value place = b.select(wins, positions(b, places.dims, 0), b.splat(count, places));
  const Value first =
      into_bags(b, r, b.splat(count, Type{DType::kS32, {r.bags, width}}), place, smaller_of_update());
  const Value index = take_along(b, b.pad(r.index, b.splat(-1, Type{DType::kS32, {}}), {0}, {1}), 0, first);
  return to(b, index, DType::kS64);
}

Value with_sample_weights(Emit& e, Value rows, Mode mode) {
  const Value weights = e.tensor_or_empty("per_sample_weights");
  if (!weights) return rows;
  e.check(mode == kSum, "expected per_sample_weights only in the mode sum");
  e.check(weights.dims() == Dims{rows.dim(0)}, base::str("expected one of per_sample_weights for each of ",
                                                         rows.dim(0), " indices, found ", in_words(weights)));
  return e.b.multiply(rows, for_rows(e.b, to(e.b, weights, rows.dtype()), rows.dim(1)));
}

Value reduced_bags(Builder& b, const Bags& r, Value rows, Value sizes, Mode mode) {
  const Type type{rows.dtype(), {r.bags, rows.dim(1)}};
  const Value none = zeros(b, type);
  if (mode == kMax) {
    const Value largest = into_bags(b, r, b.lowest(type.dtype, type.dims), rows, larger_of_update());
    return b.select(for_rows(b, is_equal(b, sizes, 0), type.dims[1]), none, largest);
  }
  const Value sums = into_bags(b, r, none, rows, add_update());
  if (mode == kSum) return sums;
  const Value at_least_one = b.maximum(sizes, number_like(b, 1, sizes));
  return b.divide(sums, for_rows(b, to(b, at_least_one, type.dtype), type.dims[1]));
}

}  // namespace

Values embedding_bag(Emit& e) {
  Builder& b = e.b;
  const Value weight = e.tensor("weight");
  e.check(weight.rank() == 2, base::str("expected 'weight' to be a matrix, found ", in_words(weight)));
  const Mode mode = read_mode(e);
  const Bags r = read_bags(e, weight.dim(0));
  e.check(weight.dim(0) > 0 || r.index.dim(0) == 0, "expected no indices into an empty weight");
  Value rows = to(b, take_along(b, weight, 0, r.index), compute_type(weight.dtype()));
  rows = with_sample_weights(e, rows, mode);
  const Value sizes = bag_sizes(b, r), bags = reduced_bags(b, r, rows, sizes, mode);
  const Value kept_sizes = to(b, sizes, DType::kS64);
  const bool any = r.bags > 0 && rows.type().numel() > 0;
  const Value won = mode != kMax ? kept_sizes
                    : any        ? winners(b, r, rows, bags)
                                 : b.splat(-1, Type{DType::kS64, bags.dims()});
  return {to(b, bags, weight.dtype()), to(b, r.bag, DType::kS64), kept_sizes, won};
}

namespace {

// Returns the gradient of each index's row of the table.
Value row_gradients(Emit& e, const Bags& r, Value grad, Mode mode) {
  Builder& b = e.b;
  Value rows = take_along(b, grad, 0, r.bag);
  if (mode == kMean) {
    const Value sizes = to(b, take_along(b, e.tensor("bag_size"), 0, r.bag), rows.dtype());
    rows = b.divide(rows, for_rows(b, b.maximum(sizes, number_like(b, 1, sizes)), rows.dim(1)));
  }
  return with_sample_weights(e, rows, mode);
}

// Returns the gradient of a maximum: each bag's gradient goes to the row that won, column by column.
Value maximum_gradient(Emit& e, Value grad, const Type& table) {
  Builder& b = e.b;
  const Value won = narrow_index(b, e.tensor("maximum_indices"), table.dims[0] + 1);
  const Value place = b.select(is_less(b, won, 0), b.splat(table.dims[0], won.type()), won);
  return scatter_elements(b, zeros(b, table), 0, place, grad, add_update());
}

// Divides each row by the number of times that its index occurs.
Value by_frequency(Builder& b, Value rows, Value index, int64_t rows_of_table) {
  const Value uses = scatter_slices(b, zeros(b, Type{rows.dtype(), {rows_of_table}}), 0, index,
                                    b.splat(1, Type{rows.dtype(), index.dims()}), add_update());
  return b.divide(rows, for_rows(b, take_along(b, uses, 0, index), rows.dim(1)));
}

Bags kept_bags(Emit& e, Value grad, int64_t rows_of_table) {
  Builder& b = e.b;
  Bags r;
  r.bags = grad.dim(0);
  r.index = narrow_index(b, e.tensor("indices"), rows_of_table);
  r.bag = narrow_index(b, e.tensor("offset2bag"), r.bags + 1);
  e.check(r.bag.dims() == r.index.dims(),
          base::str("expected one bag for each index, found ", in_words(r.bag), " and ", in_words(r.index)));
  r.counted = counted_rows(e, r.index, r.bag, r.bags);
  return r;
}

}  // namespace

Values embedding_bag_backward(Emit& e) {
  Builder& b = e.b;
  const Value grad_output = e.tensor("grad"), grad = to(b, grad_output, compute_type(grad_output.dtype()));
  if (e.has("sparse") && e.boolean("sparse"))
    throw_error(Code::kUnimplemented, base::str(e.op(), ": a sparse gradient"));
  const int64_t rows = e.integer("num_weights");
  const Mode mode = read_mode(e);
  const Type table{grad.dtype(), {rows, grad.dim(1)}};
  if (mode == kMax) return {to(b, maximum_gradient(e, grad, table), grad_output.dtype())};
  const Bags r = kept_bags(e, grad, rows);
  Value updates = row_gradients(e, r, grad, mode);
  if (e.boolean("scale_grad_by_freq")) updates = by_frequency(b, updates, r.index, rows);
  const Value place = b.select(r.counted, r.index, b.splat(rows, r.index.type()));
  return {to(b, scatter_slices(b, zeros(b, table), 0, place, updates, add_update()), grad_output.dtype())};
}

Values embedding_bag_weights_backward(Emit& e) {
  Builder& b = e.b;
  e.check(read_mode(e) == kSum, "expected per_sample_weights only in the mode sum");
  const Value grad_output = e.tensor("grad"), weight = e.tensor("weight");
  const Value grad = to(b, grad_output, compute_type(grad_output.dtype()));
  const Bags r = kept_bags(e, grad, weight.dim(0));
  const Value rows = to(b, take_along(b, weight, 0, r.index), grad.dtype());
  const Value products = b.reduce_sum(b.multiply(rows, take_along(b, grad, 0, r.bag)), {1});
  return {to(b, b.select(r.counted, products, zeros(b, products.type())), grad_output.dtype())};
}

// Scales the rows that `indices` name down to a norm of at most max_norm.
Values embedding_renorm(Emit& e) {
  Builder& b = e.b;
  const Value self = e.tensor("self"), indices = e.tensor("indices");
  e.check(self.rank() == 2, base::str("expected a matrix, found ", in_words(self)));
  const Value x = to(b, self, compute_type(self.dtype()));
  const Value index = narrow_index(b, b.reshape(indices, {indices.type().numel()}), x.dim(0));
  const Value named = scatter_slices(b, b.splat(0, Type{DType::kPred, {x.dim(0)}}), 0, index,
                                     b.splat(1, Type{DType::kPred, index.dims()}), replace_by_update());
  const Value norm = p_norm(b, x, e.number("norm_type"), {1});
  const Value largest = e.scalar("max_norm", x.dtype(), norm.dims());
  // LibTorch's guard against a norm of 0.
  const Value factor = b.divide(largest, b.add(norm, number_like(b, 1e-7, norm)));
  const Value scaled = b.and_(named, b.compare(norm, largest, Compare::kGt));
  const Value result =
      b.select(for_rows(b, scaled, x.dim(1)), b.multiply(x, for_rows(b, factor, x.dim(1))), x);
  return {to(b, result, self.dtype())};
}

}  // namespace sluice::ops::index
