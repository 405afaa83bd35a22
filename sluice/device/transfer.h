// Values between host and device.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "sluice/device/value.h"

namespace sluice::device {

struct LazyStorage;

// One host tensor for each replica, or one for all. The value may share the tensors' memory, which is kept
// alive: nobody may write to it any more. Takes no lock.
DataPtr upload_data(const std::vector<at::Tensor>& hosts);

// The value of a device tensor on one local replica as a row-major host tensor. Cuts and waits. Counted as a
// host read, named `what`. An error, before anything is cut, when the value is less the same than `wanted`.
at::Tensor download(const at::Tensor& tensor, std::string_view what, Sameness wanted = Sameness::kGlobal,
                    int replica = 0);
// The same for all local replicas; counts nothing.
std::vector<at::Tensor> download_all(const at::Tensor& tensor);

// The data of a tensor, row-major with its sizes, after a cut when it is pending. The caller holds the lock.
DataPtr materialize(const at::Tensor& tensor);
// The data of a storage that has a value, after a cut when it is pending. The caller holds the lock.
DataPtr data_of_storage(LazyStorage& storage);

}  // namespace sluice::device
