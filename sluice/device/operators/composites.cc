// Operations that are composed of others here, because LibTorch offers no such composition for this device:
// copies of views, the steps of gradient scaling, covariances, CTC with lengths that are not a part of the
// program, and the gradient of a cumulative product.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/cov_native.h>
#include <ATen/ops/cumprod_backward.h>
#include <ATen/ops/cumprod_backward_native.h>
#include <torch/library.h>

#include <algorithm>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/device/program/record.h"
#include "sluice/device/storage.h"

namespace sluice::device {
namespace {

// ---- Copies of views ----

// The operations X whose copy "X_copy" has the same arguments.
constexpr std::string_view kViews[] = {
    "alias",          "as_strided",      "detach",           "diagonal",     "expand",
    "lift_fresh",     "narrow",          "permute",          "select.int",   "slice.Tensor",
    "split.Tensor",   "squeeze",         "squeeze.dim",      "squeeze.dims", "t",
    "transpose.int",  "unbind.int",      "split_with_sizes", "unfold",       "unsqueeze",
    "_reshape_alias", "view_as_complex", "view_as_real"};

// Calls the view, and clones its result.
class Copied final : public c10::OperatorKernel {
 public:
  explicit Copied(c10::OperatorHandle view) : view_(std::move(view)) {}

  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack* stack) {
    view_.callBoxed(stack);
    const c10::IValue result = torch::jit::pop(*stack);
    const auto copy = [](const at::Tensor& tensor) { return tensor.clone(at::MemoryFormat::Contiguous); };
    if (result.isTensor()) {
      stack->emplace_back(copy(result.toTensor()));
      return;
    }
    c10::List<at::Tensor> copies;
    for (const at::Tensor& tensor : result.toTensorList()) copies.push_back(copy(tensor));
    stack->emplace_back(std::move(copies));
  }

 private:
  c10::OperatorHandle view_;
};

void register_copies_of_views(torch::Library& library) {
  for (const std::string_view view : kViews) {
    const std::string name(view.substr(0, view.find('.')));
    const std::string overload = name.size() < view.size() ? std::string(view.substr(name.size() + 1)) : "";
    const auto found = c10::Dispatcher::singleton().findSchema({"aten::" + name, overload});
    if (!found) throw_error(Code::kInternal, base::str("this LibTorch has no view aten::", view));
    const std::string copy = name + "_copy" + (overload.empty() ? "" : "." + overload);
    library.impl(copy.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Copied>(*found)));
  }
}

at::Tensor view_copy(const at::Tensor& self, at::IntArrayRef size) {
  return self.reshape(size).clone(at::MemoryFormat::Contiguous);
}

at::Tensor& narrow_copy_out(const at::Tensor& self, int64_t dim, int64_t start, int64_t length,
                            at::Tensor& out) {
  const at::Tensor part = self.narrow(dim, start, length);
  return out.resize_(part.sizes()).copy_(part);
}

// Returns a copy of the tensor's whole memory, with the same elements at the same places.
at::Tensor clone_of_memory(const at::Tensor& self) {
  const auto elements = static_cast<int64_t>(self.storage().nbytes() / self.itemsize());
  return self.as_strided({elements}, {1}, 0)
      .clone()
      .as_strided(self.sizes(), self.strides(), self.storage_offset());
}

at::Tensor as_strided_scatter(const at::Tensor& self, const at::Tensor& src, at::IntArrayRef size,
                              at::IntArrayRef stride, std::optional<int64_t> offset) {
  const at::Tensor result = clone_of_memory(self), place = result.as_strided(size, stride, offset);
  if (!place.sizes().equals(src.sizes()))
    throw_error(Code::kInvalidArgument,
                base::str("aten::as_strided_scatter: expected src to have a size equal to the "
                          "slice of self, ",
                          place.sizes(), ", found ", src.sizes()));
  place.copy_(src);
  return result;
}

// ---- The steps of gradient scaling ----

// Sets found_inf to 1 if a gradient is not finite; multiplies the gradients by inv_scale.
void check_and_unscale(at::TensorList gradients, at::Tensor& found_inf, const at::Tensor& inv_scale) {
  for (const at::Tensor* number : {static_cast<const at::Tensor*>(&found_inf), &inv_scale})
    if (number->numel() != 1 || number->scalar_type() != at::kFloat)
      throw_error(
          Code::kInvalidArgument,
          base::str("aten::_amp_foreach_non_finite_check_and_unscale_: expected found_inf and inv_scale of "
                    "one float, found ",
                    number->sizes(), " of ", c10::toString(number->scalar_type())));
  const at::Tensor factor = inv_scale.reshape({});
  for (const at::Tensor& gradient : gradients) {
    const at::Tensor infinite = at::isfinite(gradient).logical_not().any().to(at::kFloat);
    found_inf.copy_(at::maximum(found_inf, infinite.expand_as(found_inf)));
    gradient.mul_(factor);
  }
}

// The scale grows after growth_interval steps without an infinity, and shrinks after each one.
at::Tensor& update_scale(at::Tensor& scale, at::Tensor& growth_tracker, const at::Tensor& found_inf,
                         double growth_factor, double backoff_factor, int64_t growth_interval) {
  if (growth_tracker.numel() != 1 || growth_tracker.scalar_type() != at::kInt || scale.numel() != 1 ||
      scale.scalar_type() != at::kFloat || found_inf.numel() != 1)
    throw_error(Code::kInvalidArgument,
                "aten::_amp_update_scale_: expected a scale and found_inf of one float and a growth_tracker "
                "of one int");
  const at::Tensor found = found_inf.reshape({}).ne(0), steps = growth_tracker.reshape({}) + 1;
  const at::Tensor old = scale.reshape({}), grown = old * growth_factor;
  const at::Tensor due = steps.eq(growth_interval).logical_and(found.logical_not());
  const at::Tensor kept = at::where(due.logical_and(at::isfinite(grown)), grown, old);
  const at::Tensor made = at::where(found, old * backoff_factor, kept);
  growth_tracker.copy_(
      at::where(found.logical_or(due), at::zeros_like(steps), steps).expand_as(growth_tracker));
  scale.copy_(made.expand_as(scale));
  return scale;
}

// ---- Covariance ----

// LibTorch composes it and subtracts a rounded mean. The covariance stays the same after subtracting the
// first observation, and the mean is then small.
at::Tensor covariance(const at::Tensor& self, int64_t correction, const std::optional<at::Tensor>& counts,
                      const std::optional<at::Tensor>& weights) {
  if (self.dim() > 2 || self.numel() == 0 || !(self.is_floating_point() || self.is_complex()))
    return at::native::cov(self, correction, counts, weights);
  const at::Tensor first = self.detach().narrow(-1, 0, 1);
  return at::native::cov(self - first, correction, counts, weights);
}

// ---- CTC ----

at::Tensor reduce_ctc(const at::Tensor& losses, const at::Tensor& target_lengths, int64_t reduction,
                      bool zero_infinity) {
  const at::Tensor finite =
      zero_infinity ? at::where(losses.eq(INFINITY), at::zeros_like(losses), losses) : losses;
  if (reduction == at::Reduction::Mean)
    return (finite / target_lengths.to(losses.options()).clamp_min(1)).mean();
  return reduction == at::Reduction::Sum ? finite.sum() : finite;
}

at::Tensor on_the_device(const at::Tensor& lengths, const at::Tensor& like) {
  return lengths.to(like.device(), at::kLong);
}

at::Tensor ctc_loss_of_tensors(const at::Tensor& log_probs, const at::Tensor& targets,
                               const at::Tensor& input_lengths, const at::Tensor& target_lengths,
                               int64_t blank, int64_t reduction, bool zero_infinity) {
  for (const at::Tensor& lengths : {input_lengths, target_lengths})
    if (!c10::isIntegralType(lengths.scalar_type(), /*includeBool=*/false))
      throw_error(Code::kInvalidArgument, base::str("aten::ctc_loss: expected lengths to be integral, found ",
                                                    c10::toString(lengths.scalar_type())));
  const bool batched = log_probs.dim() == 3;
  const at::Tensor inputs = on_the_device(input_lengths, log_probs).reshape({-1}),
                   labels = on_the_device(target_lengths, log_probs).reshape({-1});
  const at::Tensor losses =
      std::get<0>(at::_ctc_loss(batched ? log_probs : log_probs.unsqueeze(1), targets.to(log_probs.device()),
                                inputs, labels, blank, zero_infinity));
  const at::Tensor reduced = reduce_ctc(losses, labels, reduction, zero_infinity);
  return batched || reduced.dim() == 0 ? reduced : reduced.squeeze(0);
}

void check_lengths(std::string_view name, at::IntArrayRef lengths, int64_t most) {
  for (const int64_t length : lengths)
    if (length < 0 || length > most)
      throw_error(Code::kInvalidArgument,
                  base::str("aten::ctc_loss: expected ", name, " from 0 to ", most, ", found ", length));
}

// Turns lists of lengths into tensors: as lists they would be a part of the program, which each batch would
// compile again. If targets follow one another, every batch has its own shape anyway, and knowing the longest
// target helps.
at::Tensor ctc_loss_of_lists(const at::Tensor& log_probs, const at::Tensor& targets,
                             at::IntArrayRef input_lengths, at::IntArrayRef target_lengths, int64_t blank,
                             int64_t reduction, bool zero_infinity) {
  check_lengths("input_lengths", input_lengths, log_probs.size(0));
  check_lengths("target_lengths", target_lengths, targets.size(-1));
  const at::Tensor inputs = at::tensor(input_lengths, at::kLong),
                   labels = at::tensor(target_lengths, at::kLong);
  const bool one_after_another = targets.dim() == 1 && log_probs.dim() == 3;
  if (!one_after_another)
    return ctc_loss_of_tensors(log_probs, targets, inputs, labels, blank, reduction, zero_infinity);
  const at::Tensor losses = std::get<0>(at::_ctc_loss(log_probs, targets.to(log_probs.device()),
                                                      input_lengths, target_lengths, blank, zero_infinity));
  return reduce_ctc(losses, on_the_device(labels, log_probs), reduction, zero_infinity);
}

// ---- The gradient of a cumulative product ----

// LibTorch's code asks the host whether a factor is 0; the row does not. The row has no gradient, so
// LibTorch's code makes second derivatives, and takes the types that the row refuses.
at::Tensor cumprod_backward(const at::Tensor& grad, const at::Tensor& input, int64_t dim,
                            const at::Tensor& output) {
  const bool one_type = input.is_floating_point() && grad.scalar_type() == input.scalar_type() &&
                        output.scalar_type() == input.scalar_type();
  if (at::GradMode::is_enabled() || !one_type) return at::native::cumprod_backward(grad, input, dim, output);
  const at::AutoDispatchBelowAutograd below;
  return at::cumprod_backward(grad, input, dim, output);
}

}  // namespace

void register_composites() {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::XLA, __FILE__, __LINE__);
  register_copies_of_views(*library);
  library->impl("view_copy", TORCH_FN(view_copy));
  library->impl("narrow_copy.out", TORCH_FN(narrow_copy_out));
  library->impl("as_strided_scatter", TORCH_FN(as_strided_scatter));
  library->impl("_amp_foreach_non_finite_check_and_unscale_", TORCH_FN(check_and_unscale));
  library->impl("_amp_update_scale_", TORCH_FN(update_scale));
  // Registers for autograd's key too: the operations that these call have gradients, but these do
  // not.
  for (const auto key : {c10::DispatchKey::XLA, c10::DispatchKey::AutogradXLA}) {
    auto* both = new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
    both->impl("cov", TORCH_FN(covariance));
    both->impl("ctc_loss.Tensor", TORCH_FN(ctc_loss_of_tensors));
    both->impl("ctc_loss.IntList", TORCH_FN(ctc_loss_of_lists));
  }
  static auto* autograd =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradXLA, __FILE__, __LINE__);
  autograd->impl("cumprod_backward", TORCH_FN(cumprod_backward));
}

}  // namespace sluice::device
