#include "sluice/ops/indexing/indexing.h"

#include <limits>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"

namespace sluice::ops {
namespace {

// Returns the position of each element of `index`, with `index` itself along `dim`: [index dims…, rank].
Value element_positions(Builder& b, Value index, int64_t dim) {
  Values parts;
  Dims column = index.dims();
  column.push_back(1);
  for (int64_t d = 0; d < index.rank(); ++d)
    parts.push_back(b.reshape(d == dim ? index : positions(b, index.dims(), d), column));
  return parts.size() == 1 ? parts[0] : b.concatenate(parts, index.rank());
}

Dims all_dims(int64_t rank) {
  Dims dims;
  for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
  return dims;
}

}  // namespace

Value narrow_index(Builder& b, Value index, int64_t size) {
  if (size > std::numeric_limits<int32_t>::max())
    throw_error(Code::kOutOfRange,
                base::str("expected a dimension of fewer than 2^31 elements, found ", size));
  return to(b, index, DType::kS32);
}

Value wrap_index(Builder& b, Value index, int64_t size) {
  return b.select(is_less(b, index, 0), b.add(index, b.splat(size, index.type())), index);
}

Value positions(Builder& b, const Dims& dims, int64_t dim) { return b.iota(Type{DType::kS32, dims}, dim); }

Value take_along(Builder& b, Value x, int64_t dim, Value index) {
  stablehlo::GatherDims dims{.collapsed_slice_dims = {dim},
                             .start_index_map = {dim},
                             .index_vector_dim = index.rank(),
                             .slice_sizes = x.dims()};
  for (int64_t d = 0; d < x.rank(); ++d)
    if (d != dim) dims.offset_dims.push_back(d < dim ? d : d + index.rank() - 1);
  dims.slice_sizes[at(dim)] = 1;
  if (x.dim(dim) == 0) {  // nothing can be read, which is an error unless no element is requested
    Dims result = x.dims();
    result.erase(result.begin() + dim);
    result.insert(result.begin() + dim, index.dims().begin(), index.dims().end());
    return zeros(b, Type{x.dtype(), result});
  }
  return b.gather(x, index, dims);
}

Value gather_elements(Builder& b, Value x, int64_t dim, Value index) {
  if (x.type().numel() == 0 || index.type().numel() == 0) return zeros(b, Type{x.dtype(), index.dims()});
  const int64_t rank = x.rank();
  return b.gather(x, element_positions(b, index, dim),
                  {.offset_dims = {},
                   .collapsed_slice_dims = all_dims(rank),
                   .start_index_map = all_dims(rank),
                   .index_vector_dim = rank,
                   .slice_sizes = Dims(at(rank), 1)});
}

Value scatter_elements(Builder& b, Value x, int64_t dim, Value index, Value updates,
                       const stablehlo::Region& body) {
  if (x.type().numel() == 0 || index.type().numel() == 0) return x;
  const int64_t rank = x.rank();
  return b.scatter(x, element_positions(b, index, dim), updates,
                   {.update_window_dims = {},
                    .inserted_window_dims = all_dims(rank),
                    .scatter_dims_to_operand_dims = all_dims(rank),
                    .index_vector_dim = rank},
                   body);
}

Value scatter_slices(Builder& b, Value x, int64_t dim, Value index, Value updates,
                     const stablehlo::Region& body) {
  if (x.type().numel() == 0 || updates.type().numel() == 0) return x;
  stablehlo::ScatterDims dims{
      .inserted_window_dims = {dim}, .scatter_dims_to_operand_dims = {dim}, .index_vector_dim = 1};
  for (int64_t d = 0; d < x.rank(); ++d)
    if (d != dim) dims.update_window_dims.push_back(d);
  return b.scatter(x, index, updates, dims, body);
}

stablehlo::Region add_update() {
  return [](Builder& b, std::span<const Value> v) -> Values { return {b.add(v[0], v[1])}; };
}
stablehlo::Region multiply_update() {
  return [](Builder& b, std::span<const Value> v) -> Values { return {b.multiply(v[0], v[1])}; };
}
stablehlo::Region replace_by_update() {
  return [](Builder&, std::span<const Value> v) -> Values { return {v[1]}; };
}
stablehlo::Region larger_of_update() {
  return [](Builder& b, std::span<const Value> v) -> Values { return {b.maximum(v[0], v[1])}; };
}
stablehlo::Region smaller_of_update() {
  return [](Builder& b, std::span<const Value> v) -> Values { return {b.minimum(v[0], v[1])}; };
}

}  // namespace sluice::ops
