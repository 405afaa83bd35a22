#include "sluice/metrics/input.h"

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"

namespace sluice::metrics {
namespace input_detail {

[[noreturn]] void refuse(const std::string& name, const std::string& expected, const Input& input,
                         const std::string& advice = "") {
  throw_error(Code::kInvalidArgument,
              base::str("the metric '", name, "' expected ", expected, "; found an output of ",
                        input.output.sizes(), " (", input.output.scalar_type(), ") and a target of ",
                        input.target.sizes(), " (", input.target.scalar_type(), ")", advice));
}

void check_defined(const std::string& name, const Input& input) {
  if (!input.output.defined() || !input.target.defined())
    throw_error(
        Code::kInvalidArgument,
        base::str("the metric '", name, "' expected an output and a target; found an undefined tensor"));
}

// Returns one bool for each element of the target.
torch::Tensor flat_mask(const std::string& name, const torch::Tensor& mask, const torch::Tensor& target) {
  if (!mask.defined()) return at::ones({target.numel()}, target.options().dtype(torch::kBool));
  const at::IntArrayRef sizes = target.sizes();
  const auto dims = static_cast<size_t>(mask.dim());
  if (mask.scalar_type() != torch::kBool || dims > sizes.size() || mask.sizes() != sizes.slice(0, dims))
    throw_error(
        Code::kInvalidArgument,
        base::str("the metric '", name, "' expected a mask of bool that has the shape of the target, ", sizes,
                  ", or of its first dimensions; found ", mask.sizes(), " (", mask.scalar_type(), ")"));
  std::vector<int64_t> shape(mask.sizes().begin(), mask.sizes().end());
  shape.resize(sizes.size(), 1);
  return mask.reshape(shape).expand(sizes).reshape(-1);
}

std::string expected_shapes(int64_t classes) {
  if (classes == 1)
    return "scores of [...] or [..., 1] in floating point and labels 0 and 1 of [...] in int64";
  const std::string count = classes == 0 ? "classes" : std::to_string(classes);
  return base::str("scores of [..., ", count, "] in floating point and class numbers of [...] in int64");
}

// Whether the scores are [N, C, d…], as cross_entropy takes them.
bool has_classes_second(const at::IntArrayRef output, const at::IntArrayRef target) {
  return output.size() > 2 && output.size() == target.size() + 1 && output[0] == target[0] &&
         output.slice(2) == target.slice(1);
}

}  // namespace input_detail

Labelled labelled(const std::string& name, int64_t classes, const Input& input) {
  input_detail::check_defined(name, input);
  const at::IntArrayRef output = input.output.sizes(), target = input.target.sizes();
  const bool has_class_dim = output.size() == target.size() + 1 && output.slice(0, target.size()) == target;
  const bool fits = classes == 1 ? output == target || (has_class_dim && output.back() == 1)
                                 : has_class_dim && (classes == 0 || output.back() == classes);
  if (!fits || !at::isFloatingType(input.output.scalar_type()) || input.target.scalar_type() != torch::kLong)
    input_detail::refuse(name, input_detail::expected_shapes(classes), input,
                         !fits && input_detail::has_classes_second(output, target)
                             ? ". Move the classes to the end: output.movedim(1, -1)"
                             : "");
  Labelled result;
  result.mask = input_detail::flat_mask(name, input.mask, input.target);
  result.output =
      input.output.to(torch::kFloat).reshape({input.target.numel(), classes == 1 ? 1 : output.back()});
  const torch::Tensor labels = input.target.reshape(-1);
  result.target = at::where(result.mask, labels, at::zeros_like(labels));
  return result;
}

torch::Tensor checked(const torch::Tensor& target, int64_t classes) {
  return at::arange(classes, target.options()).index_select(0, target);
}

torch::Tensor answers(const Labelled& labelled, bool probabilities) {
  if (labelled.output.size(1) > 1) return labelled.output.argmax(1);
  return labelled.output.select(1, 0).gt(probabilities ? 0.5 : 0.0).to(torch::kLong);
}

Measured measured(const std::string& name, const Input& input) {
  input_detail::check_defined(name, input);
  if (input.output.sizes() != input.target.sizes() || !at::isFloatingType(input.output.scalar_type()) ||
      !at::isFloatingType(input.target.scalar_type()))
    input_detail::refuse(name, "two tensors of one shape in floating point", input);
  return {input.output.to(torch::kFloat).reshape(-1), input.target.to(torch::kFloat).reshape(-1),
          input_detail::flat_mask(name, input.mask, input.target)};
}

}  // namespace sluice::metrics
