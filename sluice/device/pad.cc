#include "sluice/device/pad.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sluice {
namespace {

// Returns the smallest of `lengths` that is at least `length`.
int64_t padded_length(int64_t length, at::IntArrayRef lengths, int64_t dim) {
  TORCH_CHECK(!lengths.empty(),
              "sluice::pad_to: no length was given: name one or more, for example {16, 32, 64}");
  int64_t best = 0, largest = 0;
  for (const int64_t candidate : lengths) {
    TORCH_CHECK(candidate > 0, "sluice::pad_to: expected lengths above 0, found ", candidate, " in ",
                lengths);
    largest = std::max(largest, candidate);
    if (candidate >= length && (best == 0 || candidate < best)) best = candidate;
  }
  TORCH_CHECK(best > 0, "sluice::pad_to: the length in dimension ", dim, " is ", length,
              ", and the largest of the given lengths is ", largest, ": add a larger one, or cut the tensor");
  return best;
}

at::Tensor padded(const at::Tensor& x, int64_t length, const at::Scalar& value, int64_t dim) {
  const int64_t more = length - x.size(dim);
  if (more == 0) return x;
  // From the last dimension to the first: the padding in front, then the padding at the end.
  std::vector<int64_t> padding(static_cast<size_t>(2 * (x.dim() - dim)), 0);
  padding.back() = more;
  return at::constant_pad_nd(x, padding, value);
}

}  // namespace

Padded pad_to(const at::Tensor& x, at::IntArrayRef lengths, const at::Scalar& value, int64_t dim) {
  TORCH_CHECK(x.dim() > 0, "sluice::pad_to: expected a tensor with dimensions, found a single number");
  dim = at::maybe_wrap_dim(dim, x.dim());
  const int64_t length = padded_length(x.size(dim), lengths, dim);
  return {padded(x, length, value, dim), at::arange(length, x.options().dtype(at::kLong)) < x.size(dim)};
}

Padded pad_to(at::TensorList sequences, at::IntArrayRef lengths, const at::Scalar& value) {
  TORCH_CHECK(!sequences.empty(), "sluice::pad_to: expected one or more sequences, found none");
  int64_t longest = 0;
  for (const at::Tensor& sequence : sequences) {
    TORCH_CHECK(sequence.dim() > 0 && sequence.sizes().slice(1) == sequences[0].sizes().slice(1) &&
                    sequence.options().type_equal(sequences[0].options()),
                "sluice::pad_to: expected sequences that differ only in their first size, found ",
                sequences[0].toString(), sequences[0].sizes(), " and ", sequence.toString(),
                sequence.sizes());
    longest = std::max(longest, sequence.size(0));
  }
  const int64_t length = padded_length(longest, lengths, 0);
  std::vector<at::Tensor> values;
  std::vector<int64_t> there;
  for (const at::Tensor& sequence : sequences) {
    values.push_back(padded(sequence, length, value, 0));
    there.push_back(sequence.size(0));
  }
  const at::Device device = sequences[0].device();
  const at::Tensor places = at::arange(length, at::TensorOptions(at::kLong).device(device));
  return {at::stack(values), places < at::tensor(there, at::kLong).unsqueeze(1).to(device)};
}

}  // namespace sluice
