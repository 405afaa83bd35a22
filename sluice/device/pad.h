// Padding of varying lengths to a few lengths.
#pragma once

#include <ATen/core/Tensor.h>

#include "sluice/base/export.h"

SLUICE_API_BEGIN
namespace sluice {

// Padded values, and a mask of the real ones.
struct Padded {
  at::Tensor values;
  at::Tensor mask;  // bool, true for a value that is not padding
};

// Every new shape costs a program. Sentences, sounds and sets of boxes that are padded to one of a few
// lengths cost one program a length, however they vary:
//
//   const auto [words, mask] = sluice::pad_to(sentence, {16, 32, 64});
//   loss = model->forward(words.to(device), mask.to(device));
//
// Pads `x` along `dim` with `value` to the smallest of `lengths` (in any order, each above 0) that it fits
// into. `values` has x's element type and device, `mask` one element for each place along `dim`. Pad on the
// host, before .to(device): on the device padding itself needs a program for each length. Differentiable.
// Throws c10::Error where x is longer than all lengths. Threads: any.
Padded pad_to(const at::Tensor& x, at::IntArrayRef lengths, const at::Scalar& value = 0, int64_t dim = 0);

// Makes one tensor of a batch of sequences, each [length, ...] with its own length: `values` is [sequences,
// padded length, ...], `mask` [sequences, padded length]. The sequences have one element type and device, and
// equal sizes except for the first. Throws c10::Error if there is no sequence, or if they differ.
Padded pad_to(at::TensorList sequences, at::IntArrayRef lengths, const at::Scalar& value = 0);

}  // namespace sluice
SLUICE_API_END
