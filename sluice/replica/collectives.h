// Values across replicas, as operations on tensors: recorded like any other, differentiable, and run inside
// the step's program.
//
// A tensor on xla:0 stands for one value on each replica. These functions combine them; what they return is
// equal on all replicas (`global`) unless said otherwise, and may be read on the host. With one replica, and
// for tensors on LibTorch's own CPU, they return what one replica gives. Shapes and element types are those
// of the argument unless said otherwise. `groups` lists the global numbers of the replicas that work
// together, each replica once, all groups of one size; empty: all together. Results of groups differ between
// them.
//
// Gradients: of a sum the sum, of a mean the mean, of all_gather reduce_scatter and the other way round, of a
// broadcast the sum to the root, of a permutation the inverse one.
//
// Threads: that which records. Errors are sluice::Error.
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
// The sum and the mean over all replicas. Of a value that is equal everywhere no communication is needed. The
// mean is for floating-point types.
at::Tensor sum(const at::Tensor& tensor);
at::Tensor mean(const at::Tensor& tensor);
// The replicas' values joined along `dim`, in the order of their numbers.
at::Tensor all_gather(const at::Tensor& tensor, int64_t dim = 0, const Groups& groups = {});
// The sum, of which replica i of the group gets the i-th part of `dim`: a differing value.
at::Tensor reduce_scatter(const at::Tensor& tensor, int64_t dim = 0, const Groups& groups = {});
// The value of replica `root` (its global number).
at::Tensor broadcast(const at::Tensor& tensor, int root = 0);
// Each pair sends its first replica's value to its second; who receives nothing gets zeros. A differing
// value.
at::Tensor collective_permute(const at::Tensor& tensor, const std::vector<std::pair<int, int>>& pairs);
// The global number of the replica, int32, 0-dim: a differing value.
at::Tensor replica_id();
// A host tensor's equal parts along `dim`, one for each replica of all processes, on the device: a differing
// value with `dim` divided by the number of replicas. All processes give the same tensor.
at::Tensor split(const at::Tensor& host, int64_t dim = 0);

namespace replica {

// The mean of the parameters' gradients over all replicas, in place, in one collective for each element type.
// Gradients that are equal already stay as they are. Returns how many were averaged.
int64_t reduce_gradients(const std::vector<at::Tensor>& parameters);
// The same for any tensors: the mean of floating-point ones, replica 0's value of others.
int64_t make_equal(const std::vector<at::Tensor>& tensors);

}  // namespace replica
}  // namespace sluice
SLUICE_API_END
