#include "sluice/kernels/rows/pooling.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/each_cpu.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using stablehlo::Dims;

// Sets argmax to `number`, an element of the window, for the channels whose value there is above their
// maximum.
SLUICE_EACH_CPU
void take_better(const float* x, size_t channels, int32_t number, float* __restrict max,
                 int32_t* __restrict argmax) {
  for (size_t c = 0; c < channels; ++c) {
    const bool better = x[c] > max[c] || x[c] != x[c];
    max[c] = better ? x[c] : max[c];
    argmax[c] = better ? number : argmax[c];
  }
}

SLUICE_EACH_CPU
void take_maximum(const float* x, size_t channels, float* __restrict max) {
  for (size_t c = 0; c < channels; ++c) max[c] = x[c] > max[c] || x[c] != x[c] ? x[c] : max[c];
}

SLUICE_EACH_CPU
void add_where(const float* gradient, const int32_t* argmax, int32_t number, size_t channels,
               float* __restrict to) {
  for (size_t c = 0; c < channels; ++c) to[c] += argmax[c] == number ? gradient[c] : 0.f;
}

size_t product_of(const Dims& dims) {
  size_t product = 1;
  for (const int64_t d : dims) product *= static_cast<size_t>(d);
  return product;
}

// Steps to the next window, row by row; false after the last.
bool step(const Dims& out, Dims& window) {
  for (size_t d = out.size(); d-- > 0;) {
    if (++window[d] < out[d]) return true;
    window[d] = 0;
  }
  return false;
}

// The places of each window that are inside the image, as rows of the input, in the window's order.
class Windows {
 public:
  explicit Windows(const Pooling& p) {
    Dims window(p.out.size(), 0);
    do append(p, window);
    while (step(p.out, window));
  }

  size_t count() const { return first_.size() - 1; }
  std::span<const uint32_t> rows(size_t window) const {
    return std::span(rows_).subspan(first_[window], first_[window + 1] - first_[window]);
  }

 private:
  void append(const Pooling& p, const Dims& window) {
    coarse_ = {0};
    for (size_t d = 0; d < p.in.size(); ++d) {
      fine_.clear();
      for (const uint32_t row : coarse_) {
        for (int64_t k = 0; k < p.kernel[d]; ++k) {
          const int64_t i = window[d] * p.stride[d] - p.padding[d] + k * p.dilation[d];
          if (i >= 0 && i < p.in[d])
            fine_.push_back(row * static_cast<uint32_t>(p.in[d]) + static_cast<uint32_t>(i));
        }
      }
      std::swap(coarse_, fine_);
    }
    rows_.insert(rows_.end(), coarse_.begin(), coarse_.end());
    first_.push_back(rows_.size());
  }

  std::vector<uint32_t> rows_, coarse_, fine_;
  std::vector<size_t> first_ = {0};  // for each window: where it begins in rows_
};

void image_gradient(const Windows& windows, size_t channels, const float* x, const float* grad_y,
                    float* grad_x) {
  const Scratch max_memory(channels * sizeof(float)), argmax_memory(channels * sizeof(int32_t));
  float* const max = max_memory.floats();
  auto* const argmax = static_cast<int32_t*>(argmax_memory.data());
  for (size_t w = 0; w < windows.count(); ++w, grad_y += channels) {
    const std::span<const uint32_t> rows = windows.rows(w);
    std::fill(max, max + channels, -std::numeric_limits<float>::infinity());
    std::fill(argmax, argmax + channels, 0);
    for (size_t i = 0; i < rows.size(); ++i)
      take_better(x + rows[i] * channels, channels, static_cast<int32_t>(i), max, argmax);
    for (size_t i = 0; i < rows.size(); ++i)
      add_where(grad_y, argmax, static_cast<int32_t>(i), channels, grad_x + rows[i] * channels);
  }
}

// Reads the attributes of both calls. x is an operand; y, or its gradient, is an operand or a result.
base::Result<Pooling> pooling_of(const Call& call, const Tensor& x, const Tensor& y) {
  const size_t spatial = x.rank() - 2;
  Pooling p;
  SLUICE_TRY(p.kernel, call.list("kernel", spatial));
  SLUICE_TRY(p.stride, call.list("stride", spatial));
  SLUICE_TRY(p.padding, call.list("padding", spatial));
  SLUICE_TRY(p.dilation, call.list("dilation", spatial));
  p.in.assign(x.dims.begin() + 2, x.dims.end());
  p.out.assign(y.dims.begin() + 2, y.dims.end());
  if (product_of(p.in) > std::numeric_limits<uint32_t>::max())  // the type of Windows::rows_
    return call.refuse("images of ", product_of(p.in), " pixels, expected fewer than 2^32");
  for (size_t d = 0; d < spatial; ++d)
    if (p.out[d] - 1 > (p.in[d] + p.padding[d] - 1) / p.stride[d])
      return call.refuse("the last of ", p.out[d], " windows begins outside of dimension ", d + 2,
                         ": stride ", p.stride[d], ", padding ", p.padding[d], ", ", p.in[d],
                         " elements; expected fewer windows");
  return p;
}

// Returns [N, C, any…], with x's rank.
Dims pooled_dims(const Tensor& x) {
  Dims dims(x.rank(), kAny);
  std::copy_n(x.dims.begin(), 2, dims.begin());
  return dims;
}

}  // namespace

void max_pooling(const Pooling& p, size_t batch, size_t channels, const float* x, float* y) {
  const size_t in = product_of(p.in) * channels, out = product_of(p.out) * channels;
  if (batch * out == 0) return;
  const Windows windows(p);
  // A piece of work: the windows of one place in the first spatial dimension.
  const size_t pieces = static_cast<size_t>(p.out[0]), piece = windows.count() / pieces;
  parallel_for(batch * pieces, [&](size_t i) {
    const float* const image = x + i / pieces * in;
    const size_t first = i % pieces * piece;
    float* to = y + i / pieces * out + first * channels;
    for (size_t w = first; w < first + piece; ++w, to += channels) {
      std::fill(to, to + channels, -std::numeric_limits<float>::infinity());
      for (const uint32_t row : windows.rows(w)) take_maximum(image + row * channels, channels, to);
    }
  });
}

void max_pooling_gradient(const Pooling& p, size_t batch, size_t channels, const float* x,
                          const float* grad_y, float* grad_x) {
  const size_t in = product_of(p.in) * channels, out = product_of(p.out) * channels;
  if (out == 0) {
    std::fill(grad_x, grad_x + batch * in, 0.f);
    return;
  }
  const Windows windows(p);
  parallel_for(batch, [&](size_t n) {
    std::fill(grad_x + n * in, grad_x + (n + 1) * in, 0.f);
    image_gradient(windows, channels, x + n * in, grad_y + n * out, grad_x + n * in);
  });
}

base::Status call_max_pooling(const Call& call) {
  SLUICE_OK(call.takes({{1, 1}}));
  SLUICE_TRY(const Tensor x, call.filled_operand(0, "x", 3));
  SLUICE_TRY(const Tensor y, call.result(0, "y", pooled_dims(x)));
  SLUICE_TRY(const Pooling p, pooling_of(call, x, y));
  max_pooling(p, x.dim(0), x.dim(1), x.data, y.data);
  return {};
}

base::Status call_max_pooling_gradient(const Call& call) {
  SLUICE_OK(call.takes({{2, 1}}));
  SLUICE_TRY(const Tensor x, call.filled_operand(0, "x", 3));
  SLUICE_TRY(const Tensor grad_y, call.operand(1, "grad_y", pooled_dims(x)));
  SLUICE_TRY(const Tensor grad_x, call.result(0, "grad_x", x.dims));
  SLUICE_TRY(const Pooling p, pooling_of(call, x, grad_y));
  max_pooling_gradient(p, x.dim(0), x.dim(1), x.data, grad_y.data, grad_x.data);
  return {};
}

}  // namespace sluice::kernels
