#include "sluice/kernels/pooling.h"

#include <algorithm>
#include <cstring>
#include <limits>

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
void add_where(const float* gradient, const int32_t* place, int32_t number, size_t channels,
               float* __restrict to) {
  for (size_t c = 0; c < channels; ++c) to[c] += place[c] == number ? gradient[c] : 0.f;
}

// The places of a window that lie in the input, as rows of a picture, in the window's order.
void list_rows(const Pooling& p, const Dims& window, std::vector<size_t>& rows) {
  rows = {0};
  std::vector<size_t> finer;
  for (size_t d = 0; d < p.in.size(); ++d) {
    finer.clear();
    for (const size_t row : rows) {
      for (int64_t k = 0; k < p.kernel[d]; ++k) {
        const int64_t i = window[d] * p.stride[d] - p.padding[d] + k * p.dilation[d];
        if (i >= 0 && i < p.in[d])
          finer.push_back(row * static_cast<size_t>(p.in[d]) + static_cast<size_t>(i));
      }
    }
    rows = finer;
  }
}

// Steps to the next window, row by row; false after the last.
bool step(const Dims& out, Dims& window) {
  for (size_t d = out.size(); d-- > 0;) {
    if (++window[d] < out[d]) return true;
    window[d] = 0;
  }
  return false;
}

size_t product_of(const Dims& dims) {
  size_t product = 1;
  for (const int64_t d : dims) product *= static_cast<size_t>(d);
  return product;
}

void one_picture(const Pooling& p, size_t channels, const float* x, const float* y_gradient,
                 float* x_gradient) {
  const Scratch scratch(channels * (sizeof(float) + sizeof(int32_t)));
  float* const best = scratch.floats();
  auto* const place = reinterpret_cast<int32_t*>(best + channels);
  std::memset(x_gradient, 0, product_of(p.in) * channels * sizeof(float));
  Dims window(p.out.size(), 0);
  std::vector<size_t> rows;
  do {
    list_rows(p, window, rows);
    std::fill(best, best + channels, -std::numeric_limits<float>::infinity());
    std::fill(place, place + channels, 0);
    for (size_t i = 0; i < rows.size(); ++i)
      take_better(x + rows[i] * channels, channels, static_cast<int32_t>(i), best, place);
    for (size_t i = 0; i < rows.size(); ++i)
      add_where(y_gradient, place, static_cast<int32_t>(i), channels, x_gradient + rows[i] * channels);
    y_gradient += channels;
  } while (step(p.out, window));
}

}  // namespace

void max_pooling_gradient(const Pooling& p, size_t batch, size_t channels, const float* x,
                          const float* y_gradient, float* x_gradient) {
  const size_t in = product_of(p.in) * channels, out = product_of(p.out) * channels;
  if (out == 0) {
    std::fill(x_gradient, x_gradient + batch * in, 0.f);
    return;
  }
  parallel_for(batch, [&](size_t n) {
    one_picture(p, channels, x + n * in, y_gradient + n * out, x_gradient + n * in);
  });
}

base::Status call_max_pooling_gradient(const pjrt::CustomCall& call) {
  Pooling p;
  SLUICE_TRY(p.kernel, list_of(call, "kernel"));
  SLUICE_TRY(p.stride, list_of(call, "stride"));
  SLUICE_TRY(p.padding, list_of(call, "padding"));
  SLUICE_TRY(p.dilation, list_of(call, "dilation"));
  SLUICE_TRY(const pjrt::CallBuffer x, call.operand(0));
  SLUICE_TRY(const pjrt::CallBuffer y_gradient, call.operand(1));
  SLUICE_TRY(const pjrt::CallBuffer x_gradient, call.result(0));
  p.in.assign(x.dims.begin() + 2, x.dims.end());
  p.out.assign(y_gradient.dims.begin() + 2, y_gradient.dims.end());
  const UseThreads threads(call);
  max_pooling_gradient(p, static_cast<size_t>(x.dims[0]), static_cast<size_t>(x.dims[1]),
                       static_cast<const float*>(x.data), static_cast<const float*>(y_gradient.data),
                       static_cast<float*>(x_gradient.data));
  return {};
}

}  // namespace sluice::kernels
