#include "sluice/device/libtorch/overlap.h"

#include <ATen/MemoryOverlap.h>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"

namespace sluice::device {

void check_internal_overlap(std::string_view operation, const at::Tensor& written) {
  if (at::has_internal_overlap(written) != at::MemOverlap::Yes) return;
  throw_error(Code::kInvalidArgument,
              base::str(operation,
                        ": unsupported operation: more than one element of the written-to tensor refers to a "
                        "single memory location (its sizes are ",
                        written.sizes(), ", its strides ", written.strides(),
                        "). Please clone() the tensor before performing the operation."));
}

// LibTorch's own function compares addresses, which the device's tensors do not have.
void check_partial_overlap(std::string_view operation, const at::Tensor& written, const at::Tensor& read) {
  if (written.is_same(read) || !written.is_alias_of(read) || written.numel() == 0 || read.numel() == 0)
    return;
  if (!written.is_non_overlapping_and_dense() || !read.is_non_overlapping_and_dense()) return;
  const int64_t first = written.storage_offset(), other = read.storage_offset();
  if (first + written.numel() <= other || other + read.numel() <= first) return;
  if (first == other && written.numel() == read.numel() && written.strides().equals(read.strides())) return;
  throw_error(
      Code::kInvalidArgument,
      base::str(operation,
                ": unsupported operation: some elements of the input tensor and the written-to tensor "
                "refer to a single memory location. Please clone() the tensor before performing the "
                "operation."));
}

}  // namespace sluice::device
