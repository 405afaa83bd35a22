// Matches a gather or scatter of single elements (ops/indexing: gather_elements, scatter_elements) whose
// positions are equal along other dimensions than the one that they are places of, as in
// x.gather(1, index.unsqueeze(2).expand({-1, -1, width})), and in its gradient, a scatter.
// Makes a gather or scatter of whole slices along those dimensions: one place for each row in place of one
// for each element. A TPU sorts the places of a scatter, and a CPU goes through them one by one. The order in
// which updates reach an element stays the same. For every target.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "sluice/patterns/table.h"

namespace sluice::patterns {
namespace broadcast_index_detail {

using stablehlo::Builder;
using stablehlo::Dims;
using stablehlo::Operation;
using stablehlo::Value;
using stablehlo::Values;

size_t at(int64_t i) { return static_cast<size_t>(i); }

bool is_equal_along(const Rewriter& r, Value v, int64_t dim);

// Returns whether the elements of a reshape's result are equal along `dim`, which is so if `dim` is made of
// whole dimensions of the source along which the source's elements are equal.
bool reshape_is_equal_along(const Rewriter& r, Value source, Value result, int64_t dim) {
  int64_t stride = 1;  // of `dim`, in elements
  for (int64_t d = dim + 1; d < result.rank(); ++d) stride *= result.dim(d);
  const int64_t end = stride * result.dim(dim);
  int64_t reached = 1;
  for (int64_t d = source.rank() - 1; d >= 0 && reached < end; --d) {
    const int64_t next = reached * source.dim(d);
    if (reached < stride ? next > stride : next > end || !is_equal_along(r, source, d)) return false;
    reached = next;
  }
  return reached == end;
}

// Returns whether v's elements are known to be equal along `dim`.
bool is_equal_along(const Rewriter& r, Value v, int64_t dim) {
  if (v.dim(dim) <= 1) return true;
  const Operation* const op = r.maker(v);
  if (op == nullptr || op->operands.empty()) return false;
  const Value x = op->operands[0];
  if (op->is("stablehlo.convert")) return is_equal_along(r, x, dim);
  if (op->is("stablehlo.slice")) return is_equal_along(r, x, dim);
  if (op->is("stablehlo.reshape")) return reshape_is_equal_along(r, r.before_reshapes(x), v, dim);
  if (op->is("stablehlo.transpose")) return is_equal_along(r, x, op->attributes.list("permutation")[at(dim)]);
  if (op->is("stablehlo.broadcast_in_dim")) {
    const Dims to = op->attributes.list("broadcast_dimensions");
    const auto found = std::find(to.begin(), to.end(), dim);
    return found == to.end() || is_equal_along(r, x, found - to.begin());
  }
  if (op->is("stablehlo.optimization_barrier")) {
    for (size_t i = 0; i < op->results.size(); ++i)
      if (op->results[i] == v) return is_equal_along(r, op->operands[i], dim);
  }
  return false;
}

// The places of single elements: each element's own place, but index[…] along `dim`.
struct Places {
  Value index;
  int64_t dim = 0;
};

// Reads the indices that ops/indexing makes: [dims of the index…, rank].
std::optional<Places> read_places(const Rewriter& r, Value indices, int64_t rank) {
  const Operation* const joined = r.made_by(indices, "stablehlo.concatenate");
  if (joined == nullptr || indices.rank() != rank + 1 ||
      static_cast<int64_t>(joined->operands.size()) != rank ||
      joined->attributes.list("dimension").at(0) != rank)
    return {};
  Places found;
  for (int64_t d = 0; d < rank; ++d) {
    const Operation* const column = r.made_by(joined->operands[at(d)], "stablehlo.reshape");
    if (column == nullptr || column->results[0].dim(rank) != 1) return {};
    const Value place = column->operands[0];
    Dims dims = indices.dims();
    dims.pop_back();
    if (place.dims() != dims) return {};
    const Operation* const own = r.made_by(place, "stablehlo.iota");
    if (own != nullptr && own->attributes.list("iota_dimension").at(0) == d) continue;
    if (found.index) return {};
    found = {place, d};
  }
  return found.index ? std::optional(found) : std::nullopt;
}

// The places of slices that are whole along the dimensions `shared`. The others are `apart`.
struct Slices {
  Dims shared, apart;
  Value indices;  // [sizes along `apart`…, places along each of `apart`]
};

std::optional<Slices> find_slices(Rewriter& r, Value indices, int64_t rank) {
  const std::optional<Places> places = read_places(r, indices, rank);
  if (!places) return {};
  const Value index = places->index;
  Slices found;
  Dims limits = index.dims(), sizes;
  bool fewer = false;
  for (int64_t d = 0; d < rank; ++d) {
    if (d == places->dim || !is_equal_along(r, index, d)) {
      found.apart.push_back(d);
      sizes.push_back(index.dim(d));
      continue;
    }
    found.shared.push_back(d);
    fewer = fewer || index.dim(d) > 1;
    limits[at(d)] = std::min<int64_t>(limits[at(d)], 1);
  }
  if (!fewer) return {};
  Builder& b = r.b;
  const Value one_each = b.reshape(b.slice(index, Dims(at(rank), 0), limits), sizes);
  Dims column = sizes;
  column.push_back(1);
  Values parts;
  for (size_t i = 0; i < found.apart.size(); ++i) {
    const Value part =
        found.apart[i] == places->dim ? one_each : b.iota(one_each.type(), static_cast<int64_t>(i));
    parts.push_back(b.reshape(part, column));
  }
  found.indices = b.concatenate(parts, static_cast<int64_t>(sizes.size()));
  return found;
}

// Returns whether the operation reads or writes single elements, at places along all dimensions.
bool are_elements(const Operation& op, std::string_view windows, std::string_view collapsed,
                  std::string_view map, int64_t rank) {
  const auto is_all = [&](std::string_view name) {
    const Dims dims = op.attributes.list(name);
    for (size_t i = 0; i < dims.size(); ++i)
      if (dims[i] != static_cast<int64_t>(i)) return false;
    return static_cast<int64_t>(dims.size()) == rank;
  };
  return op.attributes.list(windows).empty() && is_all(collapsed) && is_all(map) &&
         op.attributes.list("index_vector_dim") == Dims{rank};
}

Values gathered_slices(Rewriter& r, const Operation& op) {
  const Value x = op.operands[0], result = op.results[0];
  if (!are_elements(op, "offset_dims", "collapsed_slice_dims", "start_index_map", x.rank())) return {};
  const std::optional<Slices> slices = find_slices(r, op.operands[1], x.rank());
  if (!slices) return {};
  Dims sizes(at(x.rank()), 1);
  for (int64_t d : slices->shared) sizes[at(d)] = result.dim(d);
  return {r.b.gather(x, slices->indices,
                     {.offset_dims = slices->shared,
                      .collapsed_slice_dims = slices->apart,
                      .start_index_map = slices->apart,
                      .index_vector_dim = static_cast<int64_t>(slices->apart.size()),
                      .slice_sizes = sizes})};
}

Values scattered_slices(Rewriter& r, const Operation& op) {
  const Value x = op.operands[0];
  if (!are_elements(op, "update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims",
                    x.rank()))
    return {};
  const std::optional<Slices> slices = find_slices(r, op.operands[1], x.rank());
  if (!slices) return {};
  const stablehlo::Block& body = op.bodies[0];
  const stablehlo::Region same = [&](Builder&, std::span<const Value> arguments) {
    std::unordered_map<int32_t, Value> values;
    for (size_t i = 0; i < arguments.size(); ++i) values[body.arguments[i].id()] = arguments[i];
    const auto now = [&](const Values& list) {
      Values mapped;
      for (Value v : list) mapped.push_back(values.contains(v.id()) ? values.at(v.id()) : v);
      return mapped;
    };
    for (const auto& inner : body.operations) {
      const Values made = r.copy(*inner, now(inner->operands), values);
      for (size_t i = 0; i < made.size(); ++i) values[inner->results[i].id()] = made[i];
    }
    return now(body.results);
  };
  return {r.b.scatter(x, slices->indices, op.operands[2],
                      {.update_window_dims = slices->shared,
                       .inserted_window_dims = slices->apart,
                       .scatter_dims_to_operand_dims = slices->apart,
                       .index_vector_dim = static_cast<int64_t>(slices->apart.size())},
                      same)};
}

}  // namespace broadcast_index_detail

void broadcast_index(Rewriter& r) {
  namespace detail = broadcast_index_detail;
  r.each([&](const stablehlo::Operation& op) -> stablehlo::Values {
    if (op.is("stablehlo.gather")) return detail::gathered_slices(r, op);
    if (op.is("stablehlo.scatter")) return detail::scattered_slices(r, op);
    return {};
  });
}

}  // namespace sluice::patterns
