// Writes that LibTorch's CPU refuses because tensors share memory (ATen/MemoryOverlap.h): of a tensor of
// which several elements are one place, and of one that lies partly where an operand does.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace sluice::device {

// Throws kInvalidArgument when several elements of `written` are one place.
void check_internal_overlap(std::string_view operation, const at::Tensor& written);
// Throws kInvalidArgument when `written` and `read`, both on the device, share a part of their places, but
// are not the same places in the same order.
void check_partial_overlap(std::string_view operation, const at::Tensor& written, const at::Tensor& read);

}  // namespace sluice::device
