// The pixels that a window sees at one pixel of y are a row of a matrix, "columns": [pixels, taps *
// channels]:
//   y = columns w^T, columns' gradient = (y's gradient) w, w's gradient = (y's gradient)^T columns,
// with w as [filters, taps * channels]. x's gradient adds up the columns' gradients for each pixel of x. The
// matrix is made for some lines of y at a time, so that it stays in the cache.
#include "sluice/kernels/convolution/columns.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/convolution/axes.h"
#include "sluice/kernels/convolution/few_pixels.h"
#include "sluice/kernels/convolution/parts.h"
#include "sluice/kernels/gemm/gemm.h"
#include "sluice/kernels/gemm/partial_sums.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Convolution = stablehlo::ConvolutionCall;
using Kind = Convolution::Kind;

// Some lines of y, which are its pixels along all axes but the first; the line's number is `image * out + o`.
struct Lines {
  size_t first, count;
};

class Columns : public ConvolutionKernel {
 public:
  explicit Columns(const Convolution& c)
      : kind_(c.kind),
        axes_(axes_of(c)),
        images_(static_cast<size_t>(c.x[0])),
        groups_(static_cast<size_t>(c.groups)),
        channels_(static_cast<size_t>(c.w[1])),
        filters_(static_cast<size_t>(c.w[0] / c.groups)),
        taps_(spatial_size(c.w)),
        row_(taps_ * channels_),
        columns_of_y_(std::max(filters_, kMinExtent)),
        pixels_of_line_(axes_[1].out * axes_[2].out) {
    lines_at_once_ = std::clamp(kFloatsAtOnce / (pixels_of_line_ * row_), size_t{1}, lines());
    full_ = find_gemm(product(lines_at_once_));
    packs_y_ = groups_ > 1 || columns_of_y_ != filters_ || pixels_of_line_ < kMinExtent;
    last_ = lines() % lines_at_once_ == 0 ? full_ : find_gemm(product(lines() % lines_at_once_));
    if (kind_ == Kind::kData) sources_ = sources_of(axes_);
  }

  bool is_fast() const { return full_ != nullptr && last_ != nullptr; }

  base::Status run(const ConvolutionTensors& at) const override {
    auto *x = static_cast<float*>(at.x), *w = static_cast<float*>(at.w), *y = static_cast<float*>(at.y);
    const size_t pixels = std::max(lines_at_once_ * pixels_of_line_, kMinExtent);
    const size_t weights = groups_ * columns_of_y_ * row_, columns = pixels * row_;
    const size_t packed = packs_y_ ? pixels * columns_of_y_ : 0;
    Buffers buffers{};
    const ScratchArrays memory({{buffers.weights, weights},
                                {buffers.sum, kind_ == Kind::kWeights ? columns_of_y_ * row_ : 0},
                                {buffers.columns, columns},
                                {buffers.y, packed}});
    if (kind_ == Kind::kWeights || columns_of_y_ != filters_) fill_zeros(buffers.weights, weights);
    if (kind_ != Kind::kWeights) reorder(w, buffers.weights, /*back=*/false);
    fill_zeros(buffers.y, packed);
    if (kind_ == Kind::kData) fill_zeros(x, images_ * pixels_of_x() * all_channels());
    for (size_t first = 0; first < lines(); first += lines_at_once_) {
      const Lines some{first, std::min(lines_at_once_, lines() - first)};
      for (size_t group = 0; group < groups_; ++group) SLUICE_OK(run_lines(some, group, x, y, buffers));
    }
    if (kind_ == Kind::kWeights) reorder(buffers.weights, w, /*back=*/true);
    return {};
  }

 private:
  struct Buffers {
    float *weights, *sum, *columns, *y;
  };
  size_t lines() const { return images_ * axes_[0].out; }
  size_t pixels_of_x() const { return axes_[0].in * axes_[1].in * axes_[2].in; }
  size_t all_channels() const { return groups_ * channels_; }

  stablehlo::ProductCall product(size_t some_lines) const {
    const auto pixels = static_cast<int64_t>(std::max(some_lines * pixels_of_line_, kMinExtent));
    const auto row = static_cast<int64_t>(row_), filters = static_cast<int64_t>(columns_of_y_);
    if (kind_ == Kind::kForward) return {.m = pixels, .k = row, .n = filters, .transposed_b = true};
    if (kind_ == Kind::kData) return {.m = pixels, .k = filters, .n = row};
    return {.m = filters, .k = pixels, .n = row, .transposed_a = true};
  }

  base::Status run_lines(const Lines& some, size_t group, float* x, float* y, const Buffers& at) const {
    const Gemm& gemm = *(some.count == lines_at_once_ ? full_ : last_);
    const size_t pixels = some.count * pixels_of_line_;
    float* const y_there = y + some.first * pixels_of_line_ * groups_ * filters_ + group * filters_;
    float* const y_here = packs_y_ ? at.y : y_there;
    if (pixels < kMinExtent) {
      fill_zeros(at.columns + pixels * row_, (kMinExtent - pixels) * row_);
      fill_zeros(at.y + pixels * columns_of_y_, (kMinExtent - pixels) * columns_of_y_);
    }
    float* const w = at.weights + group * columns_of_y_ * row_;
    if (kind_ == Kind::kForward) {
      gather(some, x + group * channels_, at.columns);
      SLUICE_OK(gemm.run(at.columns, w, y_here));
      if (packs_y_) copy_rows(y_here, columns_of_y_, y_there, groups_ * filters_, pixels);
      return {};
    }
    if (packs_y_) copy_rows(y_there, groups_ * filters_, y_here, columns_of_y_, pixels);
    if (kind_ == Kind::kData) {
      SLUICE_OK(gemm.run(y_here, w, at.columns));
      scatter(some, at.columns, x + group * channels_);
      return {};
    }
    gather(some, x + group * channels_, at.columns);
    SLUICE_OK(gemm.run(y_here, at.columns, at.sum));
    parallel_pieces(filters_ * row_, kFloatsOfPart,
                    [&](size_t first, size_t count) { add_floats(w + first, at.sum + first, count); });
    return {};
  }

  // Copies rows of `filters_` floats between memory with different steps from row to row.
  void copy_rows(const float* from, size_t from_step, float* to, size_t to_step, size_t rows) const {
    parallel_pieces(rows, std::max(size_t{1}, kFloatsOfPart / filters_), [&](size_t first, size_t count) {
      for (size_t i = first; i < first + count; ++i)
        std::memcpy(to + i * to_step, from + i * from_step, filters_ * sizeof(float));
    });
  }

  // Reorders [filters, channels, taps] to the products' [filters, taps, channels], or back.
  void reorder(const float* from, float* to, bool back) const {
    const size_t outer = back ? taps_ : channels_, inner = back ? channels_ : taps_;
    parallel_pieces(groups_ * filters_, std::max(size_t{1}, kFloatsOfPart / row_),
                    [&](size_t first, size_t count) {
                      for (size_t filter = first; filter < first + count; ++filter) {
                        const size_t here = filter / filters_ * columns_of_y_ + filter % filters_;
                        float* const row = to + (back ? filter : here) * row_;
                        const float* const of = from + (back ? here : filter) * row_;
                        for (size_t i = 0; i < outer; ++i)
                          for (size_t j = 0; j < inner; ++j) row[j * outer + i] = of[i * inner + j];
                      }
                    });
  }

  void gather(const Lines& some, const float* x, float* columns) const {
    parallel_pieces(some.count * pixels_of_line_, std::max(size_t{1}, kFloatsOfPart / row_),
                    [&](size_t first, size_t count) {
                      for (size_t i = first; i < first + count; ++i) {
                        const size_t line = some.first + i / pixels_of_line_, rest = i % pixels_of_line_;
                        gather_row(x + line / axes_[0].out * pixels_of_x() * all_channels(),
                                   line % axes_[0].out, rest / axes_[2].out, rest % axes_[2].out,
                                   columns + i * row_);
                      }
                    });
  }

  // Gathers one row of the matrix: zeros where the window is outside of the image.
  void gather_row(const float* image, size_t o0, size_t o1, size_t o2, float* to) const {
    const size_t last = axes_[2].kernel * channels_;
    for (size_t k0 = 0; k0 < axes_[0].kernel; ++k0) {
      const size_t i0 = axes_[0].place(o0, k0);
      for (size_t k1 = 0; k1 < axes_[1].kernel; ++k1, to += last) {
        const size_t i1 = axes_[1].place(o1, k1);
        if (i0 >= axes_[0].in || i1 >= axes_[1].in)
          std::memset(to, 0, last * sizeof(float));
        else
          gather_last(image + (i0 * axes_[1].in + i1) * axes_[2].in * all_channels(), o2, to);
      }
    }
  }

  void gather_last(const float* line, size_t o2, float* to) const {
    const Axis& axis = axes_[2];
    const size_t begin = axis.place(o2, 0);
    if (axis.dilation == 1 && groups_ == 1 && begin < axis.in && begin + axis.kernel <= axis.in) {
      std::memcpy(to, line + begin * channels_, axis.kernel * channels_ * sizeof(float));
      return;
    }
    for (size_t k = 0; k < axis.kernel; ++k, to += channels_) {
      const size_t i = axis.place(o2, k);
      if (i >= axis.in)
        std::memset(to, 0, channels_ * sizeof(float));
      else
        std::memcpy(to, line + i * all_channels(), channels_ * sizeof(float));
    }
  }

  // Returns the lines of x that windows on these lines of y see, by their numbers `image * in + i`.
  std::vector<size_t> lines_of_x(const Lines& some) const {
    std::vector<size_t> found;
    const size_t in = axes_[0].in, out = axes_[0].out;
    for (size_t image = some.first / out; image * out < some.first + some.count; ++image)
      for (size_t i = 0; i < in; ++i)
        if (std::any_of(sources_[0][i].begin(), sources_[0][i].end(), [&](const Source& source) {
              return image * out + source.out - some.first < some.count;
            }))
          found.push_back(image * in + i);
    return found;
  }

  // Adds the columns to their pixels of x; one thread adds to each pixel, in the matrix's order.
  void scatter(const Lines& some, const float* columns, float* x) const {
    const std::vector<size_t> there = lines_of_x(some);
    const size_t pixels = axes_[1].in * axes_[2].in;
    parallel_pieces(there.size() * pixels, std::max(size_t{1}, kFloatsOfPart / (channels_ * 8)),
                    [&](size_t first, size_t count) {
                      for (size_t i = first; i < first + count; ++i) {
                        const size_t line = there[i / pixels], rest = i % pixels;
                        add_pixel(some, line, rest / axes_[2].in, rest % axes_[2].in, columns,
                                  x + (line * pixels + rest) * all_channels());
                      }
                    });
  }

  void add_pixel(const Lines& some, size_t line, size_t i1, size_t i2, const float* columns,
                 float* to) const {
    const size_t image = line / axes_[0].in, i0 = line % axes_[0].in;
    for (const auto& [k0, o0] : sources_[0][i0]) {
      const size_t line_here = image * axes_[0].out + o0 - some.first;
      if (line_here >= some.count) continue;
      for (const auto& [k1, o1] : sources_[1][i1]) {
        const float* const row = columns + (line_here * axes_[1].out + o1) * axes_[2].out * row_;
        const size_t taps = (k0 * axes_[1].kernel + k1) * axes_[2].kernel;
        for (const auto& [k2, o2] : sources_[2][i2]) {
          const float* const from = row + o2 * row_ + (taps + k2) * channels_;
          for (size_t c = 0; c < channels_; ++c) to[c] += from[c];
        }
      }
    }
  }

  Kind kind_;
  Axes axes_;
  size_t images_, groups_, channels_, filters_;  // channels and filters: of a group
  size_t taps_, row_, columns_of_y_, pixels_of_line_, lines_at_once_ = 1;
  bool packs_y_ = false;  // copies y into a matrix of its own for the products
  const Gemm *full_ = nullptr, *last_ = nullptr;
  Sources sources_;
};

}  // namespace

std::unique_ptr<ConvolutionKernel> make_columns(const Convolution& c) {
  auto kernel = std::make_unique<Columns>(c);
  return kernel->is_fast() ? std::move(kernel) : nullptr;
}

}  // namespace sluice::kernels
