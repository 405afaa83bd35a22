// Operations across replicas.
//
// If the compiler has its own collectives (TPU, CUDA), each value is one StableHLO operation, and the
// compiler's combiner makes buckets of them. On XLA's CPU plugin, they are calls of the host's handlers,
// which also reach the other processes. There are two handlers, and the other collectives are composed of
// these.
#include "sluice/ops/collective.h"

#include <algorithm>
#include <numeric>

#include "sluice/ops/common.h"
#include "sluice/ops/row.h"

namespace sluice::ops {
namespace {

using stablehlo::ReplicaGroups;

// Returns the groups as StableHLO takes them; without groups, one group of all replicas.
ReplicaGroups group_list(const Emit& e, const Dims& groups, int64_t group_size) {
  ReplicaGroups list;
  if (groups.empty()) {
    list.emplace_back(static_cast<size_t>(e.replicas().count));
    std::iota(list[0].begin(), list[0].end(), 0);
  }
  for (size_t first = 0; first < groups.size(); first += static_cast<size_t>(group_size))
    list.emplace_back(groups.begin() + static_cast<int64_t>(first),
                      groups.begin() + static_cast<int64_t>(first) + group_size);
  return list;
}

int64_t members(const Emit& e, const Dims& groups, int64_t group_size) {
  return groups.empty() ? e.replicas().count : group_size;
}

Value combine(Builder& b, Reduction reduction, Value x, Value y) {
  const bool logical = x.dtype() == DType::kPred;
  if (reduction == Reduction::kMin) return logical ? b.and_(x, y) : b.minimum(x, y);
  if (reduction == Reduction::kMax || logical) return logical ? b.or_(x, y) : b.maximum(x, y);
  return b.add(x, y);
}

std::string_view handler_name(Reduction reduction) {
  if (reduction == Reduction::kMin) return "min";
  return reduction == Reduction::kMax ? "max" : "sum";
}

// Calls one of the host's handlers. `op`: the operation of a reduction; empty for other collectives.
Values host_call(Emit& e, std::string_view handler, const Values& values, const std::vector<Type>& results,
                 std::string_view op, const Dims& groups, int64_t group_size, bool in_place) {
  Slots::Site& site = e.next_site();
  stablehlo::CallAttributes attributes = {
      {"site", site.number}, {"program", site.program}, {"turn", int64_t{1}}};
  if (!op.empty()) attributes.push_back({"op", std::string(op)});
  if (!groups.empty()) {
    attributes.push_back({"groups", groups});
    attributes.push_back({"group_size", group_size});
  }
  const Type turn{DType::kS32, {}};
  Values operands = values;
  operands.push_back(site.turn ? site.turn : e.b.splat(0, turn));
  std::vector<Type> types = results;
  types.push_back(turn);
  Values made =
      e.b.custom_call(handler, operands, types, attributes, {.in_place = in_place ? results.size() : 0});
  site.turn = made.back();
  made.pop_back();
  return made;
}

std::vector<Type> types_of(const Values& values) {
  std::vector<Type> types;
  for (const Value& value : values) types.push_back(value.type());
  return types;
}

// Returns this replica's number in a table, as a 0-d s32.
Value look_up(Emit& e, const Dims& of_replica) {
  const Value start[] = {e.replica_id()};
  return e.b.convert(e.b.reshape(e.b.dynamic_slice(e.b.constant_i64(of_replica), start, {1}), {}),
                     DType::kS32);
}

// Returns this replica's place in its group, as a 0-d s32.
Value place_in_group(Emit& e, const Dims& groups, int64_t group_size) {
  if (groups.empty()) return e.replica_id();
  Dims places(static_cast<size_t>(e.replicas().count), 0);
  for (size_t i = 0; i < groups.size(); ++i)
    places.at(static_cast<size_t>(groups[i])) = static_cast<int64_t>(i) % group_size;
  return look_up(e, places);
}

// Returns row `index` of a stack, without the first dimension.
Value pick(Builder& b, Value stack, Value index) {
  std::vector<Value> start(static_cast<size_t>(stack.rank()), b.splat(0, {DType::kS32, {}}));
  start[0] = index;
  Dims size = stack.dims();
  size[0] = 1;
  Value row = b.dynamic_slice(stack, start, size);
  return b.reshape(row, Dims(size.begin() + 1, size.end()));
}

// Stacks one value of each replica of the group in a new first dimension. The host's handler gathers the
// values of all replicas, and a group's rows are picked from these.
Value gather(Emit& e, Value x, const Dims& groups = {}, int64_t group_size = 0) {
  Builder& b = e.b;
  Dims row = x.dims();
  row.insert(row.begin(), 1);
  if (!e.replicas().by_host) return b.all_gather(b.reshape(x, row), 0, group_list(e, groups, group_size));
  Type type = x.type();
  type.dims.insert(type.dims.begin(), e.replicas().count);
  const Value all = host_call(e, "sluice_all_gather", {x}, {type}, "", {}, 0, /*in_place=*/false)[0];
  if (groups.empty()) return all;
  Values rows;
  for (int64_t k = 0; k < group_size; ++k) {
    Dims member(static_cast<size_t>(e.replicas().count), 0);  // for each replica: the k-th member of its
                                                              // group
    for (size_t i = 0; i < groups.size(); ++i)
      member.at(static_cast<size_t>(groups[i])) =
          groups[i / static_cast<size_t>(group_size) * static_cast<size_t>(group_size) +
                 static_cast<size_t>(k)];
    rows.push_back(b.reshape(pick(b, all, look_up(e, member)), row));
  }
  return b.concatenate(rows, 0);
}

Values reduce_row(Emit& e) {
  const Dims& ints = e.ints("ints");
  return all_reduce(e, e.tensors("tensors"), static_cast<Reduction>(ints.at(0)),
                    Dims(ints.begin() + 2, ints.end()), ints.at(1));
}

// ints: the dimension to join along, the group's size, the groups.
Values gather_row(Emit& e) {
  const Dims& ints = e.ints("ints");
  const int64_t dim = ints.at(0);
  Values results;
  for (const Value& x : e.tensors("tensors")) {
    Value stack = gather(e, x, Dims(ints.begin() + 2, ints.end()), ints.at(1));
    Dims order(static_cast<size_t>(stack.rank()));  // the replicas' dimension moves in front of `dim`
    std::iota(order.begin(), order.end(), 0);
    std::rotate(order.begin(), order.begin() + 1, order.begin() + 1 + dim);
    Dims joined = x.dims();
    joined.at(static_cast<size_t>(dim)) *= stack.dim(0);
    results.push_back(e.b.reshape(dim == 0 ? stack : e.b.transpose(stack, order), joined));
  }
  return results;
}

// Sums over the group; each replica keeps its part of a dimension. ints are as for gather_row.
Values scatter_row(Emit& e) {
  Builder& b = e.b;
  const Dims& ints = e.ints("ints");
  const int64_t dim = ints.at(0);
  const Dims groups(ints.begin() + 2, ints.end());
  Values results;
  for (const Value& x : e.tensors("tensors")) {
    if (!e.replicas().by_host) {
      results.push_back(
          b.reduce_scatter(x, dim, group_list(e, groups, ints.at(1)),
                           [](Builder& in, std::span<const Value> v) { return Values{in.add(v[0], v[1])}; }));
      continue;
    }
    const Value sum = all_reduce(e, {x}, Reduction::kSum, groups, ints.at(1))[0];
    Dims size = x.dims();
    size.at(static_cast<size_t>(dim)) /= members(e, groups, ints.at(1));
    std::vector<Value> start(static_cast<size_t>(x.rank()), b.splat(0, {DType::kS32, {}}));
    start[static_cast<size_t>(dim)] = b.multiply(place_in_group(e, groups, ints.at(1)),
                                                 b.splat(size[static_cast<size_t>(dim)], {DType::kS32, {}}));
    results.push_back(b.dynamic_slice(sum, start, size));
  }
  return results;
}

// ints: the root. The other replicas add -0, the only number that changes nothing, not even the sign of a
// zero.
Values broadcast_row(Emit& e) {
  Builder& b = e.b;
  const Value is_root =
      b.compare(e.replica_id(), b.splat(e.ints("ints").at(0), {DType::kS32, {}}), Compare::kEq);
  Values masked;
  for (const Value& x : e.tensors("tensors")) {
    const Value nothing = stablehlo::is_float(x.dtype()) ? b.splat(-0.0, x.type()) : zeros(b, x.type());
    masked.push_back(b.select(b.broadcast_in_dim(is_root, x.dims(), {}), x, nothing));
  }
  return all_reduce(e, masked, Reduction::kSum);
}

// ints: pairs of source and target; a replica that receives nothing gets zeros.
Values permute_row(Emit& e) {
  Builder& b = e.b;
  const Dims& ints = e.ints("ints");
  std::vector<std::pair<int64_t, int64_t>> pairs;
  Dims source_of(static_cast<size_t>(e.replicas().count), -1);
  for (size_t i = 0; i + 1 < ints.size(); i += 2) {
    pairs.emplace_back(ints[i], ints[i + 1]);
    source_of.at(static_cast<size_t>(ints[i + 1])) = ints[i];
  }
  Values results;
  for (const Value& x : e.tensors("tensors")) {
    if (!e.replicas().by_host) {
      results.push_back(b.collective_permute(x, pairs));
      continue;
    }
    const Type zero{DType::kS32, {}};
    const Value source = look_up(e, source_of);
    const Value row = pick(b, gather(e, x), b.maximum(source, b.splat(0, zero)));
    const Value some = b.broadcast_in_dim(b.compare(source, b.splat(0, zero), Compare::kGe), x.dims(), {});
    results.push_back(b.select(some, row, zeros(b, x.type())));
  }
  return results;
}

Values replica_id_row(Emit& e) { return {e.replica_id()}; }

constexpr Row kCollectiveRows[] = {
    {.name = "sluice::all_reduce", .emit = reduce_row},
    {.name = "sluice::all_gather", .emit = gather_row},
    {.name = "sluice::reduce_scatter", .emit = scatter_row},
    {.name = "sluice::broadcast_replica", .emit = broadcast_row},
    {.name = "sluice::collective_permute", .emit = permute_row},
    {.name = "sluice::replica_id", .emit = replica_id_row},
};

}  // namespace

Values all_reduce(Emit& e, const Values& values, Reduction reduction, const Dims& groups,
                  int64_t group_size) {
  Builder& b = e.b;
  Values results;
  if (e.replicas().by_host) {
    results = host_call(e, "sluice_all_reduce", values, types_of(values), handler_name(reduction), groups,
                        group_size,
                        /*in_place=*/true);
  } else {
    const ReplicaGroups list = group_list(e, groups, group_size);
    for (const Value& value : values) {
      results.push_back(b.all_reduce(value, list, [reduction](Builder& in, std::span<const Value> v) {
        return Values{combine(in, reduction, v[0], v[1])};
      }));
    }
  }
  if (reduction != Reduction::kMean) return results;
  for (Value& sum : results) sum = b.divide(sum, b.splat(members(e, groups, group_size), sum.type()));
  return results;
}

std::span<const Row> collective_rows() { return kCollectiveRows; }

}  // namespace sluice::ops
