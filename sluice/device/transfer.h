// Transfers values between host and device.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "sluice/device/sharding/processes.h"
#include "sluice/device/value.h"

namespace sluice::device {

struct LazyStorage;

// Uploads one host tensor for each replica, or one for all. With a layout, which must divide the value, each
// device of the mesh gets its block of the only one. With `rows`, which need such a layout, the tensor has
// only these rows of the value: other processes give the rest. The value may share the tensors' memory, which
// is kept alive: nobody may write to it any more. Takes no lock.
DataPtr upload_data(const std::vector<at::Tensor>& hosts, LayoutRef layout = nullptr, RowPart rows = {});
// Uploads a value of this type whose blocks the function gives: for each of the process's devices a
// contiguous tensor of the block's size, with the layout's padding. Nobody may write to them any more. Takes
// no lock. While programs are only compiled, the function is not called.
DataPtr upload_blocks(TypeRef type, LayoutRef layout,
                      const std::function<at::Tensor(size_t device)>& block_of_device);
// Uploads this process's rows of a batch, laid out as one; a scalar must be equal in all processes.
DataPtr upload_batch(const std::vector<at::Tensor>& one_per_replica);

// Returns the value of a device tensor on one local replica as a row-major host tensor. Cuts and waits.
// Counts as a host read, named `what`. Throws, before anything is cut, if the value is less the same than
// `wanted`.
at::Tensor download(const at::Tensor& tensor, std::string_view what, Sameness wanted = Sameness::kGlobal,
                    int replica = 0);
// Returns the values of all local replicas; counts no host read.
std::vector<at::Tensor> download_all(const at::Tensor& tensor);

// Returns the data of a tensor, row-major with its sizes; cuts if it is pending. The caller holds the lock.
DataPtr materialize(const at::Tensor& tensor);
// Returns the data of a storage that has a value; cuts if it is pending. The caller holds the lock.
DataPtr data_of_storage(LazyStorage& storage);

}  // namespace sluice::device
