// The inverse of max pooling, and max pooling over randomly placed windows (fractional).
#include <limits>

#include "sluice/base/text/join.h"
#include "sluice/ops/images/pooling.h"
#include "sluice/ops/indexing/indexing.h"

namespace sluice::ops::pooling {
namespace {

int64_t product(const Dims& dims) { return Type{DType::kS32, dims}.numel(); }

void check_planes(Emit& e, Value x, int64_t spatial) {
  e.check(x.rank() == spatial + 1 || x.rank() == spatial + 2,
          base::str("expected ", spatial + 1, " or ", spatial + 2, " dimensions, found ", in_words(x)));
}

}  // namespace

// Returns zeros, except for the elements at the positions `indices` in each plane; the last of several at one
// position wins.
Values unpool(Emit& e) {
  Builder& b = e.b;
  const int64_t spatial = spatial_count(e);
  const Value self = e.tensor("self"), indices = e.tensor("indices");
  check_planes(e, self, spatial);
  e.check(indices.dtype() == DType::kS64 && indices.dims() == self.dims(),
          base::str("expected int64 indices of the shape of 'self' ", in_words(self), ", found ",
                    in_words(indices)));
  const Dims size = expand_list(e, "output_size", spatial);
  Dims result(self.dims().begin(), self.dims().end() - spatial);
  const int64_t planes = product(result), inputs = product(spatial_sizes(self, spatial)),
                outputs = product(size);
  result.insert(result.end(), size.begin(), size.end());
  const Value none = zeros(b, Type{self.dtype(), {planes, outputs}});
  const Value index = b.reshape(narrow_index(b, indices, outputs), {planes, inputs});
  const Value placed =
      scatter_elements(b, none, 1, index, b.reshape(self, {planes, inputs}), replace_by_update());
  return {b.reshape(placed, result)};
}

namespace {

// The windows of one call; the planes are batch and channels.
struct Fractional {
  int64_t spatial = 0, planes = 0;
  Dims in, out, kernel;
};

Fractional read_fractional(Emit& e) {
  Fractional f;
  f.spatial = spatial_count(e);
  const Value self = e.tensor("self");
  check_planes(e, self, f.spatial);
  f.in = spatial_sizes(self, f.spatial);
  f.out = expand_list(e, "output_size", f.spatial);
  f.kernel = expand_list(e, "kernel_size", f.spatial);
  f.planes = product(Dims(self.dims().begin(), self.dims().end() - f.spatial));
  for (size_t i = 0; i < f.in.size(); ++i)
    e.check(f.out[i] > 0 && f.kernel[i] > 0 && f.out[i] + f.kernel[i] - 1 <= f.in[i],
            base::str("expected windows that fit: output_size ", f.out[i], " and kernel_size ", f.kernel[i],
                      " in an input of ", f.in[i]));
  return f;
}

// Returns where the windows of one dimension begin, s32 [planes, out]: floor((i + u) a) - floor(u a) with a
// the mean step (Graham, 2014, "Fractional max-pooling"); the last window is at the end.
Value begins(Builder& b, const Fractional& f, Value u, size_t i) {
  const Dims dims = {f.planes, f.out[i]};
  const int64_t room = f.in[i] - f.kernel[i];
  const Value place = positions(b, dims, 1), last = b.splat(room, place.type());
  if (f.out[i] == 1) return last;
  const Value step = number_like(b, static_cast<double>(room) / static_cast<double>(f.out[i] - 1), u);
  const Value all = b.broadcast_in_dim(u, dims, {0}), steps = b.broadcast_in_dim(step, dims, {0});
  const auto whole = [&](Value x) { return b.convert(b.multiply(x, steps), DType::kS32); };
  const Value begin = b.subtract(whole(b.add(to(b, place, u.dtype()), all)), whole(all));
  return b.select(is_equal(b, place, static_cast<double>(f.out[i] - 1)), last, begin);
}

// Returns the positions in the plane that the windows cover, s32 [planes, out…, kernel…].
Value covered(Emit& e, const Fractional& f) {
  Builder& b = e.b;
  const Value samples = e.tensor("random_samples");
  e.check(samples.rank() == 3 && samples.dim(0) * samples.dim(1) == f.planes && samples.dim(2) == f.spatial,
          base::str("expected random_samples [batch, channels, ", f.spatial, "], found ", in_words(samples)));
  const Value u = b.reshape(to(b, samples, compute_type(samples.dtype())), {f.planes, f.spatial});
  Dims dims = {f.planes};
  dims.insert(dims.end(), f.out.begin(), f.out.end());
  dims.insert(dims.end(), f.kernel.begin(), f.kernel.end());
  Value position;
  for (int64_t i = 0; i < f.spatial; ++i) {
    const int64_t column = f.spatial == 2 ? 1 - i : i;  // in two dimensions, LibTorch's samples list the
                                                        // width first
    const Value of_dim = b.reshape(b.slice_dim(u, 1, column, column + 1), {f.planes});
    const Value along = b.add(b.broadcast_in_dim(begins(b, f, of_dim, at(i)), dims, {0, 1 + i}),
                              positions(b, dims, 1 + f.spatial + i));
    position = position ? b.add(b.multiply(position, b.splat(f.in[at(i)], position.type())), along) : along;
  }
  return position;
}

}  // namespace

Values fractional_maximum(Emit& e) {
  Builder& b = e.b;
  const Fractional f = read_fractional(e);
  const Value self = e.tensor("self"), place = covered(e, f);
  const int64_t outputs = product(f.out), window = product(f.kernel);
  Dims dims(self.dims().begin(), self.dims().end() - f.spatial);
  dims.insert(dims.end(), f.out.begin(), f.out.end());
  if (f.planes == 0) return {zeros(b, Type{self.dtype(), dims}), zeros(b, Type{DType::kS64, dims})};
  const Value x = b.reshape(self, {f.planes, product(f.in)});
  const Value read = gather_elements(b, x, 1, b.reshape(place, {f.planes, outputs * window}));
  const Dims windows = {f.planes, outputs, window};
  const Value pair[] = {b.reshape(read, windows), b.reshape(place, windows)};
  const Value inits[] = {b.lowest(x.dtype()),
                         b.splat(int64_t{std::numeric_limits<int32_t>::max()}, Type{DType::kS32, {}})};
  const Values best = b.reduce(pair, inits, {2}, better_of);
  return {b.reshape(best[0], dims), b.reshape(to(b, best[1], DType::kS64), dims)};
}

Values fractional_maximum_backward(Emit& e) {
  Builder& b = e.b;
  const Fractional f = read_fractional(e);
  const Value self = e.tensor("self"), grad_output = e.tensor("grad_output");
  const Value grad = to(b, grad_output, compute_type(grad_output.dtype()));
  return {to(b, scatter_to_positions(b, grad, e.tensor("indices"), self, f.spatial), self.dtype())};
}

}  // namespace sluice::ops::pooling
