// Values across replicas, as operations on tensors: recorded like any other, differentiable, and run inside
// the step's program.
//
// A tensor on xla:0 stands for one value on each replica. These functions combine them. Unless said
// otherwise, their results are equal on all replicas (`global`) and may be read on the host, and have the
// argument's shape and element type. With one replica, and for tensors on LibTorch's own CPU, they return
// what one replica gives. `groups` lists the global numbers of the replicas that work together, each replica
// once, all groups of one size; empty: all together. Results of different groups differ.
//
// Gradients: of a sum the sum, of a mean the mean, of all_gather reduce_scatter and the other way round, of a
// broadcast the sum to the root, of a permutation the inverse one.
//
// Threads: the thread that records. Errors are sluice::Error.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "sluice/base/export.h"

SLUICE_API_BEGIN
namespace sluice {

enum class Reduce : uint8_t { kSum, kMean, kMax, kMin };
using Groups = std::vector<std::vector<int>>;

at::Tensor all_reduce(const at::Tensor& tensor, Reduce reduce = Reduce::kSum, const Groups& groups = {});
// Return the sum and the mean over all replicas. A value that is equal everywhere needs no communication. The
// mean is for floating-point types.
at::Tensor sum(const at::Tensor& tensor);
at::Tensor mean(const at::Tensor& tensor);
// Joins the replicas' values along `dim`, in the order of their numbers.
at::Tensor all_gather(const at::Tensor& tensor, int64_t dim = 0, const Groups& groups = {});
// Returns the sum; replica i of the group gets its i-th part along `dim`: a differing value.
at::Tensor reduce_scatter(const at::Tensor& tensor, int64_t dim = 0, const Groups& groups = {});
// Returns the value of replica `root` (its global number).
at::Tensor broadcast(const at::Tensor& tensor, int root = 0);
// Each pair sends its first replica's value to its second; a replica that receives nothing gets zeros.
// Returns a differing value.
at::Tensor collective_permute(const at::Tensor& tensor, const std::vector<std::pair<int, int>>& pairs);
// Returns the global number of the replica, int32, 0-dim: a differing value.
at::Tensor replica_id();
// Returns a host tensor's equal parts along `dim`, one for each replica of all processes, on the device: a
// differing value with `dim` divided by the number of replicas. All processes pass the same tensor.
at::Tensor split(const at::Tensor& host, int64_t dim = 0);

namespace replica {

// Replaces the parameters' gradients by their mean over all replicas, in one collective for each element
// type. Gradients that are already equal stay as they are. Returns the number of gradients averaged.
int64_t reduce_gradients(const std::vector<at::Tensor>& parameters);
// Makes any tensors equal in the same way: the mean of floating-point ones, replica 0's value of others.
int64_t make_equal(const std::vector<at::Tensor>& tensors);

}  // namespace replica
}  // namespace sluice
SLUICE_API_END
