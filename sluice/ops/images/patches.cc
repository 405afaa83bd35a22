// Unfolds patches of images to columns, and folds them back (Unfold and Fold).
#include <array>

#include "sluice/ops/common.h"

namespace sluice::ops {
namespace {

// The patches of an image; each array holds height and width.
struct Patches {
  std::array<int64_t, 2> image, kernel, dilation, padding, stride, count;
};

Patches patches_of(Emit& e, int64_t height, int64_t width) {
  Patches p{};
  auto take = [&](std::string_view name, std::array<int64_t, 2>& into) {
    const Dims& values = e.ints(name);
    e.check(values.size() == 1 || values.size() == 2,
            "expected one or two numbers for the kernel's geometry");
    into = {values.front(), values.back()};
  };
  p.image = {height, width};
  take("kernel_size", p.kernel);
  take("dilation", p.dilation);
  take("padding", p.padding);
  take("stride", p.stride);
  for (size_t i = 0; i < 2; ++i) {
    e.check(p.kernel[i] > 0 && p.dilation[i] > 0 && p.stride[i] > 0 && p.padding[i] >= 0,
            "expected a kernel, dilation and stride above 0 and a padding of at least 0");
    const int64_t span = p.dilation[i] * (p.kernel[i] - 1) + 1;
    const int64_t room = p.image[i] + 2 * p.padding[i] - span;
    e.check(room >= 0, "expected a kernel that fits into the padded image");
    p.count[i] = room / p.stride[i] + 1;
  }
  return p;
}

// Returns [C, H, W] with a batch of 1 in front; other shapes must have four dims.
Value batched(Emit& e, Value x, int64_t rank) {
  if (x.rank() == rank) return x;
  e.check(x.rank() == rank - 1,
          "expected a tensor with or without a batch dimension, found another number of dims");
  Dims dims = x.dims();
  dims.insert(dims.begin(), 1);
  return e.b.reshape(x, dims);
}

Values im2col(Emit& e) {
  Builder& b = e.b;
  Value given = e.tensor("self"), x = batched(e, given, 4);
  const Patches p = patches_of(e, x.dim(2), x.dim(3));
  const Dims pad = {0, 0, p.padding[0], p.padding[1]};
  Value padded = b.pad(x, b.splat(0, Type{x.dtype(), {}}), pad, pad);
  const int64_t n = x.dim(0), c = x.dim(1), positions = p.count[0] * p.count[1];
  Values taps;
  for (int64_t i = 0; i < p.kernel[0]; ++i) {
    for (int64_t j = 0; j < p.kernel[1]; ++j) {
      const int64_t top = i * p.dilation[0], left = j * p.dilation[1];
      const Dims limit = {n, c, top + (p.count[0] - 1) * p.stride[0] + 1,
                          left + (p.count[1] - 1) * p.stride[1] + 1};
      Value tap = b.slice(padded, {0, 0, top, left}, limit, {1, 1, p.stride[0], p.stride[1]});
      taps.push_back(b.reshape(tap, {n, c, 1, positions}));
    }
  }
  Value columns = b.reshape(b.concatenate(taps, 2), {n, c * p.kernel[0] * p.kernel[1], positions});
  return {given.rank() == 4 ? columns : b.reshape(columns, {columns.dim(1), columns.dim(2)})};
}

Values col2im(Emit& e) {
  Builder& b = e.b;
  Value given = e.tensor("self"), x = batched(e, given, 3);
  const Dims& size = e.ints("output_size");
  e.check(size.size() == 2, "expected output_size to be a height and a width");
  const Patches p = patches_of(e, size[0], size[1]);
  const int64_t n = x.dim(0), taps = p.kernel[0] * p.kernel[1], c = x.dim(1) / taps;
  e.check(c * taps == x.dim(1), "expected a number of rows that the kernel's size divides");
  e.check(x.dim(2) == p.count[0] * p.count[1], "expected one column for each position of the kernel");
  Value parts = b.reshape(to(b, x, compute_type(x.dtype())), {n, c, taps, p.count[0], p.count[1]});
  Value zero = b.splat(0, Type{parts.dtype(), {}}), total;
  for (int64_t i = 0; i < p.kernel[0]; ++i) {
    for (int64_t j = 0; j < p.kernel[1]; ++j) {
      const int64_t k = i * p.kernel[1] + j;
      Value part = b.reshape(b.slice_dim(parts, 2, k, k + 1), {n, c, p.count[0], p.count[1]});
      Dims low = {0, 0, i * p.dilation[0] - p.padding[0], j * p.dilation[1] - p.padding[1]}, high(4, 0);
      for (size_t d = 0; d < 2; ++d)
        high[2 + d] = size[d] - low[2 + d] - ((p.count[d] - 1) * p.stride[d] + 1);
      Value placed = b.pad(part, zero, low, high, {0, 0, p.stride[0] - 1, p.stride[1] - 1});
      total = total ? b.add(total, placed) : placed;
    }
  }
  Value image = to(b, total, x.dtype());
  return {given.rank() == 3 ? image : b.reshape(image, {c, size[0], size[1]})};
}

const Row kPatchesRows[] = {
    {.name = "aten::col2im", .emit = col2im},
    {.name = "aten::im2col", .emit = im2col},
};

}  // namespace

std::span<const Row> patches_rows() { return kPatchesRows; }

}  // namespace sluice::ops
