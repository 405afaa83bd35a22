// The gradient of max pooling.
//
// A window's gradient goes to the same element as in LibTorch: the first of equal maxima, the last NaN. XLA's
// select_and_scatter does not define the order in which it reads a window (the CPU's goes column by column),
// and using stored positions needs a scatter. So small windows are written out: for each place in the window,
// a strided slice of the input is compared with the best so far, and the gradients of the windows that chose
// this place are spread back. This is exact everywhere, and on the CPU two to four times as fast as
// select_and_scatter.
#include <algorithm>

#include "sluice/ops/images/pooling.h"
#include "sluice/ops/indexing/indexing.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::ops::pooling {
namespace {

// Windows with more elements use the stored positions.
constexpr int64_t kWrittenOut = 36;

size_t at(int64_t i) { return static_cast<size_t>(i); }

int64_t window_size(const Pool& p) { return Type{DType::kS32, p.kernel}.numel(); }

// Returns the place `number` (row-major in the window) as an offset in each spatial dimension.
Dims offsets(const Pool& p, int64_t number) {
  Dims result(p.kernel.size());
  for (size_t i = p.kernel.size(); i-- > 0; number /= p.kernel[i])
    result[i] = number % p.kernel[i] * p.dilation[i];
  return result;
}

// The padding of the input's spatial dims that places every window inside.
struct Edges {
  Dims low, high;
};

Edges edges(const Pool& p, int64_t rank) {
  Edges e{Dims(at(rank - p.spatial), 0), Dims(at(rank - p.spatial), 0)};
  for (size_t i = 0; i < p.in.size(); ++i) {
    const int64_t reach = (p.out[i] - 1) * p.stride[i] + p.dilation[i] * (p.kernel[i] - 1) + 1;
    e.low.push_back(p.padding[i]);
    e.high.push_back(reach - p.in[i] - p.padding[i]);
  }
  return e;
}

// Returns the element at these offsets of each window, [batch…, out…].
Value elements_at(Builder& b, const Pool& p, Value padded, const Dims& offset) {
  const size_t batch = at(padded.rank() - p.spatial);
  Dims start(batch, 0), limit(padded.dims().begin(), padded.dims().begin() + static_cast<int64_t>(batch));
  Dims strides(batch, 1);
  for (size_t i = 0; i < offset.size(); ++i) {
    start.push_back(offset[i]);
    limit.push_back(offset[i] + (p.out[i] - 1) * p.stride[i] + 1);
    strides.push_back(p.stride[i]);
  }
  return b.slice(padded, start, limit, strides);
}

// Returns the adjoint: values [batch…, out…] at the places that elements_at reads, in the dims of the
// unpadded input.
Value put_back(Builder& b, const Pool& p, Value values, const Dims& offset) {
  const size_t batch = at(values.rank() - p.spatial);
  Dims low(batch, 0), high(batch, 0), interior(batch, 0);
  for (size_t i = 0; i < offset.size(); ++i) {
    const int64_t first = offset[i] - p.padding[i];
    low.push_back(first);
    high.push_back(p.in[i] - first - (p.out[i] - 1) * p.stride[i] - 1);
    interior.push_back(p.stride[i] - 1);
  }
  return b.pad(values, b.splat(0, Type{values.dtype(), {}}), low, high, interior);
}

// Returns the first place of each window that is not padding, which a window of only -inf chooses.
Value first_places(Builder& b, const Pool& p, const Dims& dims) {
  Value result = b.splat(0, Type{DType::kS32, dims});
  int64_t stride = window_size(p);
  for (size_t i = 0; i < p.in.size(); ++i) {
    stride /= p.kernel[i];
    Dims first;
    for (int64_t o = 0; o < p.out[i]; ++o) {
      const int64_t outside = std::max<int64_t>(p.padding[i] - o * p.stride[i], 0);
      first.push_back((outside + p.dilation[i] - 1) / p.dilation[i] * stride);
    }
    const int64_t dim = static_cast<int64_t>(dims.size() - p.in.size() + i);
    result = b.add(result, b.broadcast_in_dim(to(b, b.constant_i64(first), DType::kS32), dims, {dim}));
  }
  return result;
}

// Returns the place of each window's maximum within the window, s32 [batch…, out…].
Value chosen_places(Builder& b, const Pool& p, Value x) {
  const Edges edge = edges(p, x.rank());
  const Value padded = b.pad(x, b.lowest(x.dtype()), edge.low, edge.high);
  Value best, place;
  for (int64_t number = 0; number < window_size(p); ++number) {
    const Value candidate = elements_at(b, p, padded, offsets(p, number));
    if (!best) {
      best = b.lowest(x.dtype(), candidate.dims());
      place = first_places(b, p, candidate.dims());
    }
    const Value better = b.or_(b.compare(candidate, best, Compare::kGt), is_nan(b, candidate));
    best = b.select(better, candidate, best);
    place = b.select(better, b.splat(number, place.type()), place);
  }
  return place;
}

}  // namespace

Values maximum_gradient(Emit& e) {
  Builder& b = e.b;
  const Pool p = read_pool(e);
  const Value self = e.tensor("self"), grad_output = e.tensor("grad_output");
  const Value grad = to(b, grad_output, compute_type(grad_output.dtype()));
  const auto gradient = [&] {
    if (window_size(p) > kWrittenOut)
      return Values{scatter_to_positions(b, grad, e.tensor("indices"), self, p.spatial)};
    const Value place = chosen_places(b, p, self), none = zeros(b, grad.type());
    Value result;
    for (int64_t number = 0; number < window_size(p); ++number) {
      const Value here = b.compare(place, b.splat(number, place.type()), Compare::kEq);
      const Value part = put_back(b, p, b.select(here, grad, none), offsets(p, number));
      result = result ? b.add(result, part) : part;
    }
    return Values{result};
  };
  const Value made =
      b.composite(stablehlo::composites::kMaxPoolingGradient, {self, grad}, p.attributes(), gradient)[0];
  return {to(b, made, self.dtype())};
}

}  // namespace sluice::ops::pooling
