// Matches operations that read x = slice(p) of an argument p whose layout is padded (mesh/layout.h), and what
// follows from them: x is p without the last places of one dimension.
// Makes the same operations of all of p, as long as the padding cannot reach an element: an elementwise
// operation, a product along another dimension, rows that are added up. Where a dimension with padding is
// summed, the padding first becomes the reduction's initial value; where rows are gathered, places are
// limited to the places of x; where a result is padded, the padding becomes the result's. So a head's logits
// have the padding of its vocabulary, and the loss masks them. XLA's partitioner cuts p evenly; x it would
// hold whole in places. What no rule knows reads the slice. For every target.
//
// The values in the padding may be anything, also NaN, except where Longer::zeros says 0.
#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "sluice/patterns/calls.h"
#include "sluice/patterns/moves/constants.h"
#include "sluice/patterns/table.h"
#include "sluice/stablehlo/builder/elementwise.h"
#include "sluice/stablehlo/splat.h"

namespace sluice::patterns {
namespace padding_detail {

// A value that begins, along one dimension, with all of another value.
struct Longer {
  Value value;
  int64_t dim = 0;
  bool zeros = false;  // only zeros follow

  int64_t size() const { return value.dim(dim); }
};

bool contains(const Dims& list, int64_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// The dimensions of a product's operand that are neither in a batch nor summed.
Dims free_dims(const Operation& op, size_t operand) {
  const std::string side = operand == 0 ? "lhs_" : "rhs_";
  const Dims batch = op.attributes.list(side + "batch"), summed = op.attributes.list(side + "contract");
  Dims free;
  for (int64_t d = 0; d < op.operands[operand].rank(); ++d)
    if (!contains(batch, d) && !contains(summed, d)) free.push_back(d);
  return free;
}

int64_t elements_before(const Dims& dims, int64_t dim) {
  int64_t product = 1;
  for (int64_t i = 0; i < dim; ++i) product *= dims[static_cast<size_t>(i)];
  return product;
}

// Which dimension of a result each dimension of an operand is: kNone for one that is not a dimension of the
// result, or that no rule knows.
constexpr int64_t kNone = -1;
using Map = std::vector<int64_t>;

Map iota(int64_t count) {
  Map map;
  for (int64_t d = 0; d < count; ++d) map.push_back(d);
  return map;
}

Map map_of_reshape(const Dims& from, const Dims& to) {
  Map map(from.size(), kNone);
  for (size_t d = 0; d < from.size(); ++d)
    for (size_t e = 0; e < to.size(); ++e)
      if (from[d] > 1 && from[d] == to[e] &&
          elements_before(from, static_cast<int64_t>(d)) == elements_before(to, static_cast<int64_t>(e)))
        map[d] = static_cast<int64_t>(e);
  return map;
}

Map map_of_product(const Operation& op, size_t operand) {
  Map map(static_cast<size_t>(op.operands[operand].rank()), kNone);
  auto next = static_cast<int64_t>(op.attributes.list("lhs_batch").size());
  if (operand == 1) next += static_cast<int64_t>(free_dims(op, 0).size());
  for (const int64_t d : free_dims(op, operand)) map[static_cast<size_t>(d)] = next++;
  return map;
}

// Keeps the dimensions that the operation leaves as they are.
template <typename Keeps>
Map map_of_kept(int64_t rank, const Keeps& keeps) {
  Map map = iota(rank);
  for (int64_t& d : map)
    if (!keeps(static_cast<size_t>(d))) d = kNone;
  return map;
}

Map map_of_broadcast(const Operation& op) {
  Map map = op.attributes.list("broadcast_dimensions");
  for (size_t d = 0; d < map.size(); ++d)
    if (op.operands[0].dims()[d] != op.results[0].dim(map[d])) map[d] = kNone;
  return map;
}

Map map_of_reduction(const Operation& op) {
  const Dims gone = op.attributes.list("dimensions");
  int64_t next = 0;
  Map map;
  for (int64_t d = 0; d < op.operands[0].rank(); ++d) map.push_back(contains(gone, d) ? kNone : next++);
  return map;
}

Map map_of_transpose(const Operation& op) {
  const Dims permutation = op.attributes.list("permutation");
  Map map(permutation.size(), kNone);
  for (size_t e = 0; e < permutation.size(); ++e)
    map[static_cast<size_t>(permutation[e])] = static_cast<int64_t>(e);
  return map;
}

Map map_of_slice(const Operation& op) {
  const Dims start = op.attributes.list("start_indices"), strides = op.attributes.list("strides");
  return map_of_kept(op.operands[0].rank(), [&](size_t d) {
    return start[d] == 0 && strides[d] == 1 && op.results[0].dims()[d] == op.operands[0].dims()[d];
  });
}

Map map_of_pad(const Operation& op) {
  const Dims low = op.attributes.list("edge_padding_low"), high = op.attributes.list("edge_padding_high"),
             interior = op.attributes.list("interior_padding");
  return map_of_kept(op.operands[0].rank(),
                     [&](size_t d) { return low[d] == 0 && high[d] == 0 && interior[d] == 0; });
}

// Returns the map of an operand, which is x; nothing for an operation without a rule.
std::optional<Map> map_of(const Operation& op, size_t operand, Value x) {
  if (op.results.size() != 1) return {};
  if (is_elementwise(op)) return iota(x.rank());
  if (op.is("stablehlo.dot_general")) return map_of_product(op, operand);
  if (op.is("stablehlo.concatenate"))
    return map_of_kept(
        x.rank(), [&](size_t d) { return op.attributes.list("dimension") != Dims{static_cast<int64_t>(d)}; });
  const bool is_reduction = op.is("stablehlo.reduce") && op.operands.size() == 2;
  const bool has_parameters = is_reduction || op.is("stablehlo.pad") || op.is("stablehlo.scatter");
  if (has_parameters && operand > 0) return Map(static_cast<size_t>(x.rank()), kNone);
  if (is_reduction) return map_of_reduction(op);
  if (op.is("stablehlo.pad")) return map_of_pad(op);
  if (op.is("stablehlo.scatter"))
    return map_of_kept(x.rank(), [&](size_t d) {
      return contains(op.attributes.list("inserted_window_dims"), static_cast<int64_t>(d));
    });
  if (op.is("stablehlo.transpose")) return map_of_transpose(op);
  if (op.is("stablehlo.reshape")) return map_of_reshape(x.dims(), op.results[0].dims());
  if (op.is("stablehlo.broadcast_in_dim")) return map_of_broadcast(op);
  if (op.is("stablehlo.slice")) return map_of_slice(op);
  return {};
}

// Returns whether an operation can have a longer result without a longer operand.
bool can_grow_alone(const Operation& op, int64_t dim) {
  if (op.is("stablehlo.iota")) return true;
  if (!op.is("stablehlo.broadcast_in_dim")) return false;
  const Dims to = op.attributes.list("broadcast_dimensions");
  const auto found = std::find(to.begin(), to.end(), dim);
  return found == to.end() || op.operands[0].dim(found - to.begin()) == 1;
}

// Returns whether the operation only moves elements, so that zeros stay zeros.
bool only_moves(const Operation& op) {
  return op.is("stablehlo.transpose") || op.is("stablehlo.reshape") || op.is("stablehlo.convert") ||
         op.is("stablehlo.slice");
}

// Returns whether all elements of the constant are one number.
bool is_splat(const Operation& op) {
  const std::string text = stablehlo::splat_text(op);
  return !text.empty() && text[0] != '[' && text[0] != '"';
}

class Lengthening {
 public:
  Lengthening(Rewriter& r, const std::vector<size_t>& parameters) : r_(r) {
    for (const size_t number : parameters) is_padded_[r.parameter_value(number).id()] = true;
  }

  // Returns what takes the place of the operation's results; empty: it stays.
  Values replaced(const Operation& op) {
    if (note_argument(op)) return {};
    if (op.is("stablehlo.optimization_barrier")) return barrier(op);
    if (op.results.size() != 1) return {};
    for (size_t k = 0; k < op.operands.size(); ++k) {
      const Longer* const known = find(operand(op, k));
      if (known == nullptr) continue;
      const Values made = replaced_for(op, k, *known);
      if (!made.empty()) return made;
    }
    return replaced_for_shape(op);
  }

 private:
  static constexpr int kMaxOperations = 64;

  const Longer* find(Value v) const {
    const auto found = longer_.find(v.id());
    return found == longer_.end() ? nullptr : &found->second;
  }

  // Returns an operand. A view is several reshapes in a row, and the first makes a vector: together they are
  // one reshape.
  Value operand(const Operation& op, size_t k) const {
    return op.is("stablehlo.reshape") ? r_.before_reshapes(op.operands[k]) : op.operands[k];
  }

  // Notes a slice of a padded argument.
  bool note_argument(const Operation& op) {
    if (!op.is("stablehlo.slice") || !is_padded_.count(op.operands[0].id())) return false;
    const Dims &whole = op.operands[0].dims(), &part = op.results[0].dims();
    std::optional<int64_t> dim;
    for (size_t d = 0; d < whole.size(); ++d) {
      if (whole[d] == part[d]) continue;
      if (dim || part[d] < 2) return true;  // the slice stays
      dim = static_cast<int64_t>(d);
    }
    if (!dim) return true;
    const Longer longer{op.operands[0], *dim, /*zeros=*/true};
    shapes_.try_emplace(part, *dim, longer.size());
    longer_.emplace(op.results[0].id(), longer);
    return true;
  }

  Values replaced_for(const Operation& op, size_t k, const Longer& known) {
    if (op.is("stablehlo.gather")) return k == 0 ? rows(op, known) : Values();
    if (op.is("stablehlo.pad") && pads_to(op, known)) return {masked(known, op.operands[0], op.operands[1])};
    if (op.is("stablehlo.dot_general") && is_summed(op, k, known.dim)) return product(op, k, known);
    const auto map = map_of(op, k, operand(op, k));
    if (!map) return {};
    const int64_t dim = (*map)[static_cast<size_t>(known.dim)];
    if (dim != kNone) return shortened(longer_result(op, dim, known.size()), op.results[0]);
    if (op.is("stablehlo.reduce") && k == 0)
      return r_.copy(op, {masked(known, op.operands[0], op.operands[1]), op.operands[1]});
    return {};
  }

  // The rows that are added up to a gradient of a padded argument.
  Values replaced_for_shape(const Operation& op) {
    if (!op.is("stablehlo.scatter")) return {};
    const auto found = shapes_.find(op.results[0].dims());
    if (found == shapes_.end()) return {};
    const auto [dim, size] = found->second;
    return shortened(longer_result(op, dim, size), op.results[0]);
  }

  // Returns the value that later operations read: the first part of the longer one.
  Values shortened(const std::optional<Longer>& longer, Value like) {
    if (!longer) return {};
    const Value part = r_.b.slice(longer->value, Dims(like.dims().size(), 0), like.dims());
    longer_.insert_or_assign(part.id(), *longer);
    return {part};
  }

  // Makes the operation with a longer result along `dim`.
  std::optional<Longer> longer_result(const Operation& op, int64_t dim, int64_t size) {
    Type type = op.results[0].type();
    type.dims[static_cast<size_t>(dim)] = size;
    Values operands;
    bool zeros = only_moves(op);
    for (size_t k = 0; k < op.operands.size(); ++k) {
      const auto map = map_of(op, k, operand(op, k));
      if (!map) return {};
      const auto at = std::find(map->begin(), map->end(), dim);
      if (at == map->end()) {
        operands.push_back(op.operands[k]);
        continue;
      }
      const Longer longer = needed(operand(op, k), at - map->begin(), size);
      zeros = zeros && longer.zeros;
      operands.push_back(longer.value);
    }
    if (operands == op.operands && !can_grow_alone(op, dim)) return {};
    if (op.is("stablehlo.slice"))
      return Longer{r_.b.slice(operands[0], op.attributes.list("start_indices"), limits(op, type), {}), dim,
                    zeros};
    return Longer{r_.copy(op, operands, {}, {type})[0], dim, zeros};
  }

  static Dims limits(const Operation& slice, const Type& longer) {
    Dims limit = slice.attributes.list("start_indices");
    for (size_t d = 0; d < limit.size(); ++d) limit[d] += longer.dims[d];
    return limit;
  }

  // Returns a value that begins with v: what is known, or v's own operation made longer if that costs little,
  // or v with zeros after it.
  Longer needed(Value v, int64_t dim, int64_t size) {
    int budget = kMaxOperations;
    if (is_known(v, dim, size)) return *find(v);
    if (costs_little(v, dim, size, budget)) {
      if (const auto made = made_again(v, dim, size)) {
        const Value part = shortened(made, v)[0];
        longer_.insert_or_assign(v.id(), *made);
        r_.replace_from_here(v, part);
        return *made;
      }
    }
    Dims high(v.dims().size(), 0);
    high[static_cast<size_t>(dim)] = size - v.dim(dim);
    const Value zero = r_.b.splat(0, Type{v.dtype(), {}});
    return {r_.b.pad(v, zero, Dims(high.size(), 0), high), dim, true};
  }

  bool is_known(Value v, int64_t dim, int64_t size) const {
    const Longer* const known = find(v);
    return known != nullptr && known->dim == dim && known->size() == size;
  }

  // Returns whether v can be computed with more elements from what is known, numbers and broadcasts.
  bool costs_little(Value v, int64_t dim, int64_t size, int& budget) const {
    if (is_known(v, dim, size)) return true;
    const Operation* const op = r_.maker(v);
    if (op == nullptr || op->results.size() != 1 || --budget < 0) return false;
    if (is_splat(*op) || op->is("stablehlo.iota") || op->is("stablehlo.broadcast_in_dim")) return true;
    if (!is_elementwise(*op) && !op->is("stablehlo.reshape") && !op->is("stablehlo.transpose")) return false;
    for (size_t k = 0; k < op->operands.size(); ++k) {
      const Map map = *map_of(*op, k, operand(*op, k));
      const auto at = std::find(map.begin(), map.end(), dim);
      if (at != map.end() && !costs_little(operand(*op, k), at - map.begin(), size, budget)) return false;
    }
    return true;
  }

  std::optional<Longer> made_again(Value v, int64_t dim, int64_t size) {
    const Operation& op = *r_.maker(v);
    if (!is_splat(op)) return longer_result(op, dim, size);
    Type type = v.type();
    type.dims[static_cast<size_t>(dim)] = size;
    return Longer{r_.copy(op, {}, {}, {type})[0], dim, is_zeros(r_, v)};
  }

  // Returns the longer value with `fill`, a scalar, in the places that `like` does not have.
  Value masked(const Longer& longer, Value like, Value fill) {
    Builder& b = r_.b;
    const Type places{DType::kS32, longer.value.dims()};
    const Value inside =
        b.compare(b.iota(places, longer.dim), b.splat(like.dim(longer.dim), places), stablehlo::Compare::kLt);
    return b.select(inside, longer.value, b.broadcast_in_dim(fill, longer.value.dims(), {}));
  }

  Value without_padding(const Longer& longer, Value like) {
    return longer.zeros ? longer.value : masked(longer, like, r_.b.splat(0, Type{like.dtype(), {}}));
  }

  static Dims summed(const Operation& op, size_t k) {
    return op.attributes.list(k == 0 ? "lhs_contract" : "rhs_contract");
  }
  static bool is_summed(const Operation& op, size_t k, int64_t dim) { return contains(summed(op, k), dim); }

  // A product that is summed over the dimension with padding, which adds zeros.
  Values product(const Operation& op, size_t k, const Longer& known) {
    const Dims own = summed(op, k), others = summed(op, 1 - k);
    const auto place = std::find(own.begin(), own.end(), known.dim) - own.begin();
    const Longer mine = known;
    const Value other = op.operands[1 - k];
    const Longer theirs = needed(other, others[static_cast<size_t>(place)], mine.size());
    Values operands = {without_padding(mine, op.operands[k]), without_padding(theirs, other)};
    if (k == 1) std::swap(operands[0], operands[1]);
    return r_.copy(op, operands);
  }

  // Rows by number: a number beyond the last row means the last row, as in the shorter value.
  Values rows(const Operation& op, const Longer& known) {
    const Value index = op.operands[1];
    const bool fits = index.dtype() == DType::kS32 || index.dtype() == DType::kS64;
    if (!fits || op.attributes.list("start_index_map") != Dims{known.dim} ||
        !contains(op.attributes.list("collapsed_slice_dims"), known.dim))
      return {};
    const Type one{index.dtype(), {}};
    const Value last = r_.b.splat(op.operands[0].dim(known.dim) - 1, one);
    return r_.copy(op, {known.value, r_.b.clamp(r_.b.splat(0, one), index, last)});
  }

  // Returns whether the operation pads a value to the size of the longer one, and does nothing else.
  static bool pads_to(const Operation& op, const Longer& known) {
    const auto all_zero = [&](std::string_view name) {
      const Dims list = op.attributes.list(name);
      return std::all_of(list.begin(), list.end(), [](int64_t edge) { return edge == 0; });
    };
    return op.results[0].dims() == known.value.dims() && all_zero("edge_padding_low") &&
           all_zero("interior_padding");
  }

  // Lets all values with padding through.
  Values barrier(const Operation& op) {
    Values operands;
    std::vector<Type> types;
    for (const Value v : op.operands) {
      const Longer* const known = find(v);
      operands.push_back(known == nullptr ? v : known->value);
      types.push_back(operands.back().type());
    }
    if (operands == op.operands) return {};
    Values made = r_.copy(op, operands, {}, types);
    for (size_t i = 0; i < made.size(); ++i) {
      const Longer* const known = find(op.operands[i]);
      if (known != nullptr) made[i] = shortened(Longer{made[i], known->dim, known->zeros}, op.results[i])[0];
    }
    return made;
  }

  Rewriter& r_;
  std::unordered_map<int32_t, bool> is_padded_;         // by a parameter's id
  std::unordered_map<int32_t, Longer> longer_;          // by the id of the shorter value
  std::map<Dims, std::pair<int64_t, int64_t>> shapes_;  // of arguments: the dimension and its size
};

}  // namespace padding_detail

void padding(Rewriter& r, const std::vector<size_t>& parameters) {
  if (parameters.empty()) return;
  r.flatten();
  padding_detail::Lengthening lengthening(r, parameters);
  r.each([&](const Operation& op) { return lengthening.replaced(op); });
}

}  // namespace sluice::patterns
