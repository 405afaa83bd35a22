// The device's own rows: reading and writing a strided part of a storage, and the conversions of copy_.
//
// A tensor is sizes, strides and an offset over a storage, and the storage's value covers all of it. Reading
// turns the strides into reshape, slice, transpose and broadcast if possible, writing into
// dynamic_update_slice. The remaining cases (windows that overlap, steps that do not divide) become a gather
// or a scatter over computed positions.
#include <algorithm>
#include <numeric>

#include "sluice/base/text/join.h"
#include "sluice/ops/common.h"
#include "sluice/ops/row.h"

namespace sluice::ops {
namespace view {

// The strides of the value in the storage, and the strided part that is meant (see device/storage.cc,
// record_view).
struct Geometry {
  Dims value_strides;  // empty: row-major
  Dims sizes, strides;
  int64_t offset = 0;
};

Geometry decode(const Dims& ints) {
  Geometry g;
  auto at = ints.begin();
  auto take = [&](int64_t n) {
    Dims part(at, at + n);
    at += n;
    return part;
  };
  g.value_strides = take(*at++);
  const int64_t rank = *at++;
  g.sizes = take(rank);
  g.strides = take(rank);
  g.offset = *at;
  return g;
}

// Returns the dims sorted by falling stride.
Dims by_stride(const Dims& strides) {
  Dims order(strides.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return strides[static_cast<size_t>(a)] > strides[static_cast<size_t>(b)];
  });
  return order;
}

Dims permuted(const Dims& dims, const Dims& order) {
  Dims result;
  for (int64_t i : order) result.push_back(dims[static_cast<size_t>(i)]);
  return result;
}

Dims inverse(const Dims& order) {
  Dims result(order.size());
  for (size_t i = 0; i < order.size(); ++i) result[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return result;
}

// Returns the value as the storage's elements in their order.
Value flatten(Builder& b, Value value, const Dims& strides) {
  if (!strides.empty()) value = b.transpose(value, by_stride(strides));
  return b.reshape(value, {value.type().numel()});
}

Value unflatten(Builder& b, Value flat, const Dims& dims, const Dims& strides) {
  if (strides.empty()) return b.reshape(flat, dims);
  const Dims order = by_stride(strides);
  return b.transpose(b.reshape(flat, permuted(dims, order)), inverse(order));
}

// The strided part as a box of a reshaped storage: pad the elements to `padded`, reshape to `shape`, and take
// the box of size `box` from `start`. Its dims are the tensor's `kept` dims (more than one element, stride
// not 0).
struct Box {
  Dims kept;  // dims of the tensor, by falling stride
  int64_t padded = 0;
  Dims shape, start, box;
};

bool find_box(const Geometry& g, int64_t elements, Box& found) {
  for (int64_t d : by_stride(g.strides)) {
    if (g.sizes[static_cast<size_t>(d)] > 1 && g.strides[static_cast<size_t>(d)] > 0) found.kept.push_back(d);
  }
  int64_t rest = g.offset;
  int64_t outer = 0;  // the stride of the previous dim
  for (int64_t d : found.kept) {
    const int64_t stride = g.strides[static_cast<size_t>(d)];
    const int64_t size = g.sizes[static_cast<size_t>(d)];
    if (outer == 0) {
      found.shape.push_back((elements + stride - 1) / stride);
      found.padded = found.shape.back() * stride;
    } else {
      if (outer % stride != 0) return false;
      found.shape.push_back(outer / stride);
    }
    found.start.push_back(rest / stride);
    found.box.push_back(size);
    if (found.start.back() + size > found.shape.back()) return false;
    rest %= stride;
    outer = stride;
  }
  if (found.kept.empty()) found.padded = outer = elements;
  if (outer != 1) {
    found.shape.push_back(outer);
    found.start.push_back(rest);
    found.box.push_back(1);
  }
  return true;
}

Value pad_to(Builder& b, Value flat, int64_t elements) {
  const int64_t missing = elements - flat.dim(0);
  return missing == 0 ? flat : b.pad(flat, b.splat(0, {flat.dtype(), {}}), {0}, {missing});
}

// Returns the positions of the part's elements in the storage, one row each: [n, 1].
Value positions(Builder& b, const Geometry& g, int64_t elements) {
  const DType index = elements > INT32_MAX ? DType::kS64 : DType::kS32;
  const Type type{index, g.sizes};
  Value sum = b.splat(g.offset, type);
  for (size_t d = 0; d < g.sizes.size(); ++d) {
    if (g.strides[d] == 0 || g.sizes[d] == 1) continue;
    sum = b.add(sum, b.multiply(b.iota(type, static_cast<int64_t>(d)), b.splat(g.strides[d], type)));
  }
  return b.reshape(sum, {type.numel(), 1});
}

Value read_part(Builder& b, Value flat, const Geometry& g) {
  const int64_t elements = flat.dim(0);
  if (Type{flat.dtype(), g.sizes}.numel() == 0) return b.splat(0, {flat.dtype(), g.sizes});
  Box box;
  if (!find_box(g, elements, box)) {
    Value part = b.gather(
        flat, positions(b, g, elements),
        {.collapsed_slice_dims = {0}, .start_index_map = {0}, .index_vector_dim = 1, .slice_sizes = {1}});
    return b.reshape(part, g.sizes);
  }
  Value part = b.reshape(pad_to(b, flat, box.padded), box.shape);
  if (box.box != box.shape) {
    Dims limit = box.start;
    for (size_t i = 0; i < limit.size(); ++i) limit[i] += box.box[i];
    part = b.slice(part, box.start, limit);
  }
  part = b.reshape(part, permuted(g.sizes, box.kept));
  // Reorders from falling strides to the tensor's order, then adds the dims of one element and of stride 0.
  Dims target = box.kept;
  std::sort(target.begin(), target.end());
  Dims order;
  for (int64_t d : target) order.push_back(std::find(box.kept.begin(), box.kept.end(), d) - box.kept.begin());
  part = b.transpose(part, order);
  for (size_t d = 0; d < g.sizes.size(); ++d) {
    if (g.strides[d] == 0 && g.sizes[d] > 1) return b.broadcast_in_dim(part, g.sizes, target);
  }
  return b.reshape(part, g.sizes);
}

Value write_part(Builder& b, Value flat, Value part, Geometry g) {
  const int64_t elements = flat.dim(0);
  // All elements along a dim of stride 0 are one element; the writers that may do this (fill_, zero_) write
  // one value.
  for (size_t d = 0; d < g.sizes.size(); ++d) {
    if (g.strides[d] != 0 || g.sizes[d] <= 1) continue;
    part = b.slice_dim(part, static_cast<int64_t>(d), 0, 1);
    g.sizes[d] = 1;
  }
  Box box;
  if (!find_box(g, elements, box)) {
    return b.scatter(
        flat, positions(b, g, elements), b.reshape(part, {part.type().numel()}),
        {.inserted_window_dims = {0}, .scatter_dims_to_operand_dims = {0}, .index_vector_dim = 1},
        [](Builder&, std::span<const Value> args) { return Values{args[1]}; });
  }
  // Dims of one element stay in place: only the order of the kept dims matters.
  Dims order = box.kept;
  for (int64_t d = 0; d < part.rank(); ++d) {
    if (std::find(box.kept.begin(), box.kept.end(), d) == box.kept.end()) order.push_back(d);
  }
  part = b.reshape(b.transpose(part, order), box.box);
  Value padded = b.reshape(pad_to(b, flat, box.padded), box.shape);
  Values starts;
  for (int64_t s : box.start) starts.push_back(b.splat(s, {DType::kS64, {}}));
  Value written = box.box == box.shape ? part : b.dynamic_update_slice(padded, part, starts);
  written = b.reshape(written, {box.padded});
  return box.padded == elements ? written : b.slice(written, {0}, {elements});
}

// Returns the number of elements from a part's first to its last element.
int64_t span(const Geometry& g) {
  int64_t last = 0;
  for (size_t d = 0; d < g.sizes.size(); ++d) last += (g.sizes[d] - 1) * g.strides[d];
  return last + 1;
}

// Returns the place where the part begins, as a run-time number (its geometry then has offset 0).
Values run_time_offset(Emit& e) { return {e.scalar("offset", DType::kS64)}; }

Values emit_read(Emit& e) {
  const Geometry g = decode(e.ints("ints"));
  Value flat = flatten(e.b, e.tensor("self"), g.value_strides);
  if (e.has("offset")) flat = e.b.dynamic_slice(flat, run_time_offset(e), {span(g)});
  return {read_part(e.b, flat, g)};
}

Values emit_write(Emit& e) {
  const Geometry g = decode(e.ints("ints"));
  const Value whole = e.tensor("self"), flat = flatten(e.b, whole, g.value_strides);
  Value written;
  if (e.has("offset")) {
    const Values from = run_time_offset(e);
    const Value window = e.b.dynamic_slice(flat, from, {span(g)});
    written = e.b.dynamic_update_slice(flat, write_part(e.b, window, e.tensor("other"), g), from);
  } else {
    written = write_part(e.b, flat, e.tensor("other"), g);
  }
  return {unflatten(e.b, written, whole.dims(), g.value_strides)};
}

Values emit_zeros(Emit& e) { return {e.b.splat(0, {*e.dtype("dtype"), e.ints("ints")})}; }
Values emit_broadcast(Emit& e) { return {e.b.broadcast(e.tensor("self"), e.ints("ints"))}; }

// Converts a float to an integer as LibTorch does on x86-64, where C++ leaves the result open: a float that
// does not fit 32 bits (64 for integers of 64 bits) becomes the lowest integer of that width, and a narrower
// integer takes its low bits. XLA would return the nearest integer.
Value whole(Builder& b, Value x, DType dtype) {
  using enum DType;
  const bool wide = dtype == kS64 || dtype == kU64, has_sign = dtype != kU32 && dtype != kU64;
  const DType with_sign = wide ? kS64 : kS32;
  const double past = wide ? 0x1p63 : 0x1p31;
  x = to(b, x, compute_type(x.dtype()));
  const Value inside = is_less(b, x, past), lowest = b.lowest(with_sign);
  const Value number = b.select(inside, b.convert(x, with_sign), b.broadcast(lowest, x.dims()));
  if (has_sign) return b.convert(number, dtype);
  // Larger numbers have the range of another 2^31 or 2^63.
  const Value fits = is_less(b, x, 2 * past),
              large = b.select(fits, b.convert(x, dtype), zeros(b, {dtype, x.dims()}));
  const Value is_large = b.compare(x, number_like(b, past, x), Compare::kGe);
  return b.select(is_large, large, b.convert(number, dtype));
}

Values emit_convert(Emit& e) {
  Value x = e.tensor("self");
  const DType dtype = *e.dtype("dtype");
  if (dtype == DType::kPred) return {e.b.compare(x, e.b.splat(0, x.type()), Compare::kNe)};
  if (x.dtype() == DType::kPred) return {e.operand("self", dtype)};
  if (!stablehlo::is_complex(dtype)) x = e.b.real(x);
  if (stablehlo::is_float(x.dtype()) && stablehlo::is_integer(dtype)) return {whole(e.b, x, dtype)};
  return {to(e.b, x, dtype)};
}

// Returns numbers that have only one part, flat: a complex number becomes its two parts, a predicate a byte.
Value as_plain(Builder& b, Value flat) {
  if (flat.dtype() == DType::kPred) return b.convert(flat, DType::kU8);
  if (!stablehlo::is_complex(flat.dtype())) return flat;
  const int64_t count = flat.dim(0);
  const Value parts[] = {b.reshape(b.real(flat), {count, 1}), b.reshape(b.imaginary(flat), {count, 1})};
  return b.reshape(b.concatenate(parts, 1), {2 * count});
}

Value from_plain(Builder& b, Value flat, DType dtype) {
  if (dtype == DType::kPred) return b.compare(flat, b.splat(0, flat.type()), Compare::kNe);
  if (!stablehlo::is_complex(dtype)) return flat;
  const int64_t count = flat.dim(0) / 2;
  Value pairs = b.reshape(flat, {count, 2});
  auto part = [&](int64_t i) { return b.reshape(b.slice_dim(pairs, 1, i, i + 1), {count}); };
  return b.complex(part(0), part(1));
}

// Returns the bytes of a storage as elements of another type, in the storage's order, flat.
Values emit_as_type(Emit& e) {
  Builder& b = e.b;
  const DType to = *e.dtype("dtype");
  const DType plain = to == DType::kPred ? DType::kU8 : stablehlo::real_dtype(to);
  Value flat = as_plain(b, flatten(b, e.tensor("self"), e.ints("ints")));
  const auto from_size = static_cast<int64_t>(dtype_size(flat.dtype()));
  const auto to_size = static_cast<int64_t>(dtype_size(plain));
  const int64_t bytes = flat.dim(0) * from_size, count = bytes / to_size;
  e.check(bytes % static_cast<int64_t>(dtype_size(to)) == 0,
          base::str("a storage of ", bytes, " bytes is viewed as ", dtype_name(to), ", elements of ",
                    dtype_size(to), " bytes; expected a multiple of that"));
  if (from_size < to_size) flat = b.reshape(flat, {count, to_size / from_size});
  return {from_plain(b, b.reshape(b.bitcast_convert(flat, plain), {count}), to)};
}

Values emit_conjugate(Emit& e) { return {e.b.conjugate(e.tensor("self"))}; }
Values emit_negate(Emit& e) { return {e.b.negate(e.tensor("self"))}; }

// Returns the elements of a storage that has grown: zeros after the old ones.
Values emit_grow(Emit& e) { return {pad_to(e.b, flatten(e.b, e.tensor("self"), {}), e.ints("ints")[0])}; }

// Returns the values unchanged, but none before all exist, and not merged with the values without the
// barrier.
Values emit_hold(Emit& e) { return e.b.optimization_barrier(e.tensors("tensors")); }

constexpr Row kViewRows[] = {
    {.name = "sluice::hold", .emit = emit_hold},
    {.name = "sluice::view", .emit = emit_read},
    {.name = "sluice::view_write", .emit = emit_write},
    {.name = "sluice::zeros", .emit = emit_zeros},
    {.name = "sluice::convert", .emit = emit_convert},
    {.name = "sluice::broadcast", .emit = emit_broadcast},
    {.name = "sluice::grow", .emit = emit_grow},
    {.name = "sluice::as_type", .emit = emit_as_type},
    {.name = "sluice::conjugate", .emit = emit_conjugate},
    {.name = "sluice::negate", .emit = emit_negate},
};

}  // namespace view

std::span<const Row> view_rows() { return view::kViewRows; }

}  // namespace sluice::ops
