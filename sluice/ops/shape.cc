// Joining, repeating, shuffling, and the gradients of views.
#include <algorithm>

#include "sluice/ops/common.h"

namespace sluice::ops {
namespace {

// ---- joining and repeating ----

// PyTorch ignores 1-d tensors without elements, no matter which shape the other tensors have.
bool is_ignored(Value x) { return x.rank() == 1 && x.dim(0) == 0; }

Values cat(Emit& e) {
  const DType dtype = e.promote({"tensors"});
  Values parts;
  for (Value x : e.tensors("tensors"))
    if (!is_ignored(x)) parts.push_back(to(e.b, x, dtype));
  if (parts.empty()) return {zeros(e.b, Type{dtype, {0}})};
  e.check(parts[0].rank() > 0, "expected tensors with at least one dimension, found a 0-d tensor; use stack");
  return {e.b.concatenate(parts, wrap_dim(e.integer("dim"), parts[0].rank()))};
}

Values stack(Emit& e) {
  const DType dtype = e.promote({"tensors"});
  Values parts;
  int64_t dim = 0;
  for (Value x : e.tensors("tensors")) {
    dim = wrap_dim(e.integer("dim"), x.rank() + 1);
    Dims dims = x.dims();
    dims.insert(dims.begin() + dim, 1);
    parts.push_back(e.b.reshape(to(e.b, x, dtype), dims));
  }
  e.check(!parts.empty(), "expected at least one tensor");
  return {e.b.concatenate(parts, dim)};
}

Values repeat(Emit& e) {
  Value x = e.tensor("self");
  const Dims& repeats = e.ints("repeats");
  e.check(repeats.size() >= x.dims().size(), "expected a number of repeats for each dimension");
  const size_t added = repeats.size() - x.dims().size();
  Dims apart, positions, result;  // each dimension after the one that repeats it
  for (size_t i = 0; i < repeats.size(); ++i) {
    const int64_t size = i < added ? 1 : x.dims()[i - added];
    apart.push_back(repeats[i]);
    if (i >= added) {
      positions.push_back(static_cast<int64_t>(apart.size()));
      apart.push_back(size);
    }
    result.push_back(repeats[i] * size);
  }
  return {e.b.reshape(e.b.broadcast_in_dim(x, apart, positions), result)};
}

// ---- moving elements ----

Values flip(Emit& e) {
  Value x = e.tensor("self");
  const Dims dims = wrap_dims(e.ints("dims"), x.rank(), false);
  return {dims.empty() ? x : e.b.reverse(x, dims)};
}

Value roll_dim(Builder& b, Value x, int64_t shift, int64_t dim) {
  const int64_t size = x.dim(dim);
  if (size == 0) return x;
  const int64_t split = ((-shift) % size + size) % size;
  if (split == 0) return x;
  const Value parts[] = {b.slice_dim(x, dim, split, size), b.slice_dim(x, dim, 0, split)};
  return b.concatenate(parts, dim);
}

Values roll(Emit& e) {
  Value x = e.tensor("self");
  const Dims &shifts = e.ints("shifts"), &dims = e.ints("dims");
  if (dims.empty()) {
    e.check(shifts.size() == 1, "expected one shift when no dims are given");
    return {e.b.reshape(roll_dim(e.b, e.b.reshape(x, {x.type().numel()}), shifts[0], 0), x.dims())};
  }
  e.check(shifts.size() == dims.size(), "expected one shift for each of dims");
  for (size_t i = 0; i < dims.size() && x.rank() > 0; ++i)
    x = roll_dim(e.b, x, shifts[i], wrap_dim(dims[i], x.rank()));
  return {x};
}

// The dims of an image, split up: [leading…, C, H, W].
struct Image {
  Dims leading;
  int64_t channels, height, width;
};
Image image_of(Emit& e, Value x) {
  e.check(x.rank() >= 3, "expected at least three dimensions: channels, height, width");
  const int64_t n = x.rank();
  return {Dims(x.dims().begin(), x.dims().end() - 3), x.dim(n - 3), x.dim(n - 2), x.dim(n - 1)};
}

// Reshapes the last dims, permutes them, reshapes them again; the leading dims stay.
Value shuffle(Builder& b, Value x, const Dims& leading, const Dims& split, const Dims& order,
              const Dims& result) {
  Dims split_dims = leading, permutation, result_dims = leading;
  split_dims.insert(split_dims.end(), split.begin(), split.end());
  for (size_t i = 0; i < leading.size(); ++i) permutation.push_back(static_cast<int64_t>(i));
  for (int64_t i : order) permutation.push_back(static_cast<int64_t>(leading.size()) + i);
  result_dims.insert(result_dims.end(), result.begin(), result.end());
  return b.reshape(b.transpose(b.reshape(x, split_dims), permutation), result_dims);
}

Values pixel_shuffle(Emit& e) {
  Value x = e.tensor("self");
  const Image image = image_of(e, x);
  const int64_t r = e.integer("upscale_factor"), c = image.channels / (r * r);
  e.check(c * r * r == image.channels,
          "expected a number of channels that the square of upscale_factor divides");
  const int64_t h = image.height, w = image.width;
  return {shuffle(e.b, x, image.leading, {c, r, r, h, w}, {0, 3, 1, 4, 2}, {c, h * r, w * r})};
}

Values pixel_unshuffle(Emit& e) {
  Value x = e.tensor("self");
  const Image image = image_of(e, x);
  const int64_t r = e.integer("downscale_factor"), c = image.channels;
  e.check(image.height % r == 0 && image.width % r == 0,
          "expected height and width that downscale_factor divides");
  const int64_t h = image.height / r, w = image.width / r;
  return {shuffle(e.b, x, image.leading, {c, h, r, w, r}, {0, 2, 4, 1, 3}, {c * r * r, h, w})};
}

Values channel_shuffle(Emit& e) {
  Value x = e.tensor("self");
  e.check(x.rank() >= 3, "expected at least three dimensions: batch, channels and space");
  const int64_t groups = e.integer("groups"), channels = x.dim(1);
  e.check(channels % groups == 0, "expected a number of channels that groups divides");
  const int64_t space = x.dim(0) == 0 ? 0 : x.type().numel() / std::max<int64_t>(x.dim(0) * channels, 1);
  Value shuffled =
      shuffle(e.b, x, {x.dim(0)}, {groups, channels / groups, space}, {1, 0, 2}, {channels, space});
  return {e.b.reshape(shuffled, x.dims())};
}

// ---- padding ----

Values constant_pad(Emit& e) {
  Value x = e.tensor("self");
  const Dims& pad = e.ints("pad");
  e.check(pad.size() % 2 == 0 && pad.size() / 2 <= x.dims().size(),
          "expected a pair of pads for each padded dimension");
  Dims low(x.dims().size(), 0), high(x.dims().size(), 0);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    low[low.size() - 1 - i] = pad[2 * i];
    high[high.size() - 1 - i] = pad[2 * i + 1];
  }
  return {e.b.pad(x, e.scalar("value", x.dtype()), low, high)};
}

enum class Edge { kReflect, kReplicate };

// One padded dimension: `low` and `high` are the numbers of added elements; negative numbers remove elements.
struct PaddedDim {
  int64_t dim, low, high;
};
std::vector<PaddedDim> padded_dims(Emit& e, Value x) {
  const Dims& padding = e.ints("padding");
  e.check(padding.size() % 2 == 0 && padding.size() / 2 <= x.dims().size(),
          "expected a pair of pads for each padded dimension");
  std::vector<PaddedDim> result;
  for (size_t i = 0; i < padding.size() / 2; ++i)
    result.push_back({x.rank() - 1 - static_cast<int64_t>(i), padding[2 * i], padding[2 * i + 1]});
  return result;
}

Value pad_edges(Emit& e, Value x, PaddedDim p, Edge edge) {
  Builder& b = e.b;
  const int64_t size = x.dim(p.dim);
  const int64_t low = std::max<int64_t>(p.low, 0), high = std::max<int64_t>(p.high, 0);
  e.check(edge == Edge::kReplicate || (low < size && high < size),
          "expected reflections shorter than the dimension");
  e.check(edge == Edge::kReflect || size > 0, "expected a dimension with elements");
  Values parts;
  auto border = [&](int64_t first,
                    int64_t count) {  // `count` elements at `first`, mirrored, or one repeated
    if (edge == Edge::kReflect) return b.reverse(b.slice_dim(x, p.dim, first, first + count), {p.dim});
    Dims dims = x.dims();
    dims[at(p.dim)] = count;
    return b.broadcast(b.slice_dim(x, p.dim, first, first + 1), dims);
  };
  if (low > 0) parts.push_back(border(edge == Edge::kReflect ? 1 : 0, low));
  parts.push_back(b.slice_dim(x, p.dim, std::max<int64_t>(-p.low, 0), size - std::max<int64_t>(-p.high, 0)));
  if (high > 0) parts.push_back(border(edge == Edge::kReflect ? size - 1 - high : size - 1, high));
  return parts.size() == 1 ? parts[0] : b.concatenate(parts, p.dim);
}

// Puts a part of a gradient at `start` of a dimension of this size, with zeros elsewhere.
Value place(Builder& b, Value part, int64_t dim, int64_t start, int64_t size, int64_t stride = 1) {
  Dims low(part.dims().size(), 0), high = low, interior = low;
  low[at(dim)] = start;
  interior[at(dim)] = stride - 1;
  const int64_t count = part.dim(dim), span = count == 0 ? 0 : (count - 1) * stride + 1;
  high[at(dim)] = size - start - span;
  return b.pad(part, b.splat(0, Type{part.dtype(), {}}), low, high, interior);
}

Value pad_edges_backward(Builder& b, Value grad, PaddedDim p, int64_t size, Edge edge) {
  const int64_t low = std::max<int64_t>(p.low, 0), high = std::max<int64_t>(p.high, 0);
  const int64_t cut_low = std::max<int64_t>(-p.low, 0);
  const int64_t total = grad.dim(p.dim);
  auto folded = [&](int64_t first, int64_t count) {  // the gradient of a border
    Value part = b.slice_dim(grad, p.dim, first, first + count);
    if (edge == Edge::kReflect) return b.reverse(part, {p.dim});
    Dims dims = grad.dims();
    dims[at(p.dim)] = 1;
    return b.reshape(b.reduce_sum(part, {p.dim}), dims);
  };
  Value result = place(b, b.slice_dim(grad, p.dim, low, total - high), p.dim, cut_low, size);
  if (low > 0) result = b.add(result, place(b, folded(0, low), p.dim, edge == Edge::kReflect ? 1 : 0, size));
  if (high > 0) {
    const int64_t start = edge == Edge::kReflect ? size - 1 - high : size - 1;
    result = b.add(result, place(b, folded(total - high, high), p.dim, start, size));
  }
  return result;
}

template <Edge E>
Values edge_pad(Emit& e) {
  Value x = e.tensor("self");
  for (const PaddedDim& p : padded_dims(e, x)) x = pad_edges(e, x, p, E);
  return {x};
}

template <Edge E>
Values edge_pad_backward(Emit& e) {
  Value x = e.tensor("self"), grad = e.tensor("grad_output");
  Value wide = to(e.b, grad, compute_type(grad.dtype()));
  for (const PaddedDim& p : padded_dims(e, x)) wide = pad_edges_backward(e.b, wide, p, x.dim(p.dim), E);
  return {to(e.b, wide, grad.dtype())};
}

// ---- the gradients of views, and views of a tensor replaced ----

Values select_backward(Emit& e) {
  Value grad = e.tensor("grad_output");
  const Dims& sizes = e.ints("input_sizes");
  const int64_t dim = wrap_dim(e.integer("dim"), static_cast<int64_t>(sizes.size()));
  Dims kept = sizes;
  kept[at(dim)] = 1;
  const int64_t index = e.integer("index");
  return {
      place(e.b, e.b.reshape(grad, kept), dim, index < 0 ? index + sizes[at(dim)] : index, sizes[at(dim)])};
}

// Returns start and stop of a slice as PyTorch reads them: from the end if negative, clamped to the
// dimension.
std::pair<int64_t, int64_t> slice_bounds(Emit& e, int64_t size) {
  int64_t start = e.integer_or("start", 0), stop = e.integer_or("end", size);
  if (start < 0) start += size;
  if (stop < 0) stop += size;
  start = std::clamp<int64_t>(start, 0, size);
  return {start, std::clamp<int64_t>(stop, start, size)};
}

Values slice_backward(Emit& e) {
  Value grad = e.tensor("grad_output");
  const Dims& sizes = e.ints("input_sizes");
  const int64_t dim = wrap_dim(e.integer("dim"), static_cast<int64_t>(sizes.size()));
  return {place(e.b, grad, dim, slice_bounds(e, sizes[at(dim)]).first, sizes[at(dim)], e.integer("step"))};
}

Values slice_scatter(Emit& e) {
  Builder& b = e.b;
  Value x = e.tensor("self");
  const int64_t dim = wrap_dim(e.integer("dim"), x.rank()), size = x.dim(dim), step = e.integer("step");
  const auto [start, stop] = slice_bounds(e, size);
  Dims dims = x.dims();
  dims[at(dim)] = (stop - start + step - 1) / step;
  if (dims[at(dim)] == 0) return {x};
  Value source = b.broadcast(to(b, e.tensor("src"), x.dtype()), dims);
  Value written = place(b, b.splat(1, Type{DType::kPred, dims}), dim, start, size, step);
  return {b.select(written, place(b, source, dim, start, size, step), x)};
}

Values select_scatter(Emit& e) {
  Builder& b = e.b;
  Value x = e.tensor("self");
  const int64_t dim = wrap_dim(e.integer("dim"), x.rank()), size = x.dim(dim);
  const int64_t index = e.integer("index") < 0 ? e.integer("index") + size : e.integer("index");
  Dims dims = x.dims();
  dims[at(dim)] = 1;
  Value source = b.reshape(to(b, e.tensor("src"), x.dtype()), dims);
  Value position = b.iota(Type{DType::kS32, x.dims()}, dim);
  return {b.select(is_equal(b, position, static_cast<double>(index)), b.broadcast(source, x.dims()), x)};
}

// A diagonal of a tensor of these dims: element k is at (k + down, k + right) of dimensions dim1 and dim2.
struct Diagonal {
  Dims dims;
  int64_t dim1, dim2, down, right;
};

Diagonal diagonal_of(Emit& e, const Dims& dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t offset = e.integer("offset");
  const int64_t dim1 = wrap_dim(e.integer("dim1"), rank), dim2 = wrap_dim(e.integer("dim2"), rank);
  e.check(dim1 != dim2, "expected dim1 and dim2 to differ");
  return {dims, dim1, dim2, std::max<int64_t>(-offset, 0), std::max<int64_t>(offset, 0)};
}

// Returns true on the diagonal.
Value diagonal_mask(Builder& b, const Diagonal& d) {
  const Type type{DType::kS32, d.dims};
  Value row = b.iota(type, d.dim1), column = b.iota(type, d.dim2);
  return b.compare(b.add(row, b.splat(d.right - d.down, type)), column, Compare::kEq);
}

// Returns the elements of `source` (its last dimension runs along the diagonal) at their places, and copies
// of them next to the diagonal.
Value spread_on_diagonal(Builder& b, Value source, const Diagonal& d) {
  const bool by_row = d.down == 0;  // element k is in row k, else in column k
  const int64_t kept = by_row ? d.dim1 : d.dim2;
  const int64_t last = source.rank() - 1, size = d.dims[at(kept)];
  Dims low(at(source.rank()), 0), high = low, positions;
  high[at(last)] = size - source.dim(last);
  Value padded = b.pad(source, b.splat(0, Type{source.dtype(), {}}), low, high);
  for (int64_t i = 0; i < static_cast<int64_t>(d.dims.size()); ++i)
    if (i != d.dim1 && i != d.dim2) positions.push_back(i);
  positions.push_back(kept);
  // broadcast_in_dim takes its dims in ascending order, so the diagonal's dimension first moves to its place.
  Dims order(positions.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::sort(order.begin(), order.end(),
            [&](int64_t x, int64_t y) { return positions[at(x)] < positions[at(y)]; });
  std::sort(positions.begin(), positions.end());
  return b.broadcast_in_dim(b.transpose(padded, order), d.dims, positions);
}

Values diagonal_backward(Emit& e) {
  Value grad = e.tensor("grad_output");
  const Diagonal d = diagonal_of(e, e.ints("input_sizes"));
  Value spread = spread_on_diagonal(e.b, grad, d);
  return {e.b.select(diagonal_mask(e.b, d), spread, number_like(e.b, 0, spread))};
}

Values diagonal_scatter(Emit& e) {
  Value x = e.tensor("self");
  const Diagonal d = diagonal_of(e, x.dims());
  Value spread = spread_on_diagonal(e.b, to(e.b, e.tensor("src"), x.dtype()), d);
  return {e.b.select(diagonal_mask(e.b, d), spread, x)};
}

Values diag_embed(Emit& e) {
  Value x = e.tensor("self");
  e.check(x.rank() > 0, "expected at least one dimension");
  const int64_t rank = x.rank() + 1, length = x.dim(x.rank() - 1) + std::abs(e.integer("offset"));
  const int64_t dim1 = wrap_dim(e.integer("dim1"), rank), dim2 = wrap_dim(e.integer("dim2"), rank);
  Dims dims(x.dims().begin(), x.dims().end() - 1);
  dims.insert(dims.begin() + std::min(dim1, dim2), length);
  dims.insert(dims.begin() + std::max(dim1, dim2), length);
  const Diagonal d = diagonal_of(e, dims);
  Value spread = spread_on_diagonal(e.b, x, d);
  return {e.b.select(diagonal_mask(e.b, d), spread, number_like(e.b, 0, spread))};
}

// grad_in: the windows' gradients, window number in `dim`, position in the window in the last dimension.
Values unfold_backward(Emit& e) {
  Builder& b = e.b;
  Value grad = e.tensor("grad_in");
  const Dims& sizes = e.ints("input_sizes");
  const auto rank = static_cast<int64_t>(sizes.size());
  if (rank == 0) return {b.reshape(grad, {})};
  const int64_t dim = wrap_dim(e.integer("dim"), rank), size = e.integer("size"), step = e.integer("step");
  Value wide = to(b, grad, compute_type(grad.dtype()));
  Value total;
  for (int64_t k = 0; k < size; ++k) {
    Value part = b.slice_dim(wide, rank, k, k + 1);
    Dims dims = part.dims();
    dims.pop_back();
    Value placed = place(b, b.reshape(part, dims), dim, k, sizes[at(dim)], step);
    total = total ? b.add(total, placed) : placed;
  }
  if (!total) total = zeros(b, Type{wide.dtype(), sizes});
  return {to(b, total, grad.dtype())};
}

const Row kShapeRows[] = {
    {.name = "aten::cat", .emit = cat},
    {.name = "aten::channel_shuffle", .emit = channel_shuffle},
    {.name = "aten::constant_pad_nd", .emit = constant_pad, .constant_if_zero = "value"},
    {.name = "aten::diag_embed", .emit = diag_embed},
    {.name = "aten::diagonal_backward", .emit = diagonal_backward},
    {.name = "aten::diagonal_scatter", .emit = diagonal_scatter},
    {.name = "aten::flip", .emit = flip},
    {.name = "aten::pixel_shuffle", .emit = pixel_shuffle},
    {.name = "aten::pixel_unshuffle", .emit = pixel_unshuffle},
    {.name = "aten::reflection_pad1d", .emit = edge_pad<Edge::kReflect>},
    {.name = "aten::reflection_pad1d_backward", .emit = edge_pad_backward<Edge::kReflect>},
    {.name = "aten::reflection_pad2d", .emit = edge_pad<Edge::kReflect>},
    {.name = "aten::reflection_pad2d_backward", .emit = edge_pad_backward<Edge::kReflect>},
    {.name = "aten::reflection_pad3d", .emit = edge_pad<Edge::kReflect>},
    {.name = "aten::reflection_pad3d_backward", .emit = edge_pad_backward<Edge::kReflect>},
    {.name = "aten::repeat", .emit = repeat},
    {.name = "aten::replication_pad1d", .emit = edge_pad<Edge::kReplicate>},
    {.name = "aten::replication_pad1d_backward", .emit = edge_pad_backward<Edge::kReplicate>},
    {.name = "aten::replication_pad2d", .emit = edge_pad<Edge::kReplicate>},
    {.name = "aten::replication_pad2d_backward", .emit = edge_pad_backward<Edge::kReplicate>},
    {.name = "aten::replication_pad3d", .emit = edge_pad<Edge::kReplicate>},
    {.name = "aten::replication_pad3d_backward", .emit = edge_pad_backward<Edge::kReplicate>},
    {.name = "aten::roll", .emit = roll},
    {.name = "aten::select_backward", .emit = select_backward},
    {.name = "aten::select_scatter", .emit = select_scatter},
    {.name = "aten::slice_backward", .emit = slice_backward},
    {.name = "aten::slice_scatter", .emit = slice_scatter},
    {.name = "aten::stack", .emit = stack},
    {.name = "aten::unfold_backward", .emit = unfold_backward},
};

}  // namespace

std::span<const Row> shape_rows() { return kShapeRows; }

}  // namespace sluice::ops
