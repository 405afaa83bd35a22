// Activation checkpointing: parts of a model whose values are computed again in the backward pass, instead of
// being kept in memory until then.
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

// What `function` gives for the inputs, on xla:0 or LibTorch's CPU. Its forward pass keeps the inputs alone;
// the backward pass calls it again, once for each backward(), with the same values and random numbers under
// the same autocast, and takes the gradients of the inputs and of whatever parameters the function uses. So
// values and gradients are those without it, bit for bit, but for what a compiler fuses otherwise. On the
// device the second call waits, by an optimization barrier, for the gradients that come from behind it.
// Where gradients are off it is a plain call.
//
// The function must give the same for the same inputs: what else it changes (BatchNorm's statistics, a
// counter) it changes twice. Gradients of gradients, and torch::autograd::grad for parameters, are not
// possible through it. Inputs may be of any type, the outputs are not among them. In a captured function
// random numbers inside are refused: each replay would draw others for the two calls.
//
// Throws what the function throws; from backward(), too.
std::vector<at::Tensor> checkpoint(
    std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)> function,
    const std::vector<at::Tensor>& inputs);
at::Tensor checkpoint(std::function<at::Tensor(const at::Tensor&)> function, const at::Tensor& input);

}  // namespace sluice
SLUICE_API_END
