#include "sluice/session/finite.h"

#include <ATen/ATen.h>

#include <bit>
#include <cstdint>

#include "sluice/base/text/join.h"

namespace sluice::sessions {
namespace finite_detail {

// A text such as "3 of its 12 values are NaN or infinite".
std::string count_of(const at::Tensor& bad) {
  const int64_t count = bad.sum().item<int64_t>(), all = bad.numel();
  return all == 1
             ? "its value is NaN or infinite"
             : base::str(count, " of its ", all, " values ", count == 1 ? "is" : "are", " NaN or infinite");
}

at::Tensor as_numbers(const at::Tensor& tensor) {
  return at::isFloatingType(tensor.scalar_type()) && tensor.element_size() == 1 ? tensor.to(at::kFloat)
                                                                                : tensor;
}

bool has_numbers(const at::Tensor& tensor) {
  return tensor.numel() > 0 && (tensor.is_floating_point() || tensor.is_complex());
}

}  // namespace finite_detail

bool all_finite(const at::Tensor& tensor) {
  if (!finite_detail::has_numbers(tensor)) return true;
  if (tensor.scalar_type() != at::kFloat || !tensor.is_contiguous())
    return at::isfinite(finite_detail::as_numbers(tensor)).all().item<bool>();
  // The most common type takes a path without a copy: each weight is read once before it is written to disk.
  constexpr std::uint32_t kExponent = 0x7F800000U;
  const float* const values = tensor.const_data_ptr<float>();
  const int64_t count = tensor.numel();
  std::uint32_t bad = 0;
  for (int64_t i = 0; i < count; ++i)
    bad |= static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(values[i]) & kExponent) == kExponent);
  return bad == 0;
}

bool any_nan(const at::Tensor& tensor) {
  return finite_detail::has_numbers(tensor) && !all_finite(tensor) &&
         at::isnan(finite_detail::as_numbers(tensor)).any().item<bool>();
}

base::Status check_finite(const Snapshot& snapshot) {
  for (const auto* part : {&snapshot.model, &snapshot.state})
    for (const auto& [name, pending] : *part) {
      const at::Tensor value = pending.get().front();
      const bool sound = snapshot.may_be_infinite.count(name) > 0 ? !any_nan(value) : all_finite(value);
      if (!sound)
        return base::fail(
            Code::kOutOfRange, "after step ", snapshot.progress.step, " ", name, " cannot be trained with: ",
            finite_detail::count_of(at::isfinite(finite_detail::as_numbers(value)).logical_not()));
    }
  return {};
}

}  // namespace sluice::sessions
