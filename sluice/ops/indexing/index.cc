// Selecting, gathering and scattering by tensors of positions. indexing.h defines what happens to positions
// out of range.
//
// Sums in bf16 or f16 are computed in f32.
#include "sluice/ops/indexing/index.h"

#include <limits>

#include "sluice/base/text/join.h"
#include "sluice/ops/indexing/indexing.h"

namespace sluice::ops {
namespace {

using stablehlo::Region;

// Returns a 0-d tensor as one of size 1.
Value at_least_1d(Builder& b, Value x) { return x.rank() == 0 ? b.reshape(x, {1}) : x; }

int64_t read_dim(Emit& e) { return wrap_dim(e.integer("dim"), e.tensor("self").rank()); }

// Reads the argument `index`. `lowest` is -size if positions may be counted from the end.
Value read_index(Emit& e, int64_t size, int64_t lowest = 0) {
  const Value index = e.tensor("index");
  e.check(stablehlo::is_integer(index.dtype()),
          base::str("expected integer positions, found ", in_words(index)));
  e.expect({.argument = "index", .values = index, .low = lowest, .high = size});
  return narrow_index(e.b, index, size);
}

// Reads one-dimensional positions along `dim`.
Value read_index_vector(Emit& e, int64_t size, int64_t lowest = 0) {
  const Value index = at_least_1d(e.b, read_index(e, size, lowest));
  e.check(index.rank() == 1,
          base::str("expected positions of at most one dimension, found ", in_words(index)));
  return index;
}

// Checks that nothing is read from an empty dimension.
void check_not_out_of_range(Emit& e, Value index, int64_t dim, int64_t size) {
  e.check(size > 0 || index.type().numel() == 0,
          base::str("expected no positions in dimension ", dim, ", which is empty, found ",
                    index.type().numel(), ": index out of range"));
}

Values index_select(Emit& e) {
  Builder& b = e.b;
  const Value self = e.tensor("self"), x = at_least_1d(b, self);
  const int64_t dim = read_dim(e);
  const Value index = read_index_vector(e, x.dim(dim));
  check_not_out_of_range(e, index, dim, x.dim(dim));
  const Value result = take_along(b, x, dim, index);
  return {self.rank() == 0 ? b.reshape(result, {}) : result};
}

// Checks that the positions have the rank of `x` and, except in `dim`, no size above its sizes.
void check_fits(Emit& e, Value index, std::string_view name, Value x, std::optional<int64_t> dim) {
  bool fits = index.rank() == x.rank();
  for (int64_t d = 0; fits && d < x.rank(); ++d) fits = d == dim || index.dim(d) <= x.dim(d);
  e.check(fits, base::str("expected an index of ", x.rank(), " dimensions, no larger than '", name, "' ",
                          in_words(x), dim ? base::str(" except in dimension ", *dim) : "", ", found ",
                          in_words(index)));
}

Values gather(Emit& e) {
  Builder& b = e.b;
  const Value x = at_least_1d(b, e.tensor("self"));
  const int64_t dim = read_dim(e);
  const Value index = read_index(e, x.dim(dim));
  if (index.type().numel() == 0) return {zeros(b, Type{x.dtype(), index.dims()})};
  const Value where = at_least_1d(b, index);
  check_fits(e, where, "self", x, dim);
  check_not_out_of_range(e, where, dim, x.dim(dim));
  return {b.reshape(gather_elements(b, x, dim, where), index.dims())};
}

// Scatters updates (a 0-d value is used for all of them) into `target`, in its element type.
Value scatter_into(Emit& e, Value target, Value updates, const Region& body) {
  Builder& b = e.b;
  const Value x = at_least_1d(b, target);
  const int64_t dim = read_dim(e);
  const Value index = at_least_1d(b, read_index(e, x.dim(dim)));
  if (index.type().numel() == 0) return target;
  check_fits(e, index, "self", x, dim);
  updates = to(b, updates, x.dtype());
  if (updates.rank() == 0) {
    updates = b.broadcast(updates, index.dims());
  } else {
    check_fits(e, index, "src", updates, {});
    updates = b.slice(updates, Dims(index.dims().size(), 0), index.dims());
  }
  return b.reshape(scatter_elements(b, x, dim, index, updates, body), target.dims());
}

Value source(Emit& e) {
  const Value src = e.tensor("src");
  e.check(src.dtype() == e.tensor("self").dtype(),
          base::str("expected updates of the tensor's element type, found ", in_words(src), " for ",
                    in_words(e.tensor("self"))));
  return src;
}

Value source_number(Emit& e) { return e.scalar("value", e.tensor("self").dtype()); }

// Scatters with a reduction, computed in f32 for bf16 and f16.
Values scatter_combined(Emit& e, Value updates, const Region& body) {
  const Value self = e.tensor("self");
  const Value x = to(e.b, self, compute_type(self.dtype()));
  return {to(e.b, scatter_into(e, x, updates, body), self.dtype())};
}

Region scatter_body(Emit& e) {
  const std::string_view reduce = e.text("reduce");
  e.check(reduce == "add" || reduce == "multiply",
          base::str("expected 'add' or 'multiply', found '", reduce, "'"));
  return reduce == "add" ? add_update() : multiply_update();
}

Values scatter_source(Emit& e) { return {scatter_into(e, e.tensor("self"), source(e), replace_by_update())}; }
Values scatter_value(Emit& e) {
  return {scatter_into(e, e.tensor("self"), source_number(e), replace_by_update())};
}
Values scatter_source_reduce(Emit& e) { return scatter_combined(e, source(e), scatter_body(e)); }
Values scatter_value_reduce(Emit& e) { return scatter_combined(e, source_number(e), scatter_body(e)); }
Values scatter_add(Emit& e) { return scatter_combined(e, source(e), add_update()); }

// A reduction's start value, which replaces the old value if that does not count, and its body.
struct Reduction {
  Value start;
  Region body;
};

Reduction scatter_reduction(Emit& e, DType dtype) {
  const std::string_view reduce = e.text("reduce");
  if (reduce == "sum" || reduce == "mean") return {e.b.splat(0, Type{dtype, {}}), add_update()};
  if (reduce == "prod") return {e.b.splat(1, Type{dtype, {}}), multiply_update()};
  if (reduce == "amax") return {e.b.lowest(dtype), larger_of_update()};
  if (reduce == "amin") return {e.b.highest(dtype), smaller_of_update()};
  e.fail(base::str("expected 'sum', 'prod', 'mean', 'amax' or 'amin', found '", reduce, "'"));
}

// Returns x / y for y > 0; rounded down for integers.
Value divide_down(Builder& b, Value x, Value y) {
  const Value quotient = b.divide(x, y);
  if (stablehlo::is_float(x.dtype())) return quotient;
  const Value below = is_less(b, b.remainder(x, y), 0);
  return b.select(below, b.subtract(quotient, number_like(b, 1, quotient)), quotient);
}

Values scatter_reduce(Emit& e) {
  Builder& b = e.b;
  const Value self = e.tensor("self");
  const bool include_self = e.boolean("include_self");
  Value x = to(b, self, compute_type(self.dtype()));
  const Reduction reduction = scatter_reduction(e, x.dtype());
  if (!include_self) x = scatter_into(e, x, reduction.start, replace_by_update());
  Value result = scatter_into(e, x, source(e), reduction.body);
  if (e.text("reduce") == "mean") {
    const Value counted = b.splat(include_self ? 1 : 0, x.type());
    const Value count = scatter_into(e, counted, b.splat(1, Type{x.dtype(), {}}), add_update());
    result = divide_down(b, result, b.maximum(count, number_like(b, 1, count)));
  }
  return {to(b, result, self.dtype())};
}

// ---- Slices along a dimension ----

// Combines `updates` (with target's other dims) into target's slices at `index`, in the updates' element
// type.
Value put_into(Emit& e, Value target, Value index, Value updates, const Region& body) {
  Builder& b = e.b;
  const Value x = at_least_1d(b, target);
  const int64_t dim = read_dim(e);
  Dims dims = x.dims();
  dims[static_cast<size_t>(dim)] = index.dim(0);
  if (updates.rank() == 0) updates = b.broadcast(updates, dims);
  updates = at_least_1d(b, updates);
  e.check(updates.type().numel() == Type{x.dtype(), dims}.numel(),
          base::str("expected a source of ", Type{x.dtype(), dims}.str(), ", found ", in_words(updates)));
  const DType compute = updates.dtype();
  const Value result = scatter_slices(b, to(b, x, compute), dim, index, b.reshape(updates, dims), body);
  return b.reshape(result, target.dims());
}

Values put_slices(Emit& e, Value index, Value updates, const Region& body) {
  const Value self = e.tensor("self");
  return {to(e.b, put_into(e, self, index, updates, body), self.dtype())};
}

int64_t indexed_size(Emit& e) {
  const Value self = e.tensor("self");
  return self.rank() == 0 ? 1 : self.dim(read_dim(e));
}

Value read_source(Emit& e) {
  const Value source = e.tensor("source");
  e.check(source.dtype() == e.tensor("self").dtype(),
          base::str("expected a source of the tensor's element type, found ", in_words(source), " for ",
                    in_words(e.tensor("self"))));
  return source;
}

Values index_add(Emit& e) {
  Builder& b = e.b;
  Value source = read_source(e);
  source = to(b, source, compute_type(source.dtype()));
  if (!e.is_constant("alpha", 1))
    source = b.multiply(source, e.scalar("alpha", source.dtype(), source.dims()));
  return put_slices(e, read_index_vector(e, indexed_size(e)), source, add_update());
}

Values index_copy(Emit& e) {
  return put_slices(e, read_index_vector(e, indexed_size(e)), read_source(e), replace_by_update());
}

Values index_fill(Emit& e) {
  const int64_t size = indexed_size(e);
  const Value index = wrap_index(e.b, read_index_vector(e, size, -size), size);
  return put_slices(e, index, e.operand("value", e.tensor("self").dtype()), replace_by_update());
}

Values index_reduce(Emit& e) {
  Builder& b = e.b;
  const Value self = e.tensor("self"), given = read_source(e);
  const std::string_view reduce = e.text("reduce");
  e.check(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
          base::str("expected 'prod', 'mean', 'amax' or 'amin', found '", reduce, "'"));
  const Value index = read_index_vector(e, indexed_size(e));
  const Value source = to(b, given, compute_type(given.dtype()));
  const Reduction reduction = scatter_reduction(e, source.dtype());
  const bool include_self = e.boolean("include_self");
  const Value x = to(b, self, source.dtype());
  const Value start = include_self ? x : put_into(e, x, index, reduction.start, replace_by_update());
  Value result = put_into(e, start, index, source, reduction.body);
  if (reduce == "mean") {
    const Value counted = b.splat(include_self ? 1 : 0, x.type());
    const Value count = put_into(e, counted, index, b.splat(1, Type{x.dtype(), {}}), add_update());
    result = divide_down(b, result, b.maximum(count, number_like(b, 1, count)));
  }
  return {to(b, result, self.dtype())};
}

// ---- Positions in the flattened tensor ----

Value flat(Builder& b, Value x) { return b.reshape(x, {x.type().numel()}); }

Values take(Emit& e) {
  Builder& b = e.b;
  const Value x = flat(b, e.tensor("self")), index = read_index(e, x.dim(0), -x.dim(0));
  check_not_out_of_range(e, index, 0, x.dim(0));
  return {take_along(b, x, 0, wrap_index(b, index, x.dim(0)))};
}

Values put(Emit& e) {
  Builder& b = e.b;
  const Value self = e.tensor("self");
  const bool accumulate = e.boolean("accumulate");
  const DType compute = accumulate ? compute_type(self.dtype()) : self.dtype();
  const Value x = flat(b, to(b, self, compute));
  const Value index = flat(b, wrap_index(b, read_index(e, x.dim(0), -x.dim(0)), x.dim(0)));
  const Value updates = flat(b, to(b, read_source(e), compute));
  const Value result =
      scatter_slices(b, x, 0, index, updates, accumulate ? add_update() : replace_by_update());
  return {b.reshape(to(b, result, self.dtype()), self.dims())};
}

// Adds the rows of the gradient to the rows of the table that they came from; the padding row gets nothing.
Values embedding_backward(Emit& e) {
  Builder& b = e.b;
  const Value grad_output = e.tensor("grad_output"), indices = e.tensor("indices");
  const int64_t rows = e.integer("num_weights"), count = indices.type().numel(),
                padding = e.integer("padding_idx");
  const int64_t width = grad_output.rank() == 0 ? 1 : grad_output.dim(grad_output.rank() - 1);
  const DType compute = compute_type(grad_output.dtype());
  Value index = flat(b, narrow_index(b, indices, rows + 1));
  Value grad = b.reshape(to(b, grad_output, compute), {count, width});
  if (e.boolean("scale_grad_by_freq")) {
    const Type table{compute, {rows}};
    const Value uses =
        scatter_slices(b, zeros(b, table), 0, index, b.splat(1, Type{compute, {count}}), add_update());
    grad = b.divide(grad, b.broadcast_in_dim(take_along(b, uses, 0, index), grad.dims(), {0}));
  }
  // One past the end: a scatter drops updates that are out of range.
  if (padding >= 0)
    index = b.select(is_equal(b, index, static_cast<double>(padding)), b.splat(rows, index.type()), index);
  const Value result =
      scatter_slices(b, zeros(b, Type{compute, {rows, width}}), 0, index, grad, add_update());
  return {to(b, result, grad_output.dtype())};
}

constexpr Row kIndexRows[] = {
    {.name = "aten::index_select", .emit = index_select},
    {.name = "aten::gather", .emit = gather},
    {.name = "aten::scatter.src", .emit = scatter_source},
    {.name = "aten::scatter.value", .emit = scatter_value},
    {.name = "aten::scatter.reduce", .emit = scatter_source_reduce},
    {.name = "aten::scatter.value_reduce", .emit = scatter_value_reduce},
    {.name = "aten::scatter_add", .emit = scatter_add},
    {.name = "aten::scatter_reduce.two", .emit = scatter_reduce},
    {.name = "aten::index_add", .emit = index_add, .constant_if_one = "alpha"},
    {.name = "aten::index_copy", .emit = index_copy},
    {.name = "aten::index_reduce", .emit = index_reduce},
    {.name = "aten::index_fill.int_Scalar", .emit = index_fill},
    {.name = "aten::index_fill.int_Tensor", .emit = index_fill},
    {.name = "aten::index.Tensor", .emit = index::advanced_get},
    {.name = "aten::index_put", .emit = index::advanced_put},
    {.name = "aten::_index_put_impl", .emit = index::advanced_put},
    {.name = "aten::take", .emit = take},
    {.name = "aten::put", .emit = put},
    {.name = "aten::embedding_dense_backward", .emit = embedding_backward},
    {.name = "aten::masked_scatter", .emit = index::masked_scatter},
    {.name = "aten::masked_scatter_backward", .emit = index::masked_scatter_backward},
    {.name = "aten::_embedding_bag", .emit = index::embedding_bag},
    {.name = "aten::_embedding_bag_forward_only", .emit = index::embedding_bag},
    {.name = "aten::_embedding_bag_backward", .emit = index::embedding_bag_backward},
    {.name = "aten::_embedding_bag_dense_backward", .emit = index::embedding_bag_backward},
    {.name = "aten::_embedding_bag_per_sample_weights_backward",
     .emit = index::embedding_bag_weights_backward},
    {.name = "aten::embedding_renorm", .emit = index::embedding_renorm, .constants = "norm_type"},
    {.name = "aten::segment_reduce", .emit = index::segment_reduce, .constants = "initial"},
    {.name = "aten::_segment_reduce_backward",
     .emit = index::segment_reduce_backward,
     .constants = "initial"},
    {.name = "aten::mode", .emit = index::mode},
    {.name = "aten::histc", .emit = index::histc, .constants = "min max"},
    {.name = "aten::histogram.bin_ct", .emit = index::histogram},
    {.name = "aten::histogram.bins_tensor", .emit = index::histogram},
    {.name = "aten::_histogramdd_from_bin_cts", .emit = index::histogramdd},
    {.name = "aten::_histogramdd_from_bin_tensors", .emit = index::histogramdd},
    {.name = "aten::nonzero_static", .emit = index::nonzero_static},
    {.name = "aten::sort.stable", .emit = index::sort},
    {.name = "aten::topk", .emit = index::topk},
    {.name = "aten::kthvalue", .emit = index::kthvalue},
    {.name = "aten::median", .emit = index::median},
    {.name = "aten::median.dim", .emit = index::median},
    {.name = "aten::nanmedian", .emit = index::median},
    {.name = "aten::nanmedian.dim", .emit = index::median},
    {.name = "aten::searchsorted.Tensor", .emit = index::searchsorted},
    {.name = "aten::searchsorted.Scalar", .emit = index::searchsorted},
    {.name = "aten::bucketize.Tensor", .emit = index::bucketize},
    {.name = "aten::bucketize.Scalar", .emit = index::bucketize},
    {.name = "aten::isin.Tensor_Tensor", .emit = index::isin},
    {.name = "aten::isin.Tensor_Scalar", .emit = index::isin},
    {.name = "aten::isin.Scalar_Tensor", .emit = index::isin},
};

}  // namespace

std::span<const Row> index_rows() { return kIndexRows; }

}  // namespace sluice::ops
