// Tensors from numbers, and triangles. The element type is the argument `dtype`; a call that writes into an
// existing tensor takes that tensor's element type instead.
#include <algorithm>
#include <cmath>

#include "sluice/ops/common.h"

namespace sluice::ops {
namespace {

Values fill(Emit& e) {
  Value x = e.tensor("self");
  return {e.b.broadcast(e.operand("value", x.dtype()), x.dims())};
}

Values zero(Emit& e) { return {zeros(e.b, e.tensor("self").type())}; }

// Returns start + step * (0 … count-1).
Value sequence(Builder& b, double start, double step, int64_t count, DType dtype) {
  const Type type{compute_type(dtype), {count}};
  const bool narrow = count <= INT32_MAX && stablehlo::is_float(dtype);
  Value x = to(b, b.iota(Type{narrow ? DType::kS32 : DType::kS64, {count}}, 0), type.dtype);
  if (step != 1) x = b.multiply(x, b.splat(step, type));
  if (start != 0) x = b.add(x, b.splat(start, type));
  return to(b, x, dtype);
}

// Returns integers, with an exact length if the arguments are integers.
Values integer_sequence(Emit& e, bool with_end) {
  const int64_t start = e.integer("start"), end = e.integer("end"), step = e.integer("step");
  e.check(step != 0 && (end - start == 0 || (end > start) == (step > 0)),
          "expected a step that leads from start to end");
  const int64_t distance = std::abs(end - start), stride = std::abs(step);
  const int64_t count = with_end ? distance / stride + 1 : (distance + stride - 1) / stride;
  const DType dtype = e.dtype("dtype").value_or(with_end ? DType::kF32 : DType::kS64);
  if (stablehlo::is_float(dtype))
    return {sequence(e.b, static_cast<double>(start), static_cast<double>(step), count, dtype)};
  const Type type{DType::kS64, {count}};
  Value x = e.b.multiply(e.b.iota(type, 0), e.b.splat(step, type));
  return {to(e.b, e.b.add(x, e.b.splat(start, type)), dtype)};
}

Values arithmetic_sequence(Emit& e, bool with_end) {
  bool whole = true;
  for (std::string_view name : {"start", "end", "step"})
    whole = whole && e.category(name) != Category::kFloat;
  if (whole) return integer_sequence(e, with_end);
  const double start = e.number("start"), end = e.number("end"), step = e.number("step");
  e.check(step != 0 && (end == start || (end > start) == (step > 0)),
          "expected a step that leads from start to end");
  const double length = (end - start) / step;
  const auto count = static_cast<int64_t>(with_end ? std::floor(length) + 1 : std::ceil(length));
  const DType dtype = e.dtype("dtype").value_or(DType::kF32);
  if (stablehlo::is_float(dtype)) return {sequence(e.b, start, step, count, dtype)};
  // For integers from fractional arguments, PyTorch drops the fractions first.
  return {sequence(e.b, std::trunc(start), std::trunc(step), count, dtype)};
}
Values arange(Emit& e) { return arithmetic_sequence(e, false); }
Values range(Emit& e) { return arithmetic_sequence(e, true); }

// Returns `steps` numbers from start to end, both exact: the second half counts back from the end.
Value evenly_spaced(Emit& e, DType compute) {
  Builder& b = e.b;
  const int64_t steps = e.integer("steps");
  e.check(steps >= 0, "expected steps of at least 0");
  const Type type{compute, {steps}};
  Value start = e.scalar("start", compute, type.dims), end = e.scalar("end", compute, type.dims);
  if (steps <= 1) return start;
  Value step = b.divide(b.subtract(end, start), b.splat(static_cast<double>(steps - 1), type));
  Value index = b.iota(Type{DType::kS32, type.dims}, 0);
  Value from_start = b.add(start, b.multiply(step, to(b, index, compute)));
  Value back = b.subtract(number_like(b, static_cast<double>(steps - 1), index), index);
  Value from_end = b.subtract(end, b.multiply(step, to(b, back, compute)));
  return b.select(is_less(b, index, static_cast<double>(steps / 2)), from_start, from_end);
}

DType spaced_compute_type(DType dtype) {
  return stablehlo::is_float(dtype) ? compute_type(dtype) : DType::kF64;
}

Values linspace(Emit& e) {
  const DType dtype = e.dtype("dtype").value_or(DType::kF32);
  return {to(e.b, evenly_spaced(e, spaced_compute_type(dtype)), dtype)};
}

Values logspace(Emit& e) {
  const DType dtype = e.dtype("dtype").value_or(DType::kF32);
  Value x = evenly_spaced(e, spaced_compute_type(dtype));
  return {to(e.b, e.b.power(number_like(e.b, e.number("base"), x), x), dtype)};
}

Value identity(Emit& e, int64_t rows, int64_t columns) {
  Builder& b = e.b;
  const Type type{DType::kS32, {rows, columns}};
  return to(b, b.compare(b.iota(type, 0), b.iota(type, 1), Compare::kEq),
            e.dtype("dtype").value_or(DType::kF32));
}
Values eye(Emit& e) { return {identity(e, e.integer("n"), e.integer("n"))}; }
Values eye_m(Emit& e) { return {identity(e, e.integer("n"), e.integer("m"))}; }

// Keeps the elements of the last two dimensions that are on one side of a diagonal.
Values triangle(Emit& e, bool lower) {
  Builder& b = e.b;
  Value x = e.tensor("self");
  e.check(x.rank() >= 2, "expected at least two dimensions");
  const Type index{DType::kS32, {x.dim(x.rank() - 2), x.dim(x.rank() - 1)}};
  // XLA's CPU compiler evaluates 0 <= -1 to true if the positions are one element.
  if (index.numel() == 1) {
    const bool whole = lower ? e.integer("diagonal") >= 0 : e.integer("diagonal") <= 0;
    return {whole ? x : zeros(b, x.type())};
  }
  Value offset = b.subtract(b.iota(index, 1), b.iota(index, 0));  // column - row
  Value diagonal = b.splat(e.integer("diagonal"), index);
  Value kept = b.compare(offset, diagonal, lower ? Compare::kLe : Compare::kGe);
  return {b.select(b.broadcast(kept, x.dims()), x, number_like(b, 0, x))};
}
Values tril(Emit& e) { return triangle(e, true); }
Values triu(Emit& e) { return triangle(e, false); }

// Returns the positions of a triangle: a matrix of two rows, row numbers and column numbers.
Values triangle_indices(Emit& e, bool lower) {
  const int64_t rows = e.integer("row"), columns = e.integer("col"), offset = e.integer("offset");
  std::vector<int64_t> row_numbers, positions;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t split = lower ? row + offset + 1 : row + offset;
    const int64_t begin = lower ? 0 : std::clamp<int64_t>(split, 0, columns);
    const int64_t end = lower ? std::clamp<int64_t>(split, 0, columns) : columns;
    for (int64_t column = begin; column < end; ++column) {
      row_numbers.push_back(row);
      positions.push_back(column);
    }
  }
  const auto count = static_cast<int64_t>(positions.size());
  row_numbers.insert(row_numbers.end(), positions.begin(), positions.end());
  Value both = e.b.constant(Type{DType::kS64, {2, count}}, row_numbers.data());
  return {to(e.b, both, e.dtype("dtype").value_or(DType::kS64))};
}
Values tril_indices(Emit& e) { return triangle_indices(e, true); }
Values triu_indices(Emit& e) { return triangle_indices(e, false); }

const Row kCreateRows[] = {
    {.name = "aten::arange.start_step", .emit = arange, .constants = "start end step"},
    {.name = "aten::eye", .emit = eye},
    {.name = "aten::eye.m", .emit = eye_m},
    {.name = "aten::fill.Scalar", .emit = fill},
    {.name = "aten::fill.Tensor", .emit = fill},
    {.name = "aten::linspace", .emit = linspace},
    {.name = "aten::logspace", .emit = logspace, .constants = "base"},
    {.name = "aten::range.step", .emit = range, .constants = "start end step"},
    {.name = "aten::tril", .emit = tril},
    {.name = "aten::tril_indices", .emit = tril_indices},
    {.name = "aten::triu", .emit = triu},
    {.name = "aten::triu_indices", .emit = triu_indices},
    {.name = "aten::zero", .emit = zero},
};

}  // namespace

std::span<const Row> create_rows() { return kCreateRows; }

}  // namespace sluice::ops
