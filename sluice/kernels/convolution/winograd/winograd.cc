#include "sluice/kernels/convolution/winograd/winograd.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/convolution/winograd/tiles.h"
#include "sluice/kernels/gemm/gemm_panels.h"
#include "sluice/kernels/gemm/micro_kernel.h"
#include "sluice/kernels/gemm/partial_sums.h"
#include "sluice/kernels/lanes.h"
#include "sluice/kernels/onednn.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

constexpr std::array<int, 3> kStraight = {0, 1, 2}, kSwapped = {0, 2, 1};
// The floats of a block's inputs and products together: a core's L2 cache for the convolution, the L3 cache
// for the gradient, whose blocks all cores share.
constexpr int64_t kBlockFloats = 192 << 10, kGradientBlockFloats = 384 << 10;
// A block reads all weights: with fewer tiles it waits for them (measured: 64 are 10 to 20 % faster than 32).
constexpr int64_t kMinTiles = 64;
constexpr size_t kPieceChannels = 16, kPlainWidth = 64;
constexpr size_t kAlignment = 64;
// The floats of sums that fit into a core's L2 cache with a block: up to this size each thread adds up its
// own tiles. With more floats the threads share a block, each with points of its own.
constexpr int64_t kOwnSumFloats = kKernelPlanes * 64 * 64;
// The tiles that a thread transforms before it takes the next ones.
constexpr int64_t kTilesOfPart = 8;

// Returns an odd number: with 64 tiles the planes of a tile would be a power of two apart, in the same few
// places of a cache (measured: transforms take two to three times as long).
int64_t tiles_of_block(const WinogradShape& shape, int64_t floats, int64_t tiles) {
  const int64_t fitting = floats / (planes_of(shape.tiling) * (shape.channels + shape.filters));
  return std::min(std::max(kMinTiles, fitting), tiles) | 1;
}

// Gives every thread the same number of tiles if there are few.
int64_t tiles_of_shared_block(const WinogradShape& shape, int64_t floats, int64_t tiles) {
  const int64_t threads = threads_of_a_call();
  const int64_t block = tiles_of_block(shape, floats, (tiles + threads - 1) / threads);
  const int64_t blocks = ((tiles + block - 1) / block + threads - 1) / threads * threads;
  return (tiles + blocks - 1) / blocks | 1;
}

// Weights, [planes, channels, filters], are processed in pieces: the planes are often a power of two apart,
// and 36 such lines do not fit into a cache at the same time.
struct Piece {
  size_t channel, channels, filter, filters;
};

// Returns the number of filters in a piece, which are contiguous: a block of the layout, or a part of its
// row.
size_t piece_width(const dnnl_memory_desc_t& layout) {
  const dnnl_blocking_desc_t& blocks = layout.format_desc.blocking;
  return blocks.inner_nblks == 0 ? kPlainWidth
                                 : static_cast<size_t>(blocks.inner_blks[blocks.inner_nblks - 1]);
}

// Calls body(piece, memory for its planes: [planes, kPieceChannels, width]) on the threads of a call.
template <typename Body>
void for_pieces(size_t channels, size_t filters, size_t width, const Body& body) {
  const size_t across = (filters + width - 1) / width;
  const size_t all = (channels + kPieceChannels - 1) / kPieceChannels * across;
  parallel_for(all, [&](size_t i) {
    const Scratch planes(kKernelPlanes * kPieceChannels * width * sizeof(float));
    const size_t channel = i / across * kPieceChannels, filter = i % across * width;
    body(Piece{channel, std::min(kPieceChannels, channels - channel), filter,
               std::min(width, filters - filter)},
         planes.floats());
  });
}

// Calls body(row of the piece, its offset in memory of that layout) for the rows of some planes of kernels,
// from number `first` on.
template <typename Body>
void each_row(const Piece& piece, const dnnl_memory_desc_t& layout, size_t first, const Body& body) {
  const auto channel = static_cast<int64_t>(piece.channel), filter = static_cast<int64_t>(piece.filter);
  const auto planes = static_cast<size_t>(layout.dims[0]);
  const size_t begin = offset_in(layout, {0, channel, filter});
  const size_t plane_step = planes > 1 ? offset_in(layout, {1, channel, filter}) - begin : 0;
  const size_t row_step = piece.channels > 1 ? offset_in(layout, {0, channel + 1, filter}) - begin : 0;
  for (size_t plane = 0; plane < planes; ++plane)
    for (size_t i = 0; i < piece.channels; ++i)
      body((first + plane) * kPieceChannels + i, begin + plane * plane_step + i * row_step);
}

// Returns whether the rows of a piece are dense, and equally far apart.
bool keeps_pieces(const dnnl_memory_desc_t& layout) {
  const dnnl_blocking_desc_t& blocks = layout.format_desc.blocking;
  for (int i = 0; i < blocks.inner_nblks; ++i) {
    const bool channels = blocks.inner_idxs[i] == 1 && blocks.inner_blks[i] % kPieceChannels == 0;
    const bool filters = blocks.inner_idxs[i] == 2 && i == blocks.inner_nblks - 1;
    if (!channels && !filters) return false;
  }
  return blocks.inner_nblks > 0 ? blocks.inner_idxs[blocks.inner_nblks - 1] == 2 : blocks.strides[2] == 1;
}

// ---- The convolution ----

class WideWinograd : public Winograd {
 public:
  explicit WideWinograd(const WinogradShape& shape) : tiles_(shape) {}
  static std::unique_ptr<WideWinograd> make(const WinogradShape& shape);
  base::Status run(const float* x, const float* w, float* y) const override;

 private:
  // The products of a group of planes. Weights: [kernels, channels, filters], in the product's order.
  struct Group {
    PlaneGroup planes;
    dnnl_memory_desc_t input, weights, output;
    std::unique_ptr<Primitive> product;  // null: our own loop
    size_t packed = 0;                   // the offset of its weights, in bytes
  };
  void transform_weights(const float* w, std::byte* to) const;
  base::Status multiply(const Group& group, float* input, std::byte* weights, float* output) const;
  base::Status run_block(int64_t first, const float* x, std::byte* packed, float* y) const;

  Tiles tiles_;
  int64_t block_ = 0;
  size_t packed_bytes_ = 0;
  size_t piece_width_ = 0;  // contiguous filters in the weights of every group
  std::vector<Group> groups_;
};

std::unique_ptr<WideWinograd> WideWinograd::make(const WinogradShape& shape) {
  auto made = std::make_unique<WideWinograd>(shape);
  made->block_ = tiles_of_shared_block(shape, kBlockFloats, made->tiles_.count());
  for (const PlaneGroup& planes : groups_of(shape.tiling)) {
    const int64_t rows = planes.each * made->block_;
    Group group{planes,  dense(std::array<int64_t, 3>{planes.kernels, rows, shape.channels}, kStraight),
                {},      dense(std::array<int64_t, 3>{planes.kernels, rows, shape.filters}, kStraight),
                nullptr, 0};
    const std::array<int64_t, 3> weights = {planes.kernels, shape.channels, shape.filters};
    group.product = Primitive::product(group.input, any_layout(weights), group.output);
    group.weights = group.product ? group.product->layout(dnnl_query_weights_md)
                                  : in_panels(weights, static_cast<int64_t>(tile_columns()));
    if (!keeps_pieces(group.weights)) return nullptr;
    group.packed = made->packed_bytes_;
    made->packed_bytes_ += (layout_bytes(group.weights) + kAlignment - 1) / kAlignment * kAlignment;
    made->groups_.push_back(std::move(group));
  }
  made->piece_width_ = piece_width(made->groups_.front().weights);
  for (const Group& group : made->groups_)
    if (piece_width(group.weights) != made->piece_width_) return nullptr;
  return made;
}

void WideWinograd::transform_weights(const float* w, std::byte* to) const {
  const WinogradShape& shape = tiles_.shape();
  const auto channels = static_cast<size_t>(shape.channels), filters = static_cast<size_t>(shape.filters);
  const size_t filter_step = shape.filter_step(), channel_step = shape.channel_step();
  for (const Group& group : groups_) {
    const size_t floats = static_cast<size_t>(group.planes.kernels) * channels * filters;
    if (layout_bytes(group.weights) > floats * sizeof(float))
      std::memset(to + group.packed, 0, layout_bytes(group.weights));  // the padding of the blocks
  }
  const size_t width = piece_width_;
  for_pieces(channels, filters, width, [&](const Piece& piece, float* planes) {
    for (size_t i = 0; i < piece.channels; ++i)
      weight_tile(shape.tiling, w + piece.filter * filter_step + (piece.channel + i) * channel_step,
                  filter_step, shape.rotated, kPieceChannels * width, piece.filters, planes + i * width);
    for (const Group& group : groups_) {
      auto* const packed = reinterpret_cast<float*>(to + group.packed);
      each_row(piece, group.weights, static_cast<size_t>(group.planes.first_kernel),
               [&](size_t row, size_t place) {
                 std::memcpy(packed + place, planes + row * width, piece.filters * sizeof(float));
               });
    }
  });
}

base::Status WideWinograd::multiply(const Group& group, float* input, std::byte* weights,
                                    float* output) const {
  if (group.product) {
    return group.product->execute(std::array<Argument, 3>{{{DNNL_ARG_SRC, &group.input, input},
                                                           {DNNL_ARG_WEIGHTS, &group.weights, weights},
                                                           {DNNL_ARG_DST, &group.output, output}}});
  }
  const auto channels = static_cast<size_t>(tiles_.shape().channels),
             filters = static_cast<size_t>(tiles_.shape().filters),
             rows = static_cast<size_t>(group.planes.each * block_),
             kernel_floats = panels_of(filters) * panel_floats(channels);
  for (size_t i = 0; i < static_cast<size_t>(group.planes.kernels); ++i)
    multiply_packed({rows, filters, channels}, {input + i * rows * channels, channels, false},
                    reinterpret_cast<const float*>(weights) + i * kernel_floats, panel_floats(channels),
                    output + i * rows * filters, filters, /*add=*/false);
  return {};
}

base::Status WideWinograd::run_block(int64_t first, const float* x, std::byte* packed, float* y) const {
  const int64_t channels = tiles_.shape().channels, filters = tiles_.shape().filters,
                rows = tiles_.planes() * block_;
  const Scratch input(static_cast<size_t>(rows * channels) * sizeof(float)),
      output(static_cast<size_t>(rows * filters) * sizeof(float));
  const int64_t count = std::min(block_, tiles_.count() - first);
  for (int64_t i = 0; i < count; ++i) {
    tiles_.prefetch_input(x, tiles_.below(first + i));
    tiles_.transform_input(x, first + i, block_, input.floats() + i * channels);
  }
  for (const Group& group : groups_) {
    const int64_t row = group.planes.first * block_;
    SLUICE_OK(multiply(group, input.floats() + row * channels, packed + group.packed,
                       output.floats() + row * filters));
  }
  for (int64_t i = 0; i < count; ++i) {
    tiles_.prefetch_output(y, first + i + 1);
    tiles_.transform_output(output.floats() + i * filters, first + i, block_, 0, filters, y);
  }
  return {};
}

base::Status WideWinograd::run(const float* x, const float* w, float* y) const {
  const Scratch packed(packed_bytes_);
  transform_weights(w, packed.bytes());
  const int64_t blocks = (tiles_.count() + block_ - 1) / block_;
  return parallel_for_status(static_cast<size_t>(blocks), [&](size_t i) {
    return run_block(static_cast<int64_t>(i) * block_, x, packed.bytes(), y);
  });
}

// ---- The weights' gradient ----

class WideGradient : public Winograd {
 public:
  explicit WideGradient(const WinogradShape& shape) : tiles_(shape) {}
  static std::unique_ptr<WideGradient> make(const WinogradShape& shape);
  base::Status run(const float* x, const float* y, float* w) const override;

 private:
  // Products of some planes of a kernel with all planes of tiles that meet them.
  struct Group {
    int64_t kernels, rows;  // of each kernel
    dnnl_memory_desc_t input, gradient, sum;
    std::unique_ptr<Primitive> first, more;  // `first` stores the product, `more` adds it; null: our own loop
  };
  struct Task {
    size_t group;
    int64_t kernel, plane;
  };
  void add_group(const PlaneGroup& planes, int64_t kernels);
  // Transforms a block of tiles to inputs [planes, block_, channels] and gradients [planes, block_, filters].
  void transform(const float* x, const float* y, int64_t first, float* input, float* gradient) const;
  base::Status multiply(const Group& group, bool add, float* input, float* gradient, float* sum) const;
  // Sums the products of the tiles in [begin, end): [kKernelPlanes, channels, filters].
  base::Status add_up(const float* x, const float* y, int64_t begin, int64_t end, float* sum) const;

  Tiles tiles_;
  int64_t block_ = 0, parts_ = 0, tiles_of_part_ = 0;
  dnnl_memory_desc_t all_sums_;
  std::vector<Group> groups_;
  std::vector<Task> tasks_;
};

// Returns the number of planes in one product of the library: each thread has at least six products, so that
// none waits long for the others.
int64_t planes_of_product(const PlaneGroup& group) {
  for (int64_t planes = kKernelPlanes / (6 * threads_of_a_call()); planes > 1; --planes)
    if (group.kernels % planes == 0) return planes;
  return 1;
}

void WideGradient::add_group(const PlaneGroup& planes, int64_t kernels) {
  const WinogradShape& shape = tiles_.shape();
  const int64_t rows = planes.each * block_;
  Group group{kernels,
              rows,
              dense(std::array<int64_t, 3>{kernels, shape.channels, rows}, kSwapped),
              dense(std::array<int64_t, 3>{kernels, rows, shape.filters}, kStraight),
              dense(std::array<int64_t, 3>{kernels, shape.channels, shape.filters}, kStraight),
              nullptr,
              nullptr};
  group.first = Primitive::product(group.input, group.gradient, group.sum);
  group.more = Primitive::product(group.input, group.gradient, group.sum, /*added=*/true);
  for (int64_t i = 0; i < planes.kernels; i += kernels)
    tasks_.push_back({groups_.size(), planes.first_kernel + i, planes.first + i * planes.each});
  groups_.push_back(std::move(group));
}

std::unique_ptr<WideGradient> WideGradient::make(const WinogradShape& shape) {
  auto made = std::make_unique<WideGradient>(shape);
  const bool own_sums = kKernelPlanes * shape.channels * shape.filters <= kOwnSumFloats;
  made->block_ = tiles_of_block(shape, own_sums ? kBlockFloats : kGradientBlockFloats, made->tiles_.count());
  const int64_t blocks = (made->tiles_.count() + made->block_ - 1) / made->block_;
  made->parts_ = own_sums ? std::min<int64_t>(threads_of_a_call(), blocks) : 1;
  made->tiles_of_part_ = (blocks + made->parts_ - 1) / made->parts_ * made->block_;
  made->all_sums_ = dense(std::array<int64_t, 3>{kKernelPlanes, shape.channels, shape.filters}, kStraight);
  for (const PlaneGroup& planes : groups_of(shape.tiling))
    made->add_group(planes, own_sums ? planes.kernels : planes_of_product(planes));
  std::reverse(made->tasks_.begin(), made->tasks_.end());  // the longest first
  return made;
}

void WideGradient::transform(const float* x, const float* y, int64_t first, float* input,
                             float* gradient) const {
  const WinogradShape& shape = tiles_.shape();
  const int64_t count = std::min(block_, tiles_.count() - first);
  for (int64_t plane = 0; plane < tiles_.planes(); ++plane) {  // missing rows add nothing
    const int64_t row = plane * block_ + count, missing = block_ - count;
    std::fill_n(input + row * shape.channels, missing * shape.channels, 0.f);
    std::fill_n(gradient + row * shape.filters, missing * shape.filters, 0.f);
  }
  const auto parts = static_cast<size_t>((count + kTilesOfPart - 1) / kTilesOfPart);
  parallel_for(parts, [&](size_t part) {
    const int64_t begin = static_cast<int64_t>(part) * kTilesOfPart;
    for (int64_t i = begin; i < std::min(begin + kTilesOfPart, count); ++i) {
      tiles_.prefetch_input(x, tiles_.below(first + i));
      tiles_.prefetch_output(y, tiles_.below(first + i));
      tiles_.transform_input(x, first + i, block_, input + i * shape.channels);
      tiles_.transform_gradient(y, first + i, block_, gradient + i * shape.filters);
    }
  });
}

base::Status WideGradient::multiply(const Group& group, bool add, float* input, float* gradient,
                                    float* sum) const {
  if (group.first && group.more) {
    return (add ? group.more : group.first)
        ->execute(std::array<Argument, 3>{{{DNNL_ARG_SRC, &group.input, input},
                                           {DNNL_ARG_WEIGHTS, &group.gradient, gradient},
                                           {DNNL_ARG_DST, &group.sum, sum}}});
  }
  const auto channels = static_cast<size_t>(tiles_.shape().channels),
             filters = static_cast<size_t>(tiles_.shape().filters), rows = static_cast<size_t>(group.rows);
  for (size_t i = 0; i < static_cast<size_t>(group.kernels); ++i)
    kernels::multiply({channels, filters, rows}, {input + i * rows * channels, channels, true},
                      {gradient + i * rows * filters, filters, false}, sum + i * channels * filters, filters,
                      add);
  return {};
}

base::Status WideGradient::add_up(const float* x, const float* y, int64_t begin, int64_t end,
                                  float* sum) const {
  const int64_t channels = tiles_.shape().channels, filters = tiles_.shape().filters,
                rows = tiles_.planes() * block_;
  const Scratch input(static_cast<size_t>(rows * channels) * sizeof(float)),
      gradient(static_cast<size_t>(rows * filters) * sizeof(float));
  for (int64_t first = begin; first < end; first += block_) {
    transform(x, y, first, input.floats(), gradient.floats());
    SLUICE_OK(parallel_for_status(tasks_.size(), [&](size_t i) {
      const Task& task = tasks_[i];
      const Group& group = groups_[task.group];
      const int64_t row = task.plane * block_;
      return multiply(group, first > begin, input.floats() + row * channels,
                      gradient.floats() + row * filters, sum + task.kernel * channels * filters);
    }));
  }
  return {};
}

base::Status WideGradient::run(const float* x, const float* y, float* w) const {
  const WinogradShape& shape = tiles_.shape();
  const auto channels = static_cast<size_t>(shape.channels), filters = static_cast<size_t>(shape.filters);
  const size_t sum_floats = kKernelPlanes * channels * filters;
  const Scratch sum(static_cast<size_t>(parts_) * sum_floats * sizeof(float));
  const std::vector<float*> sums =
      sum_buffers(static_cast<size_t>(parts_), sum_floats, nullptr, sum.floats());
  SLUICE_OK(parallel_for_status(sums.size(), [&](size_t i) {
    const int64_t begin = static_cast<int64_t>(i) * tiles_of_part_;
    return add_up(x, y, begin, std::min(begin + tiles_of_part_, tiles_.count()), sums[i]);
  }));
  add_partial_sums(sums, sum_floats);
  for_pieces(channels, filters, kPlainWidth, [&](const Piece& piece, float* planes) {
    each_row(piece, all_sums_, 0, [&](size_t row, size_t place) {
      std::memcpy(planes + row * kPlainWidth, sum.floats() + place, piece.filters * sizeof(float));
    });
    for (size_t i = 0; i < piece.channels; ++i)
      kernel_gradient_tile(shape.tiling, planes + i * kPlainWidth, piece.filters,
                           kPieceChannels * kPlainWidth, 9 * channels,
                           w + 9 * (piece.filter * channels + piece.channel + i));
  });
  return {};
}

}  // namespace

std::unique_ptr<Winograd> make_winograd(const WinogradShape& shape) { return WideWinograd::make(shape); }

std::unique_ptr<Winograd> make_winograd_gradient(const WinogradShape& shape) {
  return WideGradient::make(shape);
}

}  // namespace sluice::kernels
