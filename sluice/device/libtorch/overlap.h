// Writes that LibTorch's CPU refuses because tensors share memory (ATen/MemoryOverlap.h): a tensor with
// several elements at one place, and a tensor that overlaps an operand only in part.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace sluice::device {

// Throws kInvalidArgument if several elements of `written` are at one place.
void check_internal_overlap(std::string_view operation, const at::Tensor& written);
// Throws kInvalidArgument if `written` and `read`, both on the device, share some of their places, but do not
// have the same places in the same order.
void check_partial_overlap(std::string_view operation, const at::Tensor& written, const at::Tensor& read);

}  // namespace sluice::device
