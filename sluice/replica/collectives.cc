#include "sluice/replica/collectives.h"

#include <ATen/ops/mul.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <map>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/runtime.h"
#include "sluice/device/storage.h"
#include "sluice/device/transfer.h"

namespace sluice {
namespace replica {
namespace {

using device::Operand;
using device::Sameness;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Ints = std::vector<int64_t>;

int world_size() { return device::runtime().world.replicas(); }

bool alone(const at::Tensor& tensor) { return !device::on_device(tensor) || world_size() == 1; }

void check_replica(const char* what, int replica) {
  if (replica < 0 || replica >= world_size())
    throw_error(Code::kOutOfRange, base::str(what, ": there is no replica ", replica, "; there are ",
                                             world_size(), ", numbered from 0"));
}

// Returns the groups' size, then their replicas one after the other; {0} for all together.
Ints flat(const char* what, const Groups& groups) {
  Ints ints = {groups.empty() ? 0 : static_cast<int64_t>(groups[0].size())};
  std::vector<bool> seen(static_cast<size_t>(world_size()));
  for (const auto& group : groups) {
    if (group.empty() || group.size() != groups[0].size())
      throw_error(Code::kInvalidArgument, base::str(what, ": expected groups of one size, found ",
                                                    groups[0].size(), " and ", group.size(), " replicas"));
    for (int replica : group) {
      check_replica(what, replica);
      if (seen[static_cast<size_t>(replica)])
        throw_error(Code::kInvalidArgument, base::str(what, ": replica ", replica, " is in two groups"));
      seen[static_cast<size_t>(replica)] = true;
      ints.push_back(replica);
    }
  }
  if (!groups.empty() && std::find(seen.begin(), seen.end(), false) != seen.end())
    throw_error(Code::kInvalidArgument,
                base::str(what, ": replica ", std::find(seen.begin(), seen.end(), false) - seen.begin(),
                          " is in no group; each of the ", world_size(), " must be in one"));
  return ints;
}

int64_t members(const Ints& groups) { return groups[0] == 0 ? world_size() : groups[0]; }

// Records a row for one tensor.
at::Tensor record(const char* row, const at::Tensor& tensor, const Ints& ints, Sameness sameness) {
  device::TraceLock lock = device::lock_trace();
  const Operand value = device::read(tensor);
  at::Tensor result = device::make_tensor(device::record_list(row, value, ints, sameness)[0]);
  if (device::runtime_options().eager) device::cut(row);
  return result;
}

Sameness of_groups(const Ints& groups) { return groups[0] == 0 ? Sameness::kGlobal : Sameness::kDifferent; }

Ints with(int64_t first, const Ints& rest) {
  Ints ints = {first};
  ints.insert(ints.end(), rest.begin(), rest.end());
  return ints;
}

class AllReduce : public torch::autograd::Function<AllReduce> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tensor, int64_t reduce,
                            const Ints& groups) {
    context->saved_data["reduce"] = reduce;
    context->saved_data["groups"] = groups;
    return record("sluice::all_reduce", tensor, with(reduce, groups), of_groups(groups));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const int64_t reduce = context->saved_data["reduce"].toInt();
    if (reduce > static_cast<int64_t>(Reduce::kMean))
      throw_error(Code::kUnimplemented,
                  "all_reduce: the maximum and the minimum over replicas have no gradient here");
    return {apply(gradients[0], reduce, context->saved_data["groups"].toIntVector()), {}, {}};
  }
};

class ReduceScatter;
class AllGather : public torch::autograd::Function<AllGather> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tensor, int64_t dim,
                            const Ints& groups) {
    context->saved_data["dim"] = dim;
    context->saved_data["groups"] = groups;
    return record("sluice::all_gather", tensor, with(dim, groups), of_groups(groups));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients);
};

class ReduceScatter : public torch::autograd::Function<ReduceScatter> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tensor, int64_t dim,
                            const Ints& groups) {
    context->saved_data["dim"] = dim;
    context->saved_data["groups"] = groups;
    return record("sluice::reduce_scatter", tensor, with(dim, groups), Sameness::kDifferent);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {AllGather::apply(gradients[0], context->saved_data["dim"].toInt(),
                             context->saved_data["groups"].toIntVector()),
            {},
            {}};
  }
};

variable_list AllGather::backward(AutogradContext* context, const variable_list& gradients) {
  return {ReduceScatter::apply(gradients[0], context->saved_data["dim"].toInt(),
                               context->saved_data["groups"].toIntVector()),
          {},
          {}};
}

class Broadcast : public torch::autograd::Function<Broadcast> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tensor, int64_t root) {
    context->saved_data["root"] = root;
    return record("sluice::broadcast_replica", tensor, {root}, Sameness::kGlobal);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor total = AllReduce::apply(gradients[0], static_cast<int64_t>(Reduce::kSum), Ints{0});
    const at::Tensor here = replica_id().eq(context->saved_data["root"].toInt());
    return {at::where(here, total, at::zeros_like(total)), {}};
  }
};

class Permute : public torch::autograd::Function<Permute> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tensor, const Ints& pairs) {
    context->saved_data["pairs"] = pairs;
    return record("sluice::collective_permute", tensor, pairs, Sameness::kDifferent);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    Ints pairs = context->saved_data["pairs"].toIntVector();
    for (size_t i = 0; i + 1 < pairs.size(); i += 2) std::swap(pairs[i], pairs[i + 1]);
    return {apply(gradients[0], pairs), {}};
  }
};

bool is_global(const at::Tensor& tensor) {
  device::TraceLock lock = device::lock_trace();
  return device::read(tensor).sameness == Sameness::kGlobal;
}

int64_t wrapped(const char* what, int64_t dim, const at::Tensor& tensor) {
  const int64_t rank = tensor.dim();
  if (dim < -rank || dim >= rank)
    throw_error(Code::kOutOfRange, base::str(what, ": there is no dimension ", dim, " in ", tensor.sizes()));
  return dim < 0 ? dim + rank : dim;
}

void check_divides(const char* what, const at::Tensor& tensor, int64_t dim, int64_t parts) {
  if (tensor.size(dim) % parts != 0)
    throw_error(Code::kInvalidArgument, base::str(what, ": dimension ", dim, " of ", tensor.sizes(),
                                                  " is not a multiple of the ", parts, " replicas"));
}

// Runs one collective for each element type and replaces the tensors' values with the results.
int64_t equalize(const std::vector<at::Tensor>& tensors) {
  device::TraceLock lock = device::lock_trace();
  struct Bucket {
    std::vector<at::Tensor> tensors;
    std::vector<Operand> values;
  };
  std::map<at::ScalarType, Bucket> buckets;
  int64_t count = 0;
  for (const at::Tensor& tensor : tensors) {
    const Operand value = device::read(tensor);
    if (value.sameness == Sameness::kGlobal) continue;
    Bucket& bucket = buckets[tensor.scalar_type()];
    bucket.tensors.push_back(tensor);
    bucket.values.push_back(value);
    ++count;
  }
  for (auto& [type, bucket] : buckets) {
    const bool mean = c10::isFloatingType(type);
    const std::vector<Operand> results =
        mean ? device::record_list("sluice::all_reduce", bucket.values,
                                   {static_cast<int64_t>(Reduce::kMean), 0}, Sameness::kGlobal)
             : device::record_list("sluice::broadcast_replica", bucket.values, {0}, Sameness::kGlobal);
    for (size_t i = 0; i < results.size(); ++i) device::write(bucket.tensors[i], results[i]);
  }
  return count;
}

}  // namespace

int64_t reduce_gradients(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.grad().defined() && !alone(parameter.grad())) gradients.push_back(parameter.grad());
  }
  return equalize(gradients);
}

int64_t make_equal(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> there;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined() && !alone(tensor)) there.push_back(tensor);
  }
  return equalize(there);
}

}  // namespace replica

at::Tensor all_reduce(const at::Tensor& tensor, Reduce reduce, const Groups& groups) {
  if (reduce == Reduce::kMean && !tensor.is_floating_point())
    throw_error(Code::kInvalidArgument,
                base::str("the mean over replicas needs a floating-point type, found ", tensor.scalar_type(),
                          "; use sluice::sum, or .to(torch::kFloat) first"));
  if (replica::alone(tensor)) return tensor;
  const replica::Ints list = replica::flat("all_reduce", groups);
  if (replica::is_global(tensor))
    return reduce == Reduce::kSum ? at::mul(tensor, at::Scalar(replica::members(list))) : tensor;
  return replica::AllReduce::apply(tensor, static_cast<int64_t>(reduce), list);
}

at::Tensor sum(const at::Tensor& tensor) { return all_reduce(tensor, Reduce::kSum); }
at::Tensor mean(const at::Tensor& tensor) { return all_reduce(tensor, Reduce::kMean); }

at::Tensor all_gather(const at::Tensor& tensor, int64_t dim, const Groups& groups) {
  dim = replica::wrapped("all_gather", dim, tensor);
  if (replica::alone(tensor)) return tensor;
  return replica::AllGather::apply(tensor, dim, replica::flat("all_gather", groups));
}

at::Tensor reduce_scatter(const at::Tensor& tensor, int64_t dim, const Groups& groups) {
  dim = replica::wrapped("reduce_scatter", dim, tensor);
  if (replica::alone(tensor)) return tensor;
  const replica::Ints list = replica::flat("reduce_scatter", groups);
  replica::check_divides("reduce_scatter", tensor, dim, replica::members(list));
  return replica::ReduceScatter::apply(tensor, dim, list);
}

at::Tensor broadcast(const at::Tensor& tensor, int root) {
  if (replica::alone(tensor)) return tensor;
  replica::check_replica("broadcast", root);
  return replica::is_global(tensor) ? tensor : replica::Broadcast::apply(tensor, int64_t{root});
}

at::Tensor collective_permute(const at::Tensor& tensor, const std::vector<std::pair<int, int>>& pairs) {
  replica::Ints list;
  for (const auto& [from, to] : pairs) {
    replica::check_replica("collective_permute", from);
    replica::check_replica("collective_permute", to);
    for (size_t i = 0; i < list.size(); i += 2) {
      if (list[i] == from || list[i + 1] == to)
        throw_error(Code::kInvalidArgument,
                    base::str("collective_permute: a replica sends once and receives once, found ", from,
                              " to ", to, " and ", list[i], " to ", list[i + 1]));
    }
    list.push_back(from);
    list.push_back(to);
  }
  if (!device::on_device(tensor)) return pairs.empty() ? at::zeros_like(tensor) : tensor;
  return replica::Permute::apply(tensor, list);
}

at::Tensor replica_id() {
  device::TraceLock lock = device::lock_trace();
  const device::Sameness sameness =
      replica::world_size() > 1 ? device::Sameness::kDifferent : device::Sameness::kGlobal;
  return device::make_tensor(device::record_list("sluice::replica_id", {}, {}, sameness)[0]);
}

at::Tensor split(const at::Tensor& host, int64_t dim) {
  if (device::on_device(host))
    throw_error(Code::kInvalidArgument,
                base::str("split: expected a tensor on the host, found one on ", host.device().str(),
                          "; narrow() by sluice::replica_id() is what the device can do"));
  dim = replica::wrapped("split", dim, host);
  const device::World& world = device::runtime().world;
  replica::check_divides("split", host, dim, world.replicas());
  const int64_t part = host.size(dim) / world.replicas();
  std::vector<at::Tensor> parts;
  for (int r = 0; r < world.local_replicas; ++r)
    parts.push_back(host.narrow(dim, (int64_t{world.first_replica()} + r) * part, part).clone());
  return upload(parts);
}

}  // namespace sluice
