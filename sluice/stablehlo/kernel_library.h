// Calls of kernels that a machine has beside its compiler: what a program's text says of them, and the
// question whether there is one. They are pure functions; all tensors are dense f32.
#pragma once

#include <cstdint>
#include <string_view>

#include "sluice/stablehlo/type.h"

namespace sluice::stablehlo {

// "sluice_convolution": y[o] = sum x[o * stride + k * dilation - padding] w[k], or a gradient of it.
// Activations lie in memory with the channels last, weights as their dims say.
// Attributes: kind, stride, padding, dilation, groups.
struct ConvolutionCall {
  static constexpr std::string_view kTarget = "sluice_convolution";
  // Operands → results: (x, w) → y, (y's gradient, w) → x's, (x, y's gradient) → w's; or both gradients at
  // once, (x, w, y's gradient) → x's, w's: then nothing reads w after its gradient is there, and an update of
  // w can take its place without a copy.
  enum class Kind : int64_t { kForward, kData, kWeights, kBackward };
  Kind kind = Kind::kForward;
  Dims x;                          // [N, C, in…], one to three spatial dimensions
  Dims w;                          // [O, C / groups, k…]
  Dims y;                          // [N, O, out…]
  Dims stride, padding, dilation;  // one entry a spatial dimension; padding in front
  int64_t groups = 1;
};

// "sluice_product": c [batch, m, n] = a [batch, m, k] b [batch, k, n]. Without a batch there are two
// dimensions. An operand that is transposed is passed as it lies in memory: [batch, k, m], [batch, n, k].
// Attributes: transposed_a, transposed_b (0 or 1).
struct ProductCall {
  static constexpr std::string_view kTarget = "sluice_product";
  int64_t batch = 1, m = 0, k = 0, n = 0;
  bool transposed_a = false, transposed_b = false;
};

// "sluice_moments": x [N, C, …] → mean [C], biased variance [C].
// "sluice_channel_sums": g, x [N, C, …], mean [C], inverse [C] → sum [C] = Σ g, product [C] = Σ g (x - mean)
// inverse. g and x lie in memory with the channels last.
inline constexpr std::string_view kMomentsTarget = "sluice_moments";
inline constexpr std::string_view kChannelSumsTarget = "sluice_channel_sums";

// "sluice_max_pooling_gradient": x [N, C, in…], y's gradient [N, C, out…] → x's gradient; all with the
// channels last. A window's gradient goes to the first of its equal maxima, or to its last NaN. Attributes:
// kernel, stride, padding, dilation (one entry a spatial dimension).
inline constexpr std::string_view kMaxPoolingGradientTarget = "sluice_max_pooling_gradient";

// Threads: any.
class KernelLibrary {
 public:
  virtual ~KernelLibrary() = default;
  // Whether there is a kernel that is faster than what the compiler makes. May take milliseconds at the first
  // time.
  virtual bool has(const ConvolutionCall& call) const = 0;
  virtual bool has(const ProductCall& call) const = 0;
};

}  // namespace sluice::stablehlo
