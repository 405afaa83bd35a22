#include "sluice/kernels/convolution/convolution.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/kernels/convolution/algorithm.h"
#include "sluice/kernels/convolution/channels_first.h"
#include "sluice/kernels/convolution/columns.h"
#include "sluice/kernels/convolution/convolution_kernel.h"
#include "sluice/kernels/convolution/depthwise.h"
#include "sluice/kernels/convolution/depthwise_planes.h"
#include "sluice/kernels/convolution/direct.h"
#include "sluice/kernels/convolution/few_pixels.h"
#include "sluice/kernels/convolution/planes.h"
#include "sluice/kernels/convolution/pointwise.h"
#include "sluice/kernels/convolution/winograd/tiles.h"
#include "sluice/kernels/convolution/winograd/winograd.h"
#include "sluice/kernels/left_out.h"
#include "sluice/kernels/onednn.h"
#include "sluice/kernels/prepared.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Dims = stablehlo::Dims;
using Convolution = stablehlo::ConvolutionCall;
using Kind = Convolution::Kind;

class WinogradKernel : public ConvolutionKernel {
 public:
  WinogradKernel(Kind kind, std::unique_ptr<Winograd> winograd)
      : kind_(kind), winograd_(std::move(winograd)) {}

  base::Status run(const ConvolutionTensors& at) const override {
    auto *x = static_cast<float*>(at.x), *w = static_cast<float*>(at.w), *y = static_cast<float*>(at.y);
    if (kind_ == Kind::kWeights) return winograd_->run(x, y, w);
    return kind_ == Kind::kData ? winograd_->run(y, w, x) : winograd_->run(x, w, y);
  }

 private:
  Kind kind_;
  std::unique_ptr<Winograd> winograd_;
};

std::unique_ptr<ConvolutionKernel> make_winograd_kernel(const Convolution& c, bool narrow) {
  const WinogradShape shape = *winograd_shape(c);
  std::unique_ptr<Winograd> made;
  if (c.kind == Kind::kWeights)
    made = narrow ? make_narrow_winograd_gradient(shape) : make_winograd_gradient(shape);
  else
    made = narrow ? make_narrow_winograd(shape) : make_winograd(shape);
  return made ? std::make_unique<WinogradKernel>(c.kind, std::move(made)) : nullptr;
}

// Makes a kernel for activations with the channels last.
std::unique_ptr<ConvolutionKernel> make_channels_last(const Convolution& c) {
  switch (choose_algorithm(c)) {
    case Algorithm::kPointwise:
      return make_pointwise(c);
    case Algorithm::kFewPixels:
      return make_few_pixels(c);
    case Algorithm::kNarrowWinograd:
      return make_winograd_kernel(c, /*narrow=*/true);
    case Algorithm::kWinograd:
      // Null if the library wants the weights in an order that the transform cannot write.
      if (auto kernel = make_winograd_kernel(c, /*narrow=*/false)) return kernel;
      break;
    case Algorithm::kPlanes:
    case Algorithm::kDepthwisePlanes:
    case Algorithm::kDirect:
      break;
  }
  // The library generates code for few shapes that are transposed, dilated or have uneven channels.
  if (!is_left_out("direct"))
    if (auto kernel = make_direct(c)) return kernel;
  return is_depthwise(c) && !is_left_out("depthwise") ? make_depthwise(c) : nullptr;
}

std::unique_ptr<ConvolutionKernel> make_kernel(const Convolution& c) {
  if (!c.channels_first) {
    auto kernel = make_channels_last(c);
    return kernel || is_left_out("columns") ? std::move(kernel) : make_columns(c);
  }
  const Algorithm algorithm = choose_algorithm(c);
  if (algorithm == Algorithm::kDepthwisePlanes) return make_depthwise_planes(c);
  if (algorithm == Algorithm::kPlanes)
    if (auto kernel = make_planes(c)) return kernel;
  Convolution last = c;
  last.channels_first = false;
  if (auto kernel = make_channels_last(last)) return make_channels_first(c, std::move(kernel));
  if (has_long_lines(c) && !is_left_out("planes"))
    if (auto kernel = make_planes(c)) return kernel;
  return is_left_out("columns") ? nullptr : make_channels_first(c, make_columns(last));
}

// Returns the kernel for any kind but kBackward.
const ConvolutionKernel* find_kernel(const Convolution& c) {
  static auto& kernels = *new Prepared<ConvolutionKernel>;
  std::vector<int64_t> key = {static_cast<int64_t>(c.kind), c.groups, c.channels_first, threads_of_a_call()};
  for (const Dims* dims : {&c.x, &c.w, &c.y, &c.stride, &c.padding, &c.dilation})
    key.insert(key.end(), dims->begin(), dims->end());
  return kernels.find(key, [&] { return make_kernel(c); });
}

std::vector<Convolution> parts_of(const Convolution& c) {
  if (c.kind != Kind::kBackward) return {c};
  std::vector<Convolution> parts = {c, c};
  parts[0].kind = Kind::kData;
  parts[1].kind = Kind::kWeights;
  return parts;
}

// Returns the fault of an invalid call, which must not run.
std::optional<std::string> fault_of(const Convolution& c) {
  const size_t spatial = c.stride.size();
  const auto text = [](const Dims& dims) { return base::str("[", base::join(dims, ","), "]"); };
  if (spatial < 1 || spatial > 3 || c.padding.size() != spatial || c.dilation.size() != spatial)
    return base::str("stride ", text(c.stride), ", padding ", text(c.padding), ", dilation ",
                     text(c.dilation), ", expected one entry for each of 1 to 3 spatial dimensions");
  const auto at_least = [](const Dims& numbers, int64_t min) {
    return std::ranges::all_of(numbers, [min](int64_t n) { return n >= min; });
  };
  if (!at_least(c.stride, 1) || !at_least(c.padding, 0) || !at_least(c.dilation, 1) || c.groups < 1)
    return base::str("stride ", text(c.stride), ", padding ", text(c.padding), ", dilation ",
                     text(c.dilation), ", ", c.groups,
                     " groups, expected 1 or more each, and a padding of 0 or more");
  const std::string shapes = base::str("x ", text(c.x), ", w ", text(c.w), ", y ", text(c.y));
  for (const Dims* dims : {&c.x, &c.w, &c.y})
    if (dims->size() != spatial + 2 || !at_least(*dims, 1))
      return base::str(shapes, ", expected ", spatial + 2, " dims each, which are not 0");
  if (c.x[0] != c.y[0] || c.w[0] != c.y[1] || c.w[0] % c.groups != 0 || c.w[1] * c.groups != c.x[1])
    return base::str(shapes, ", expected [N, C, …], [O, C / groups, …] and [N, O, …] with ", c.groups,
                     " groups");
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t room = c.x[d + 2] + 2 * c.padding[d] - c.dilation[d] * (c.w[d + 2] - 1) - 1;
    if (room < 0 || room / c.stride[d] + 1 != c.y[d + 2])
      return base::str(shapes, ", expected ", room < 0 ? 0 : room / c.stride[d] + 1,
                       " results along dimension ", d + 2, " with stride ", c.stride[d], ", padding ",
                       c.padding[d], " and dilation ", c.dilation[d]);
  }
  return std::nullopt;
}

}  // namespace

bool has_convolution(const Convolution& c) {
  if (fault_of(c)) return false;
  if (!Onednn::open()) return false;
  const UseThreads threads;
  const std::vector<Convolution> parts = parts_of(c);
  return std::all_of(parts.begin(), parts.end(),
                     [](const Convolution& p) { return find_kernel(p) != nullptr; });
}

base::Status run_convolution(const Convolution& c, const ConvolutionMemory& at) {
  for (const Convolution& part : parts_of(c)) {
    const ConvolutionKernel* kernel = find_kernel(part);
    if (kernel == nullptr) return no_kernel("convolution");
    SLUICE_OK(kernel->run({part.kind == Kind::kData ? at.grad_x : at.x,
                           part.kind == Kind::kWeights ? at.grad_w : at.w, at.y, at.bias}));
  }
  return {};
}

base::Status call_convolution(const Call& call) {
  Convolution c;
  SLUICE_TRY(const int64_t kind, call.number("kind"));
  SLUICE_TRY(c.groups, call.number("groups"));
  SLUICE_TRY(c.stride, call.list("stride"));
  SLUICE_TRY(c.padding, call.list("padding"));
  SLUICE_TRY(c.dilation, call.list("dilation"));
  SLUICE_TRY(c.channels_first, call.flag("channels_first"));
  c.kind = static_cast<Kind>(kind);
  const bool both = c.kind == Kind::kBackward;
  const bool may_have_bias = c.channels_first && (c.kind == Kind::kForward || c.kind == Kind::kData);
  if (both)
    SLUICE_OK(call.takes({{3, 2}}));
  else if (may_have_bias)
    SLUICE_OK(call.takes({{2, 1}, {3, 1}}));
  else
    SLUICE_OK(call.takes({{2, 1}}));
  SLUICE_TRY(const Tensor first, call.operand(0, c.kind == Kind::kData ? "grad_y" : "x"));
  SLUICE_TRY(const Tensor second, call.operand(1, c.kind == Kind::kWeights ? "grad_y" : "w"));
  SLUICE_TRY(const Tensor third, both ? call.operand(2, "grad_y") : base::Result<Tensor>(second));
  SLUICE_TRY(const Tensor result, both ? call.result(0, "grad_x", first.dims) : call.result(0, "result"));
  SLUICE_TRY(const Tensor other, both ? call.result(1, "grad_w", second.dims) : base::Result<Tensor>(result));
  const Tensor &x = c.kind == Kind::kData ? result : first, &w = c.kind == Kind::kWeights ? result : second,
               &y = c.kind == Kind::kForward ? result : (c.kind == Kind::kData ? first : third);
  c.x.assign(x.dims.begin(), x.dims.end());
  c.w.assign(w.dims.begin(), w.dims.end());
  c.y.assign(y.dims.begin(), y.dims.end());
  if (const auto fault = fault_of(c)) return call.refuse(*fault);
  ConvolutionMemory at{x.data, w.data, y.data, result.data, other.data};
  if (may_have_bias && call.num_operands() > 2) {
    SLUICE_TRY(const Tensor bias, call.operand(2, "bias", result.dims.subspan(1, 1)));
    at.bias = bias.data;
  }
  return run_convolution(c, at);
}

}  // namespace sluice::kernels
