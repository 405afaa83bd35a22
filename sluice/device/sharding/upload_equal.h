// The upload of a tensor whose values are the same in every process.
#pragma once

#include <ATen/core/Tensor.h>

namespace sluice::device {

// Does host.to(device) for a contiguous tensor to which nobody writes any more, such as a table that the
// model computes. In several processes over one mesh, all must give the same values: they are not compared.
at::Tensor upload_equal(const at::Tensor& host, at::Device device);

}  // namespace sluice::device
