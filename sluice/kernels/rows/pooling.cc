#include "sluice/kernels/rows/pooling.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/each_cpu.h"
#include "sluice/kernels/handler.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using stablehlo::Dims;

// Takes the place `number` for the channels whose value there is better than their best so far.
SLUICE_EACH_CPU
void take_better(const float* x, size_t channels, int32_t number, float* __restrict best,
                 int32_t* __restrict place) {
  for (size_t c = 0; c < channels; ++c) {
    const bool better = x[c] > best[c] || x[c] != x[c];
    best[c] = better ? x[c] : best[c];
    place[c] = better ? number : place[c];
  }
}

SLUICE_EACH_CPU
void take_maximum(const float* x, size_t channels, float* __restrict best) {
  for (size_t c = 0; c < channels; ++c) best[c] = x[c] > best[c] || x[c] != x[c] ? x[c] : best[c];
}

SLUICE_EACH_CPU
void add_where(const float* gradient, const int32_t* place, int32_t number, size_t channels,
               float* __restrict to) {
  for (size_t c = 0; c < channels; ++c) to[c] += place[c] == number ? gradient[c] : 0.f;
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

// The places of each window of a picture that lie in the input, as rows of it, in the window's order.
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
  std::vector<size_t> first_ = {0};  // of each window in rows_
};

void one_picture(const Windows& windows, size_t channels, const float* x, const float* y_gradient,
                 float* x_gradient) {
  const Scratch scratch(channels * (sizeof(float) + sizeof(int32_t)));
  float* const best = scratch.floats();
  auto* const place = reinterpret_cast<int32_t*>(best + channels);
  for (size_t w = 0; w < windows.count(); ++w, y_gradient += channels) {
    const std::span<const uint32_t> rows = windows.rows(w);
    std::fill(best, best + channels, -std::numeric_limits<float>::infinity());
    std::fill(place, place + channels, 0);
    for (size_t i = 0; i < rows.size(); ++i)
      take_better(x + rows[i] * channels, channels, static_cast<int32_t>(i), best, place);
    for (size_t i = 0; i < rows.size(); ++i)
      add_where(y_gradient, place, static_cast<int32_t>(i), channels, x_gradient + rows[i] * channels);
  }
}

// What both calls say.
base::Result<Pooling> pooling_of(const pjrt::CustomCall& call, const pjrt::CallBuffer& x,
                                 const pjrt::CallBuffer& y) {
  Pooling p;
  SLUICE_TRY(p.kernel, list_of(call, "kernel"));
  SLUICE_TRY(p.stride, list_of(call, "stride"));
  SLUICE_TRY(p.padding, list_of(call, "padding"));
  SLUICE_TRY(p.dilation, list_of(call, "dilation"));
  p.in.assign(x.dims.begin() + 2, x.dims.end());
  p.out.assign(y.dims.begin() + 2, y.dims.end());
  return p;
}

}  // namespace

void max_pooling(const Pooling& p, size_t batch, size_t channels, const float* x, float* y) {
  const size_t in = product_of(p.in) * channels, out = product_of(p.out) * channels;
  if (batch * out == 0) return;
  const Windows windows(p);
  // A piece of work: the windows of one place in the first spatial dimension.
  const size_t pieces = static_cast<size_t>(p.out[0]), piece = windows.count() / pieces;
  parallel_for(batch * pieces, [&](size_t i) {
    const float* const picture = x + i / pieces * in;
    const size_t first = i % pieces * piece;
    float* to = y + i / pieces * out + first * channels;
    for (size_t w = first; w < first + piece; ++w, to += channels) {
      std::fill(to, to + channels, -std::numeric_limits<float>::infinity());
      for (const uint32_t row : windows.rows(w)) take_maximum(picture + row * channels, channels, to);
    }
  });
}

void max_pooling_gradient(const Pooling& p, size_t batch, size_t channels, const float* x,
                          const float* y_gradient, float* x_gradient) {
  const size_t in = product_of(p.in) * channels, out = product_of(p.out) * channels;
  if (out == 0) {
    std::fill(x_gradient, x_gradient + batch * in, 0.f);
    return;
  }
  const Windows windows(p);
  parallel_for(batch, [&](size_t n) {
    std::fill(x_gradient + n * in, x_gradient + (n + 1) * in, 0.f);
    one_picture(windows, channels, x + n * in, y_gradient + n * out, x_gradient + n * in);
  });
}

base::Status call_max_pooling(const pjrt::CustomCall& call) {
  SLUICE_TRY(const pjrt::CallBuffer x, call.operand(0));
  SLUICE_TRY(const pjrt::CallBuffer y, call.result(0));
  SLUICE_TRY(const Pooling p, pooling_of(call, x, y));
  const UseThreads threads(call);
  max_pooling(p, static_cast<size_t>(x.dims[0]), static_cast<size_t>(x.dims[1]),
              static_cast<const float*>(x.data), static_cast<float*>(y.data));
  return {};
}

base::Status call_max_pooling_gradient(const pjrt::CustomCall& call) {
  SLUICE_TRY(const pjrt::CallBuffer x, call.operand(0));
  SLUICE_TRY(const pjrt::CallBuffer y_gradient, call.operand(1));
  SLUICE_TRY(const pjrt::CallBuffer x_gradient, call.result(0));
  SLUICE_TRY(const Pooling p, pooling_of(call, x, y_gradient));
  const UseThreads threads(call);
  max_pooling_gradient(p, static_cast<size_t>(x.dims[0]), static_cast<size_t>(x.dims[1]),
                       static_cast<const float*>(x.data), static_cast<const float*>(y_gradient.data),
                       static_cast<float*>(x_gradient.data));
  return {};
}

}  // namespace sluice::kernels
