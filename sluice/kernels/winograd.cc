#include "sluice/kernels/winograd.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "sluice/kernels/arena.h"

namespace sluice::kernels {
namespace {

constexpr std::array<int, 3> kStraight = {0, 1, 2}, kSwapped = {0, 2, 1};
// Floats of a block's inputs and products together: a core's second cache for the convolution, the third for
// the gradient, whose blocks all cores share.
constexpr int64_t kBlockFloats = 192 << 10, kGradientBlockFloats = 1 << 20;
// A block reads all weights: with fewer tiles it waits for them (measured: 64 are 10 to 20 % faster than 32).
constexpr int64_t kFewestTiles = 64;
// With fewer the transforms cost more than the products save (measured).
constexpr int64_t kFewestChannels = 16, kFewestGradientChannels = 32;
constexpr size_t kPieceChannels = 16, kPlainWidth = 64;
// Pixels of fewer channels lie closely enough for the hardware.
constexpr int64_t kFetchedChannels = 64;
constexpr int64_t kLineFloats = 16;

bool gains(const WinogradShape& shape, int64_t fewest_channels) {
  // The work on the weights is the same for one tile as for many (measured: docs/performance.md).
  const bool many = Tiles(shape).count() >= shape.channels * shape.filters / 2048;
  return many && std::min(shape.channels, shape.filters) >= fewest_channels &&
         std::min(shape.out_height, shape.out_width) >= kTileOut;
}

// Odd: with 64 tiles the 36 points of a tile would lie a power of two apart, in the same few places of a
// cache (measured: transforms take two to three times as long).
int64_t tiles_of_block(const WinogradShape& shape, int64_t floats, int64_t tiles) {
  const int64_t fitting = floats / (kTilePoints * (shape.channels + shape.filters));
  return std::min(std::max(kFewestTiles, fitting), tiles) | 1;
}

// Weights, [points, channels, filters], are worked on in pieces: the planes of the points often lie a power
// of two apart, and 36 of such lines do not fit into a cache at the same time.
struct Piece {
  size_t channel, channels, filter, filters;
};

// Filters of a piece, which lie side by side: a block of the layout, or some of its row.
size_t piece_width(const dnnl_memory_desc_t& layout) {
  const dnnl_blocking_desc_t& blocks = layout.format_desc.blocking;
  return blocks.inner_nblks == 0 ? kPlainWidth
                                 : static_cast<size_t>(blocks.inner_blks[blocks.inner_nblks - 1]);
}

// body(piece, memory for its points: [points, kPieceChannels, width]), on the threads of a call.
template <typename Body>
void for_pieces(size_t channels, size_t filters, size_t width, const Body& body) {
  const size_t wide = (filters + width - 1) / width;
  const size_t all = (channels + kPieceChannels - 1) / kPieceChannels * wide;
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < all; ++i) {
    const Scratch points(kTilePoints * kPieceChannels * width * sizeof(float));
    const size_t channel = i / wide * kPieceChannels, filter = i % wide * width;
    body(Piece{channel, std::min(kPieceChannels, channels - channel), filter,
               std::min(width, filters - filter)},
         points.floats());
  }
}

// body(row of the piece, its place in memory of that layout).
template <typename Body>
void each_row(const Piece& piece, const dnnl_memory_desc_t& layout, const Body& body) {
  const auto channel = static_cast<int64_t>(piece.channel), filter = static_cast<int64_t>(piece.filter);
  const size_t first = place_in(layout, {0, channel, filter});
  const size_t point_step = place_in(layout, {1, channel, filter}) - first;
  const size_t row_step = piece.channels > 1 ? place_in(layout, {0, channel + 1, filter}) - first : 0;
  for (size_t point = 0; point < kTilePoints; ++point)
    for (size_t i = 0; i < piece.channels; ++i)
      body(point * kPieceChannels + i, first + point * point_step + i * row_step);
}

// Whether the rows of a piece lie densely, one as far from the other as the next.
bool keeps_pieces(const dnnl_memory_desc_t& layout) {
  const dnnl_blocking_desc_t& blocks = layout.format_desc.blocking;
  for (int i = 0; i < blocks.inner_nblks; ++i) {
    const bool channels = blocks.inner_idxs[i] == 1 && blocks.inner_blks[i] % kPieceChannels == 0;
    const bool filters = blocks.inner_idxs[i] == 2 && i == blocks.inner_nblks - 1;
    if (!channels && !filters) return false;
  }
  return blocks.inner_nblks > 0 ? blocks.inner_idxs[blocks.inner_nblks - 1] == 2 : blocks.strides[2] == 1;
}

}  // namespace

// ---- Tiles ----

Tiles::Tiles(const WinogradShape& shape)
    : shape_(shape),
      high_((shape.out_height + kTileOut - 1) / kTileOut),
      wide_((shape.out_width + kTileOut - 1) / kTileOut) {}

Tiles::Place Tiles::place_of(int64_t tile) const {
  return {tile / (high_ * wide_), tile / wide_ % high_ * kTileOut, tile % wide_ * kTileOut};
}

// A row of a tile is too short for the hardware to guess the next one: without this, transforms of pictures
// that no cache holds take 1.5 to 2.5 times as long (measured). Inlined, because a compiler drops a call that
// has no effect.
inline __attribute__((always_inline)) void Tiles::fetch(int64_t tile, const float* pixels, int64_t height,
                                                        int64_t width, int64_t channels) const {
  if (channels < kFetchedChannels || tile >= count()) return;
  const Place at = place_of(tile);
  const int64_t last_row = std::min(at.row + kTileOut, height);
  const int64_t floats = std::min<int64_t>(kTileOut, width - at.column) * channels;
  for (int64_t h = at.row; h < last_row; ++h) {
    const float* const row = pixels + ((at.picture * height + h) * width + at.column) * channels;
    for (int64_t i = 0; i < floats; i += kLineFloats) __builtin_prefetch(row + i);
  }
}

void Tiles::transform_input(const float* x, int64_t tile, int64_t rows, float* to) const {
  static const std::array<float, 4096> zeros{};
  const auto channels = static_cast<size_t>(shape_.channels);
  fetch(tile + wide_, x, shape_.in_height, shape_.in_width, shape_.channels);
  const Place at = place_of(tile);
  const int64_t row = at.row - shape_.padding_height, column = at.column - shape_.padding_width;
  for (size_t first = 0; first < channels; first += zeros.size()) {
    TileInputs from;
    for (int64_t i = 0; i < kTileIn; ++i) {
      const int64_t h = row + i;
      const bool inside = h >= 0 && h < shape_.in_height;
      const int64_t pixel = (at.picture * shape_.in_height + h) * shape_.in_width + column;
      for (int64_t j = 0; j < kTileIn; ++j) {
        const bool there = inside && column + j >= 0 && column + j < shape_.in_width;
        from[static_cast<size_t>(i * kTileIn + j)] =
            there ? x + static_cast<size_t>(pixel + j) * channels + first : zeros.data();
      }
    }
    input_tile(from, std::min(channels - first, zeros.size()), static_cast<size_t>(rows) * channels,
               to + first);
  }
}

int64_t Tiles::out_pixel(const Place& tile, int64_t i) const {
  const int64_t h = tile.row + i / kTileOut, w = tile.column + i % kTileOut;
  if (h >= shape_.out_height || w >= shape_.out_width) return -1;
  return (tile.picture * shape_.out_height + h) * shape_.out_width + w;
}

void Tiles::transform_gradient(const float* y, int64_t tile, int64_t rows, float* to) const {
  const auto filters = static_cast<size_t>(shape_.filters);
  const Scratch outside(filters * sizeof(float));
  std::fill(outside.floats(), outside.floats() + filters, 0.f);
  fetch(tile + wide_, y, shape_.out_height, shape_.out_width, shape_.filters);
  const Place at = place_of(tile);
  TileGradients from;
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t pixel = out_pixel(at, static_cast<int64_t>(i));
    from[i] = pixel < 0 ? outside.floats() : y + static_cast<size_t>(pixel) * filters;
  }
  gradient_tile(from, filters, static_cast<size_t>(rows) * filters, to);
}

void Tiles::transform_output(const float* from, int64_t tile, int64_t rows, float* y) const {
  const auto filters = static_cast<size_t>(shape_.filters);
  const Scratch dropped(filters * sizeof(float));
  fetch(tile + 1, y, shape_.out_height, shape_.out_width, shape_.filters);
  const Place at = place_of(tile);
  TileOutputs to;
  for (size_t i = 0; i < to.size(); ++i) {
    const int64_t pixel = out_pixel(at, static_cast<int64_t>(i));
    to[i] = pixel < 0 ? dropped.floats() : y + static_cast<size_t>(pixel) * filters;
  }
  output_tile(from, filters, static_cast<size_t>(rows) * filters, to);
}

// ---- The convolution ----

std::unique_ptr<Winograd> Winograd::make(const WinogradShape& shape) {
  if (!gains(shape, kFewestChannels)) return nullptr;
  auto made = std::make_unique<Winograd>(shape);
  const int threads = omp_get_max_threads();
  made->block_ = tiles_of_block(shape, kBlockFloats, (made->tiles_.count() + threads - 1) / threads);
  const std::array<int64_t, 3> input = {kTilePoints, made->block_, shape.channels},
                               weights = {kTilePoints, shape.channels, shape.filters},
                               output = {kTilePoints, made->block_, shape.filters};
  made->input_ = dense(input, kStraight);
  made->output_ = dense(output, kStraight);
  // Each thread multiplies blocks of its own.
  omp_set_num_threads(1);
  made->product_ = Primitive::product(made->input_, any_layout(weights), made->output_);
  omp_set_num_threads(threads);
  return made->product_ && keeps_pieces(made->weights()) ? std::move(made) : nullptr;
}

void Winograd::transform_weights(const float* w, float* to) const {
  const WinogradShape& shape = tiles_.shape();
  const auto channels = static_cast<size_t>(shape.channels), filters = static_cast<size_t>(shape.filters);
  const size_t filter_step = 9 * (shape.turned ? 1 : channels),
               channel_step = 9 * (shape.turned ? filters : 1);
  if (layout_bytes(weights()) > kTilePoints * channels * filters * sizeof(float))
    std::memset(to, 0, layout_bytes(weights()));  // what fills up the blocks
  const size_t width = piece_width(weights());
  for_pieces(channels, filters, width, [&](const Piece& piece, float* points) {
    for (size_t i = 0; i < piece.channels; ++i)
      weight_tile(w + piece.filter * filter_step + (piece.channel + i) * channel_step, filter_step,
                  shape.turned, kPieceChannels * width, piece.filters, points + i * width);
    each_row(piece, weights(), [&](size_t row, size_t place) {
      std::memcpy(to + place, points + row * width, piece.filters * sizeof(float));
    });
  });
}

base::Status Winograd::run_block(int64_t first, const float* x, void* packed, float* y) const {
  const Scratch input(layout_bytes(input_)), output(layout_bytes(output_));
  const int64_t count = std::min(block_, tiles_.count() - first);
  for (int64_t i = 0; i < count; ++i)
    tiles_.transform_input(x, first + i, block_, input.floats() + i * tiles_.shape().channels);
  SLUICE_OK(product_->execute(std::array<Argument, 3>{{{DNNL_ARG_SRC, &input_, input.data()},
                                                       {DNNL_ARG_WEIGHTS, &weights(), packed},
                                                       {DNNL_ARG_DST, &output_, output.data()}}}));
  for (int64_t i = 0; i < count; ++i)
    tiles_.transform_output(output.floats() + i * tiles_.shape().filters, first + i, block_, y);
  return {};
}

base::Status Winograd::run(const float* x, const float* w, float* y) const {
  const Scratch packed(layout_bytes(weights()));
  transform_weights(w, packed.floats());
  std::mutex mutex;
  base::Status status;
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < tiles_.count(); first += block_) {
    base::Status done = run_block(first, x, packed.data(), y);
    const std::lock_guard lock(mutex);
    if (!done) status = done;
  }
  return status;
}

// ---- The weights' gradient ----

std::unique_ptr<WinogradGradient> WinogradGradient::make(const WinogradShape& shape) {
  if (!gains(shape, kFewestGradientChannels)) return nullptr;
  auto made = std::make_unique<WinogradGradient>(shape);
  made->block_ = tiles_of_block(shape, kGradientBlockFloats, made->tiles_.count());
  const std::array<int64_t, 3> input = {kTilePoints, shape.channels, made->block_},
                               gradient = {kTilePoints, made->block_, shape.filters},
                               sum = {kTilePoints, shape.channels, shape.filters};
  made->input_ = dense(input, kSwapped);
  made->gradient_ = dense(gradient, kStraight);
  made->sum_ = dense(sum, kStraight);
  made->first_ = Primitive::product(made->input_, made->gradient_, made->sum_);
  made->more_ = Primitive::product(made->input_, made->gradient_, made->sum_, /*added=*/true);
  return made->first_ && made->more_ ? std::move(made) : nullptr;
}

base::Status WinogradGradient::run(const float* x, const float* y, float* w) const {
  const WinogradShape& shape = tiles_.shape();
  const auto channels = static_cast<size_t>(shape.channels), filters = static_cast<size_t>(shape.filters);
  const Scratch sum(layout_bytes(sum_)), input(layout_bytes(input_)), gradient(layout_bytes(gradient_));
  for (int64_t first = 0; first < tiles_.count(); first += block_) {
    const int64_t count = std::min(block_, tiles_.count() - first);
    for (int64_t point = 0; point < kTilePoints; ++point) {  // rows that are missing add nothing
      const int64_t row = point * block_ + count, missing = block_ - count;
      std::fill_n(input.floats() + row * shape.channels, missing * shape.channels, 0.f);
      std::fill_n(gradient.floats() + row * shape.filters, missing * shape.filters, 0.f);
    }
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; ++i) {
      tiles_.transform_input(x, first + i, block_, input.floats() + i * shape.channels);
      tiles_.transform_gradient(y, first + i, block_, gradient.floats() + i * shape.filters);
    }
    SLUICE_OK((first == 0 ? first_ : more_)
                  ->execute(std::array<Argument, 3>{{{DNNL_ARG_SRC, &input_, input.data()},
                                                     {DNNL_ARG_WEIGHTS, &gradient_, gradient.data()},
                                                     {DNNL_ARG_DST, &sum_, sum.data()}}}));
  }
  const size_t width = piece_width(sum_);
  for_pieces(channels, filters, width, [&](const Piece& piece, float* points) {
    each_row(piece, sum_, [&](size_t row, size_t place) {
      std::memcpy(points + row * width, sum.floats() + place, piece.filters * sizeof(float));
    });
    for (size_t i = 0; i < piece.channels; ++i)
      kernel_gradient_tile(points + i * width, piece.filters, kPieceChannels * width, 9 * channels,
                           w + 9 * (piece.filter * channels + piece.channel + i));
  });
  return {};
}

}  // namespace sluice::kernels
