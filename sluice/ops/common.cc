#include "sluice/ops/common.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"

namespace sluice::ops {

DType compute_type(DType dtype) {
  const bool narrow = stablehlo::is_float8(dtype) || dtype == DType::kF16 || dtype == DType::kBF16;
  return narrow ? DType::kF32 : dtype;
}

DType sum_type(DType dtype) {
  return stablehlo::is_float(dtype) || stablehlo::is_complex(dtype) ? dtype : DType::kS64;
}

Value to(Builder& b, Value x, DType dtype) {
  if (x.dtype() == dtype) return x;
  // A complex number is true if either part is not zero.
  if (dtype == DType::kPred && stablehlo::is_complex(x.dtype())) return b.not_(is_equal(b, x, 0));
  if (stablehlo::is_complex(x.dtype()) && !stablehlo::is_complex(dtype))
    throw_error(Code::kInvalidArgument,
                base::str("complex numbers do not fit elements of ", stablehlo::dtype_name(dtype),
                          "; take torch::real or torch::abs of them"));
  // f8E4M3FN has no infinity: numbers that are too large become the largest number, as in LibTorch.
  if (dtype == DType::kF8E4M3FN) {
    if (!stablehlo::is_float(x.dtype()) || x.dtype() == DType::kF8E5M2) x = b.convert(x, DType::kF32);
    x = clamp_between(b, x, -largest_finite(dtype), largest_finite(dtype));
  }
  return b.convert(x, dtype);
}

Value number_like(Builder& b, double number, Value x) { return b.splat(number, x.type()); }

Value zeros(Builder& b, const Type& type) { return b.splat(0, type); }

Values broadcast_together(Builder& b, const Values& values) {
  Dims dims;
  for (Value value : values) dims = broadcast_dims(dims, value.dims());
  Values result;
  for (Value value : values) result.push_back(b.broadcast(value, dims));
  return result;
}

Values operands(Emit& e, DType dtype, std::initializer_list<std::string_view> names) {
  Values values;
  for (std::string_view name : names) values.push_back(e.operand(name, dtype));
  return broadcast_together(e.b, values);
}

Value is_nan(Builder& b, Value x) {
  if (!stablehlo::is_float(x.dtype()) && !stablehlo::is_complex(x.dtype()))
    return b.splat(0, Type{DType::kPred, x.dims()});
  return b.compare(x, x, Compare::kNe);
}

Value is_less(Builder& b, Value x, double number) {
  return b.compare(x, number_like(b, number, x), Compare::kLt);
}

Value is_equal(Builder& b, Value x, double number) {
  return b.compare(x, number_like(b, number, x), Compare::kEq);
}

Value sign_bit(Builder& b, Value x) {
  switch (x.dtype()) {
    case DType::kF32:
      return is_less(b, b.bitcast_convert(x, DType::kS32), 0);
    case DType::kF16:
    case DType::kBF16:
      return is_less(b, b.bitcast_convert(x, DType::kS16), 0);
    case DType::kF64: {  // TPUs cannot read the bits of an f64
      Value negative_zero = b.and_(is_equal(b, x, 0), is_less(b, b.divide(number_like(b, 1, x), x), 0));
      return b.or_(is_less(b, x, 0), negative_zero);
    }
    case DType::kPred:
      return b.splat(0, Type{DType::kPred, x.dims()});
    default:
      return is_less(b, x, 0);
  }
}

Value truncate(Builder& b, Value x) { return b.select(is_less(b, x, 0), b.ceil(x), b.floor(x)); }

Value clamp_between(Builder& b, Value x, double low, double high) {
  return b.minimum(b.maximum(x, number_like(b, low, x)), number_like(b, high, x));
}

double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3FN:
      return 448.0;
    case DType::kF8E5M2:
      return 57344.0;
    case DType::kF16:
      return 65504.0;
    case DType::kBF16:
      return 0x1.fep127;
    case DType::kF32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

double smallest_normal(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3FN:
      return 0x1p-6;
    case DType::kF8E5M2:
    case DType::kF16:
      return 0x1p-14;
    case DType::kBF16:
    case DType::kF32:
      return std::numeric_limits<float>::min();
    default:
      return std::numeric_limits<double>::min();
  }
}

Value erf(Builder& b, Value x) {
  Value value = b.chlo("erf", x);
  if (x.dtype() == DType::kF64) return value;
  // XLA's polynomial ends at 1 - 1.8e-7.
  constexpr double kOneFrom = 3.8325069;
  Value is_one = b.compare(b.abs(x), number_like(b, kOneFrom, x), Compare::kGe);
  return b.select(is_one, b.sign(x), value);
}

Value p_norm(Builder& b, Value x, double p, const Dims& dims) {
  Value size = b.abs(x);
  if (p == 0) return b.reduce_sum(to(b, b.compare(x, number_like(b, 0, x), Compare::kNe), x.dtype()), dims);
  if (p == INFINITY) return b.reduce_max(size, dims);
  if (p == -INFINITY) return b.reduce_min(size, dims);
  if (p == 1) return b.reduce_sum(size, dims);
  if (p == 2) return b.sqrt(b.reduce_sum(b.multiply(x, x), dims));
  Value total = b.reduce_sum(b.power(size, number_like(b, p, size)), dims);
  return b.power(total, number_like(b, 1 / p, total));
}

namespace {

// Scans in log2(n) steps; each step processes all elements.
Values scan_in_steps(Builder& b, Values result, const Values& fill, size_t d, const Combine& combine) {
  const Dims dims = result[0].dims();
  for (int64_t distance = 1; distance < dims[d]; distance *= 2) {
    Values shifted;
    for (size_t i = 0; i < result.size(); ++i) {
      Dims low(dims.size(), 0), high(dims.size(), 0);
      low[d] = distance;
      high[d] = -distance;
      shifted.push_back(b.pad(result[i], fill[i], low, high));
    }
    result = combine(b, shifted, result);
  }
  return result;
}

}  // namespace

Values scan(Builder& b, const Values& operands, const Values& fill, int64_t dim, const Combine& combine) {
  constexpr int64_t kBlock = 16;
  const Dims dims = operands[0].dims();
  if (dims.empty()) return operands;
  const auto d = static_cast<size_t>(dim);
  const int64_t size = dims[d], blocks = (size + kBlock - 1) / kBlock;
  if (blocks <= 2) return scan_in_steps(b, operands, fill, d, combine);
  // Scans within blocks first, then over the blocks' ends, so that only a few steps process all elements.
  Dims padding(dims.size(), 0), blocked = dims, ends = dims, whole = dims;
  padding[d] = blocks * kBlock - size;
  blocked[d] = blocks;
  blocked.insert(blocked.begin() + dim + 1, kBlock);
  ends[d] = blocks;
  whole[d] = blocks * kBlock;
  Values parts, totals, before;
  for (size_t i = 0; i < operands.size(); ++i)
    parts.push_back(b.reshape(b.pad(operands[i], fill[i], Dims(dims.size(), 0), padding), blocked));
  parts = scan_in_steps(b, std::move(parts), fill, d + 1, combine);
  for (const Value part : parts)
    totals.push_back(b.reshape(b.slice_dim(part, dim + 1, kBlock - 1, kBlock), ends));
  totals = scan(b, totals, fill, dim, combine);
  Dims low(dims.size(), 0), high(dims.size(), 0), along;
  low[d] = 1;
  high[d] = -1;
  for (int64_t i = 0; i < static_cast<int64_t>(blocked.size()); ++i)
    if (i != dim + 1) along.push_back(i);
  for (size_t i = 0; i < totals.size(); ++i)
    before.push_back(b.broadcast_in_dim(b.pad(totals[i], fill[i], low, high), blocked, along));
  Values results = combine(b, before, parts);
  for (Value& result : results) result = b.slice_dim(b.reshape(result, whole), dim, 0, size);
  return results;
}

namespace {

Value combined(Builder& b, Running kind, Value earlier, Value later) {
  return kind == Running::kSum ? b.add(earlier, later) : b.multiply(earlier, later);
}

Value total(Builder& b, Running kind, Value x, int64_t dim) {
  return kind == Running::kSum ? b.reduce_sum(x, {dim}) : b.reduce_product(x, {dim});
}

// Combines the few elements along `dim` one after the other, beginning with `before` (empty: nothing).
Value in_turn(Builder& b, Value x, Value before, int64_t dim, Running kind, bool from_end) {
  const int64_t size = x.dim(dim);
  Values parts(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) {
    const int64_t place = from_end ? size - 1 - i : i;
    const Value part = b.slice_dim(x, dim, place, place + 1);
    before = before ? combined(b, kind, before, part) : part;
    parts[static_cast<size_t>(place)] = before;
  }
  return b.concatenate(parts, dim);
}

Value running_of_few(Builder& b, Value x, int64_t dim, Value neutral, Running kind, bool from_end) {
  const Value ordered = from_end ? b.reverse(x, {dim}) : x;
  const Value result =
      scan(b, {ordered}, {neutral}, dim, [kind](Builder& body, const Values& earlier, const Values& later) {
        return Values{combined(body, kind, earlier[0], later[0])};
      })[0];
  return from_end ? b.reverse(result, {dim}) : result;
}

}  // namespace

// A block's total is a plain reduction, so x is read twice and written once. XLA's CPU compiler makes
// straight code of the 16 steps. It takes 0.4 s to compile them, so a few elements have the steps of scan().
Value running(Builder& b, Value x, int64_t dim, Running kind, bool from_end) {
  constexpr int64_t kBlock = 16, kMany = 1 << 16;
  if (x.rank() == 0) return x;
  const Value neutral = b.splat(kind == Running::kSum ? 0 : 1, Type{x.dtype(), {}});
  if (x.type().numel() < kMany) return running_of_few(b, x, dim, neutral, kind, from_end);
  const auto d = static_cast<size_t>(dim);
  const int64_t size = x.dim(dim), blocks = (size + kBlock - 1) / kBlock;
  if (blocks <= 1) return in_turn(b, x, {}, dim, kind, from_end);
  Dims padding(x.dims().size(), 0), low = padding, high = padding, whole = x.dims(), blocked = x.dims();
  padding[d] = blocks * kBlock - size;
  low[d] = from_end ? -1 : 1;
  high[d] = -low[d];
  whole[d] = blocks * kBlock;
  blocked[d] = blocks;
  blocked.insert(blocked.begin() + dim + 1, kBlock);
  Dims first = blocked;
  first[d + 1] = 1;
  const Value parts = b.reshape(b.pad(x, neutral, Dims(padding.size(), 0), padding), blocked);
  const Value totals = running(b, total(b, kind, parts, dim + 1), dim, kind, from_end);
  const Value before = b.reshape(b.pad(totals, neutral, low, high), first);
  const Value result = in_turn(b, parts, before, dim + 1, kind, from_end);
  return b.slice_dim(b.reshape(result, whole), dim, 0, size);
}

Centred centre(Builder& b, Value x, const Dims& dims, bool infinite) {
  Dims kept, start(x.dims().size(), 0), limit = x.dims();
  int64_t count = 1;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (std::find(dims.begin(), dims.end(), i) == dims.end()) {
      kept.push_back(i);
      continue;
    }
    count *= x.dim(i);
    limit[static_cast<size_t>(i)] = std::min<int64_t>(1, x.dim(i));
  }
  const auto mean = [&](Value v) {
    const Value sum = b.reduce_sum(v, dims);
    return b.divide(sum, b.splat(count, sum.type()));
  };
  const auto spread = [&](Value v) { return b.broadcast_in_dim(v, x.dims(), kept); };
  if (count == 0) {
    const Value nothing = mean(x);
    return {nothing, b.subtract(x, spread(nothing))};
  }
  Dims places;
  for (int64_t i : kept) places.push_back(x.dim(i));
  Value first = b.reshape(b.slice(x, start, limit), places);
  // The distances from an infinity would be NaN.
  if (infinite && stablehlo::is_float(x.dtype()))
    first = b.select(b.is_finite(first), first, zeros(b, first.type()));
  const Value from_first = b.subtract(x, spread(first)), rest = mean(from_first);
  return {b.add(first, rest), b.subtract(from_first, spread(rest))};
}

Dims all_dims(const Value& x) {
  Dims dims(static_cast<size_t>(x.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

Values repeat(Builder& b, int64_t count, const Values& state, const Step& step) {
  if (count == 0) return state;
  const Type number{DType::kS32, {}};
  Values init = {b.splat(0, number)};
  init.insert(init.end(), state.begin(), state.end());
  Values end = b.while_(
      init,
      [&](Builder& b, std::span<const Value> in) {
        return Values{b.compare(in[0], b.splat(count, number), Compare::kLt)};
      },
      [&](Builder& b, std::span<const Value> in) {
        Values next = step(b, in[0], Values(in.begin() + 1, in.end()));
        next.insert(next.begin(), b.add(in[0], b.splat(1, number)));
        return next;
      });
  return {end.begin() + 1, end.end()};
}

}  // namespace sluice::ops
