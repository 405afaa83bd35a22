#include "sluice/kernels/rows/gelu.h"

#include <algorithm>
#include <array>

#include "sluice/kernels/lanes.h"
#include "sluice/kernels/rows/exponential.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

// The elements that a thread processes before it takes the next ones.
constexpr size_t kPiece = 16 << 10;

// Computes Φ(x) and φ(x): erfc by Abramowitz & Stegun (1964), 7.1.26, needs the same exponential as φ.
template <typename L>
SLUICE_INLINE void normal(const L& x, L& distribution, L& density) {
  constexpr float kInverseSqrt2 = 0.70710678118654752f, kInverseSqrt2Pi = 0.39894228040143268f;
  const L away = (x < 0.f ? -x : x) * kInverseSqrt2;
  L exp = -away * away;
  exponential(exp);
  const L t = 1.f / (away * 0.3275911f + 1.f);
  L p = t * 1.061405429f - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  const L tail = 0.5f * p * t * exp;
  distribution = x < 0.f ? tail : 1.f - tail;
  density = exp * kInverseSqrt2Pi;
}

template <typename L>
SLUICE_INLINE void gelu_lanes(const float* from, float* to) {
  L x, distribution, density;
  load(from, x);
  normal(x, distribution, density);
  store(x * distribution, to);
}

template <typename L>
SLUICE_INLINE void gradient_lanes(const float* grad_y, const float* from, float* to) {
  L x, grad, distribution, density;
  load(grad_y, grad);
  load(from, x);
  normal(x, distribution, density);
  store(grad * (distribution + x * density), to);
}

// The elements left over after whole registers, padded with zeros.
template <typename L>
struct Rest {
  Rest(const float* from, size_t count) { std::copy_n(from, count, floats.data()); }
  std::array<float, kFloatsOf<L>> floats = {};
};

template <typename L>
SLUICE_INLINE void gelu_piece_by(const float* x, size_t elements, float* y) {
  size_t i = 0;
  for (; i + kFloatsOf<L> <= elements; i += kFloatsOf<L>) gelu_lanes<L>(x + i, y + i);
  Rest<L> rest(x + i, elements - i);
  gelu_lanes<L>(rest.floats.data(), rest.floats.data());
  std::copy_n(rest.floats.data(), elements - i, y + i);
}

template <typename L>
SLUICE_INLINE void gradient_piece_by(const float* grad_y, const float* x, size_t elements, float* to) {
  size_t i = 0;
  for (; i + kFloatsOf<L> <= elements; i += kFloatsOf<L>) gradient_lanes<L>(grad_y + i, x + i, to + i);
  Rest<L> rest_of_grad(grad_y + i, elements - i), rest_of_x(x + i, elements - i);
  gradient_lanes<L>(rest_of_grad.floats.data(), rest_of_x.floats.data(), rest_of_grad.floats.data());
  std::copy_n(rest_of_grad.floats.data(), elements - i, to + i);
}

SLUICE_BY_LANES(gelu_piece, (const float* x, size_t elements, float* y), (x, elements, y))
SLUICE_BY_LANES(gradient_piece, (const float* grad_y, const float* x, size_t elements, float* to),
                (grad_y, x, elements, to))

}  // namespace

void gelu(size_t elements, const float* x, float* y) {
  const auto work = has_lanes8() ? gelu_piece : gelu_piece_by<Lanes8>;
  parallel_pieces(elements, kPiece, [&](size_t first, size_t count) { work(x + first, count, y + first); });
}

void gelu_gradient(size_t elements, const float* grad_y, const float* x, float* grad_x) {
  const auto work = has_lanes8() ? gradient_piece : gradient_piece_by<Lanes8>;
  parallel_pieces(elements, kPiece, [&](size_t first, size_t count) {
    work(grad_y + first, x + first, count, grad_x + first);
  });
}

base::Status call_gelu(const Call& call) {
  SLUICE_OK(call.takes({{1, 1}}));
  SLUICE_TRY(const Tensor x, call.operand(0, "x"));
  SLUICE_TRY(const Tensor y, call.result(0, "y", x.dims));
  gelu(x.elements(), x.data, y.data);
  return {};
}

base::Status call_gelu_gradient(const Call& call) {
  SLUICE_OK(call.takes({{2, 1}}));
  SLUICE_TRY(const Tensor grad_y, call.operand(0, "grad_y"));
  SLUICE_TRY(const Tensor x, call.operand(1, "x", grad_y.dims));
  SLUICE_TRY(const Tensor grad_x, call.result(0, "grad_x", grad_y.dims));
  gelu_gradient(x.elements(), grad_y.data, x.data, grad_x.data);
  return {};
}

}  // namespace sluice::kernels
