// torch::scaled_dot_product_attention as one operation. LibTorch asks each device for its preferred
// implementation through a table that has no place for XLA, and would multiply, take the softmax and multiply
// again. With dropout, it is an operation of Sluice's own, whose random numbers the gradient draws again.
#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "sluice/base/error.h"
#include "sluice/device/operators/own_operation.h"
#include "sluice/device/program/record.h"

namespace sluice::device {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Three = std::tuple<Tensor, Tensor, Tensor>;

// The forward results are the output, the logarithms of the softmax's sums, and the state of the random
// numbers; the backward results are the gradients of query, key and value.
constexpr const char* kForwardSchema =
    "attention_with_dropout(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, float dropout_p, "
    "bool is_causal, float? scale) -> (Tensor, Tensor, Tensor)";
constexpr const char* kBackwardSchema =
    "attention_with_dropout_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, "
    "Tensor logsumexp, Tensor state, Tensor? attn_mask, float dropout_p, bool is_causal, float? scale) -> "
    "(Tensor, Tensor, Tensor)";

bool is_one_operation(const Tensor& q, const Tensor& k, const Tensor& v, bool enable_gqa) {
  if (q.dim() != 4 || k.dim() != 4 || q.numel() == 0 || k.numel() == 0 || !v.sizes().equals(k.sizes()))
    return false;
  const bool heads = q.size(1) == k.size(1) || (enable_gqa && q.size(1) % k.size(1) == 0);
  return heads && q.size(0) == k.size(0) && q.size(3) == k.size(3) && at::isFloatingType(q.scalar_type()) &&
         q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type() &&
         at::globalContext().userEnabledFlashSDP();
}

// Returns whether this file's operation takes the mask. LibTorch's own code handles a mask that needs a
// gradient, or that LibTorch refuses.
bool takes_mask(const Tensor& mask, const Tensor& q, const Tensor& k) {
  return !(mask.requires_grad() && at::GradMode::is_enabled()) &&
         (mask.scalar_type() == at::kBool || mask.scalar_type() == q.scalar_type()) &&
         at::is_expandable_to(mask.sizes(), {q.size(0), q.size(1), q.size(2), k.size(2)});
}

class AttentionWithDropout : public torch::autograd::Function<AttentionWithDropout> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& q, const Tensor& k, const Tensor& v,
                        const std::optional<Tensor>& mask, double p, bool causal,
                        std::optional<double> scale) {
    const auto [output, logsumexp, state] =
        call_own<Three>("sluice::attention_with_dropout", q, k, v, mask, p, causal, scale);
    context->save_for_backward({q, k, v, mask.value_or(Tensor()), output, logsumexp, state});
    context->saved_data["p"] = p;
    context->saved_data["causal"] = causal;
    context->saved_data["scale"] = scale;
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (at::GradMode::is_enabled())
      throw_error(Code::kUnimplemented,
                  "scaled_dot_product_attention with dropout has no second derivative (create_graph) on the "
                  "xla device; after at::globalContext().setSDPUseFlash(false) LibTorch takes it apart into "
                  "operations that have one");
    const variable_list saved = context->get_saved_variables();
    const Tensor &q = saved[0], &k = saved[1], &v = saved[2], &output = saved[4], &logsumexp = saved[5],
                 &state = saved[6];
    const auto mask = saved[3].defined() ? std::optional<Tensor>(saved[3]) : std::nullopt;
    const auto [of_q, of_k, of_v] = call_own<Three>(
        "sluice::attention_with_dropout_backward", gradients[0], q, k, v, output, logsumexp, state, mask,
        context->saved_data["p"].toDouble(), context->saved_data["causal"].toBool(),
        context->saved_data["scale"].toOptional<double>());
    return {of_q, of_k, of_v, {}, {}, {}, {}};
  }
};

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask,
                 double dropout, bool causal, std::optional<double> scale, bool enable_gqa) {
  const bool masked = mask && mask->defined();
  if (!is_one_operation(q, k, v, enable_gqa) || (masked && !takes_mask(*mask, q, k)))
    return at::native::scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale, enable_gqa);
  const std::optional<Tensor> given = masked ? mask : std::nullopt;
  if (dropout != 0) return AttentionWithDropout::apply(q, k, v, given, dropout, causal, scale);
  return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, causal, given, scale));
}

}  // namespace

// Registers for autograd's key too: the operations that this one calls have gradients, but it
// does not.
void register_attention() {
  auto* own = new torch::Library(torch::Library::FRAGMENT, "sluice", std::nullopt, __FILE__, __LINE__);
  own->def(kForwardSchema);
  own->def(kBackwardSchema);
  for (const auto key : {c10::DispatchKey::XLA, c10::DispatchKey::AutogradXLA}) {
    auto* library = new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
    library->impl("scaled_dot_product_attention", TORCH_FN(attention));
  }
}

}  // namespace sluice::device
