// torch::scaled_dot_product_attention as one operation. LibTorch asks each device which of its ways it wants,
// through a table that has no place for XLA, and would multiply, take the softmax and multiply again.
#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>
#include <torch/library.h>

#include "sluice/device/record.h"

namespace sluice::device {
namespace {

bool is_one_operation(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool enable_gqa) {
  if (q.dim() != 4 || k.dim() != 4 || q.numel() == 0 || k.numel() == 0 || !v.sizes().equals(k.sizes()))
    return false;
  const bool heads = q.size(1) == k.size(1) || (enable_gqa && q.size(1) % k.size(1) == 0);
  return heads && q.size(0) == k.size(0) && q.size(3) == k.size(3) && at::isFloatingType(q.scalar_type()) &&
         q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type() &&
         at::globalContext().userEnabledFlashSDP();
}

// A mask whose gradient is wanted, or that LibTorch refuses, goes LibTorch's way.
bool takes_mask(const at::Tensor& mask, const at::Tensor& q, const at::Tensor& k) {
  return !(mask.requires_grad() && at::GradMode::is_enabled()) &&
         (mask.scalar_type() == at::kBool || mask.scalar_type() == q.scalar_type()) &&
         at::is_expandable_to(mask.sizes(), {q.size(0), q.size(1), q.size(2), k.size(2)});
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const std::optional<at::Tensor>& mask, double dropout, bool causal,
                     std::optional<double> scale, bool enable_gqa) {
  const bool masked = mask && mask->defined();
  if (dropout != 0 || !is_one_operation(q, k, v, enable_gqa) || (masked && !takes_mask(*mask, q, k)))
    return at::native::scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale, enable_gqa);
  return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, causal,
                                                                     masked ? mask : std::nullopt, scale));
}

}  // namespace

// For autograd's key too: what the operation does has its gradient, but it has none itself.
void register_attention() {
  for (const auto key : {c10::DispatchKey::XLA, c10::DispatchKey::AutogradXLA}) {
    auto* library = new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
    library->impl("scaled_dot_product_attention", TORCH_FN(attention));
  }
}

}  // namespace sluice::device
