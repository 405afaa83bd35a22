// Operations across replicas. They carry no channel, so that their groups are groups of replicas.
#include <algorithm>
#include <set>

#include "sluice/stablehlo/builder/impl.h"

namespace sluice::stablehlo {
namespace {

void check_group_list(std::string_view op, const ReplicaGroups& groups) {
  std::set<int64_t> seen;
  for (const std::vector<int64_t>& group : groups) {
    if (group.empty()) reject(op, "a group of replicas is empty");
    for (int64_t replica : group) {
      if (replica < 0 || !seen.insert(replica).second) {
        reject(op, "groups must be of different replicas, numbered from 0, found ", replica,
               replica < 0 ? "" : " twice");
      }
    }
  }
}

// Returns the size that all groups share; throws if their sizes differ.
int64_t group_size(std::string_view op, const ReplicaGroups& groups) {
  check_group_list(op, groups);
  if (groups.empty())
    reject(op, "there must be a group of replicas: the result's shape follows from its size");
  for (const std::vector<int64_t>& group : groups) {
    if (group.size() != groups[0].size()) {
      reject(op, "groups must have one size, found ", groups[0].size(), " and ", group.size());
    }
  }
  return static_cast<int64_t>(groups[0].size());
}

// Returns the groups as rows of one length: shorter groups are filled up with -1.
Attributes groups_attribute(const ReplicaGroups& groups) {
  size_t columns = 0;
  for (const std::vector<int64_t>& group : groups) columns = std::max(columns, group.size());
  ReplicaGroups rows = groups;
  for (std::vector<int64_t>& row : rows) row.resize(columns, -1);
  Attributes attributes;
  attributes.table("replica_groups", rows, columns);
  return attributes;
}

void check_dim(std::string_view op, Value x, int64_t dim) {
  if (dim < 0 || dim >= x.rank()) reject(op, "there is no dimension ", dim, " in ", x.type().str());
}

void check_divides(std::string_view op, Value x, int64_t dim, int64_t parts) {
  if (x.dim(dim) % parts != 0) {
    reject(op, "dimension ", dim, " of ", x.type().str(), " must be a multiple of the group's size ", parts);
  }
}

}  // namespace

Value Builder::replica_id() {
  return impl_->add("stablehlo.replica_id", {}, {}, impl_->intern({DType::kU32, {}}));
}

Value Builder::all_reduce(Value x, const ReplicaGroups& groups, const Region& body) {
  constexpr std::string_view kOp = kAllReduce;
  impl_->use(kOp, x);
  check_group_list(kOp, groups);
  const TypeEntry* scalar = impl_->intern({x.dtype(), {}});
  Impl::Body made = impl_->reducer(kOp, {&scalar, 1}, body);
  const TypeEntry* result = impl_->entry(x);
  return impl_->add(kOp, {&x, 1}, {&made, 1}, groups_attribute(groups), {&result, 1}).front();
}

Value Builder::all_reduce_sum(Value x, const ReplicaGroups& groups) {
  impl_->use("stablehlo.all_reduce", x);
  impl_->check_dtype("stablehlo.all_reduce", x, kNumbers);
  return all_reduce(x, groups,
                    [](Builder& b, std::span<const Value> in) { return Values{b.add(in[0], in[1])}; });
}

Value Builder::all_gather(Value x, int64_t dim, const ReplicaGroups& groups) {
  constexpr std::string_view kOp = "stablehlo.all_gather";
  impl_->use(kOp, x);
  check_dim(kOp, x, dim);
  Type result = x.type();
  result.dims[static_cast<size_t>(dim)] *= group_size(kOp, groups);
  Attributes attributes = groups_attribute(groups);
  return impl_->add(kOp, {x}, attributes.number("all_gather_dim", dim), result);
}

Value Builder::reduce_scatter(Value x, int64_t dim, const ReplicaGroups& groups, const Region& body) {
  constexpr std::string_view kOp = kReduceScatter;
  impl_->use(kOp, x);
  check_dim(kOp, x, dim);
  const int64_t size = group_size(kOp, groups);
  check_divides(kOp, x, dim, size);
  Type part = x.type();
  part.dims[static_cast<size_t>(dim)] /= size;
  const TypeEntry* scalar = impl_->intern({x.dtype(), {}});
  Impl::Body made = impl_->reducer(kOp, {&scalar, 1}, body);
  const TypeEntry* result = impl_->intern(part);
  Attributes attributes = groups_attribute(groups);
  return impl_->add(kOp, {&x, 1}, {&made, 1}, attributes.number("scatter_dimension", dim), {&result, 1})
      .front();
}

Value Builder::all_to_all(Value x, int64_t split_dim, int64_t concat_dim, const ReplicaGroups& groups) {
  constexpr std::string_view kOp = "stablehlo.all_to_all";
  impl_->use(kOp, x);
  check_dim(kOp, x, split_dim);
  check_dim(kOp, x, concat_dim);
  const int64_t size = group_size(kOp, groups);
  check_divides(kOp, x, split_dim, size);
  Type result = x.type();
  result.dims[static_cast<size_t>(split_dim)] /= size;
  result.dims[static_cast<size_t>(concat_dim)] *= size;
  Attributes attributes = groups_attribute(groups);
  attributes.number("split_dimension", split_dim)
      .number("concat_dimension", concat_dim)
      .number("split_count", size);
  return impl_->add(kOp, {x}, attributes, result);
}

Value Builder::collective_permute(Value x, const std::vector<std::pair<int64_t, int64_t>>& pairs) {
  constexpr std::string_view kOp = "stablehlo.collective_permute";
  impl_->use(kOp, x);
  std::set<int64_t> sources, targets;
  for (const auto& [source, target] : pairs) {
    if (source < 0 || target < 0 || !sources.insert(source).second || !targets.insert(target).second) {
      reject(kOp, "a replica must send and receive at most once, found the pairs ", padding_text(pairs));
    }
  }
  return impl_->add(kOp, {x}, Attributes().pairs("source_target_pairs", pairs), x.type());
}

}  // namespace sluice::stablehlo
