// The functions by which autograd makes a view of a view again from the tensor that holds its memory.
//
// LibTorch assumes that a device of this type has no strides. So it gives each view a function that applies
// all views between its base and it, each in a copy of its own: a chain of N views holds N^2 / 2 functions
// (12 GB for 10,000). A view of this device is known by its strides, as on the CPU.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/variable.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace sluice::device {

// A chain of more views is replaced by one view with the strides of the last one.
constexpr size_t kMaxChainedViews = 16;

using ReverseView = std::function<at::Tensor(const at::Tensor&)>;

// Returns ViewInfo::chain(…) of LibTorch for a view `tensor` of the view whose info is `parent`. chain():
// LibTorch's own function, called with `function` and `reverse`. Tensors are on the device.
torch::autograd::ViewInfo short_chain(
    const torch::autograd::ViewInfo& parent, const at::Tensor& tensor,
    std::unique_ptr<torch::autograd::ViewFunc> function, ReverseView reverse,
    const std::function<torch::autograd::ViewInfo(std::unique_ptr<torch::autograd::ViewFunc>, ReverseView)>&
        chain);

}  // namespace sluice::device
