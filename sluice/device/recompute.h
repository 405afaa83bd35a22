// Activation checkpointing: the backward pass computes the values of parts of a model again, instead of
// keeping them in memory until then.
//
//   for (auto& block : blocks)
//     h = sluice::checkpoint([&](const torch::Tensor& x) { return block->forward(x); }, h);
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "sluice/base/export.h"

SLUICE_API_BEGIN
namespace sluice {

// Returns what `function` returns for the inputs, on xla:0 or LibTorch's CPU. The forward pass keeps only the
// inputs. The backward pass calls the function again, once for each backward(), with the same values and
// random numbers under the same autocast, and computes the gradients of the inputs and of all parameters that
// the function uses. So values and gradients are the same as without checkpoint, bit for bit, except where a
// compiler fuses differently. On the device, an optimization barrier makes the second call wait for the
// gradients from the later layers. With gradients off, it is a plain call.
//
// The function must return the same for the same inputs. Other state that it changes (BatchNorm's statistics,
// a counter) changes twice. Gradients of gradients, and torch::autograd::grad for parameters, are not
// possible through it. Inputs may be of any type, and no output may be an input. In a captured function
// random numbers inside are refused: each replay would draw different ones for the two calls.
//
// Throws what the function throws; from backward(), too.
std::vector<at::Tensor> checkpoint(
    std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)> function,
    const std::vector<at::Tensor>& inputs);
at::Tensor checkpoint(std::function<at::Tensor(const at::Tensor&)> function, const at::Tensor& input);

}  // namespace sluice
SLUICE_API_END
