// torch::scaled_dot_product_attention as one operation. LibTorch asks each device which of its ways it wants,
// through a table that has no place for XLA, and would multiply, take the softmax and multiply again.
#include <ATen/Context.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>
#include <torch/library.h>

#include "sluice/device/record.h"

namespace sluice::device {
namespace {

bool is_one_operation(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  return q.dim() == 4 && k.dim() == 4 && v.sizes().equals(k.sizes()) && q.size(0) == k.size(0) &&
         q.size(1) == k.size(1) && q.size(3) == k.size(3) && q.numel() > 0 && k.numel() > 0 &&
         at::isFloatingType(q.scalar_type()) && q.scalar_type() == k.scalar_type() &&
         q.scalar_type() == v.scalar_type() && at::globalContext().userEnabledFlashSDP();
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const std::optional<at::Tensor>& mask, double dropout, bool causal,
                     std::optional<double> scale, bool enable_gqa) {
  if (mask || dropout != 0 || enable_gqa || !is_one_operation(q, k, v))
    return at::native::scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale, enable_gqa);
  return std::get<0>(
      at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, causal, /*attn_mask=*/std::nullopt, scale));
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
