// The pixels that a tap of a channel sees, for all pixels of y, are a row of a matrix, "columns": [channels *
// taps, pixels]. With w as it is in memory, [filters, channels * taps], and y [filters, pixels],
//   y = w columns, columns' gradient = w^T (y's gradient), w's gradient = (y's gradient) columns^T,
// and a line of x's gradient adds up the columns' gradients for it. The matrix is made for some images, or
// for some lines of an image, at a time, so that it stays in the cache. Each line of x is written once for
// each of these parts that sees it: if x is large and y small, as in a transposed convolution, mostly once.
#include "sluice/kernels/convolution/planes.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/convolution/axes.h"
#include "sluice/kernels/convolution/few_pixels.h"
#include "sluice/kernels/convolution/lines.h"
#include "sluice/kernels/convolution/parts.h"
#include "sluice/kernels/gemm/gemm.h"
#include "sluice/kernels/gemm/partial_sums.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Convolution = stablehlo::ConvolutionCall;
using Kind = Convolution::Kind;

// The lines of y, along all axes but the first, that are computed at once: all lines of several images, or
// some lines of one.
struct Lines {
  size_t image, images, line, lines;
};

// Images with at least this number of pixels are done one at a time: their y is already a matrix in memory.
constexpr size_t kMinPixels = 64;

// The least rows of a piece that is made to occupy the threads: products of fewer rows waste the processor.
constexpr size_t kRowsOfPiece = 32;

class Planes : public ConvolutionKernel {
 public:
  explicit Planes(const Convolution& c)
      : kind_(c.kind),
        axes_(axes_of(c)),
        images_(static_cast<size_t>(c.x[0])),
        groups_(static_cast<size_t>(c.groups)),
        pieces_(pieces_of(c)),
        channels_(static_cast<size_t>(c.w[1]) / pieces_),
        filters_(static_cast<size_t>(c.w[0] / c.groups)),
        taps_(spatial_size(c.w)),
        rows_(channels_ * taps_),
        line_(axes_[1].out * axes_[2].out),
        padded_rows_(std::max(rows_, kMinExtent)),
        padded_filters_(std::max(filters_, kMinExtent)) {
    const size_t lines = std::max(size_t{1}, kFloatsAtOnce / (line_ * rows_)), of_image = axes_[0].out;
    lines_at_once_ = std::min(lines, of_image);
    x_is_matrix_ = is_matrix(c);
    if (x_is_matrix_) lines_at_once_ = of_image;
    if (!x_is_matrix_ && plane_of_y() < kMinPixels)
      images_at_once_ = std::clamp(lines / of_image, size_t{1}, images_);
    all_sets_ = (images_ + images_at_once_ - 1) / images_at_once_;
    sets_ = kind_ == Kind::kWeights ? std::min(all_sets_, sets_of_sum()) : all_sets_;
    one_thread_each_ = sets_ * groups_ * pieces_ >= parts_of_threads();
    full_ = find_gemm(product(pixels_of({0, images_at_once_, 0, lines_at_once_})));
    last_ = find_gemm(product(pixels_of(lines_at_once_ < of_image
                                            ? Lines{0, 1, 0, (of_image - 1) % lines_at_once_ + 1}
                                            : Lines{0, (images_ - 1) % images_at_once_ + 1, 0, of_image})));
    for (size_t d = 0; d < axes_.size(); ++d)
      for (size_t k = 0; k < axes_[d].kernel; ++k) seen_[d].push_back(seen_by(axes_[d], k));
    if (kind_ == Kind::kData) sources_ = sources_of(axes_);
  }

  bool is_fast() const { return full_ != nullptr && last_ != nullptr; }

  base::Status run(const ConvolutionTensors& at) const override {
    auto *x = static_cast<float*>(at.x), *w = static_cast<float*>(at.w), *y = static_cast<float*>(at.y);
    const size_t pieces = groups_ * pieces_, of_piece = padded_filters_ * padded_rows_;
    const bool packs = pieces_ > 1 || of_piece != filters_ * rows_;
    // A weight's gradient is a sum over all images: each set makes its own sum.
    const bool sums_up = kind_ == Kind::kWeights;
    const size_t images = (all_sets_ + sets_ - 1) / sets_ * images_at_once_;
    const size_t scratch = (sums_up ? sets_ : 1) * pieces * of_piece;
    const Scratch packed(packs || (sums_up && sets_ > 1) ? scratch * sizeof(float) : 0);
    const std::vector<float*> weights =
        sum_buffers(sums_up ? sets_ : 1, pieces * of_piece, packs ? nullptr : w, packed.floats());
    if (!sums_up && packs) pack(w, weights[0], /*back=*/false);
    const auto run_set = [&](size_t i) -> base::Status {
      const size_t set = i / pieces, first = std::min(images_, set * images), piece = i % pieces;
      float* const of_set = weights[sums_up ? set : 0] + piece * of_piece;
      if (sums_up) fill_zeros(of_set, of_piece);
      return run_images(first, std::min(images_, first + images), piece, x, of_set, y, bias_of(at, piece));
    };
    if (one_thread_each_) {
      SLUICE_OK(parallel_for_status(sets_ * pieces, run_set));
    } else {
      for (size_t i = 0; i < sets_ * pieces; ++i) SLUICE_OK(run_set(i));
    }
    if (!sums_up) return {};
    add_partial_sums(weights, pieces * of_piece);
    if (packs) pack(weights[0], w, /*back=*/true);
    return {};
  }

 private:
  // The places [begin, end) of y at which a tap sees a place of x.
  struct Seen {
    size_t begin, end;
  };
  static Seen seen_by(const Axis& axis, size_t k) {
    Seen seen{0, axis.out};
    while (seen.begin < seen.end && axis.place(seen.begin, k) >= axis.in) ++seen.begin;
    while (seen.end > seen.begin && axis.place(seen.end - 1, k) >= axis.in) --seen.end;
    return seen;
  }

  // Returns the number of sets of images for a weight's gradient: with the pieces, enough for all threads,
  // but so few that their sums stay smaller than the activations and the matrix.
  size_t sets_of_sum() const {
    const size_t pieces = groups_ * pieces_, wanted = parts_of_threads();
    const size_t of_image = pieces * channels_ * plane_of_x() + groups_ * filters_ * plane_of_y() +
                            (x_is_matrix_ ? 0 : pieces * rows_ * plane_of_y());
    const size_t max_sets = images_ * of_image / (8 * pieces * padded_filters_ * padded_rows_);
    return std::max(size_t{1}, std::min(max_sets, (wanted + pieces - 1) / pieces));
  }

  // Returns a number of parts with which no thread waits long for another.
  static size_t parts_of_threads() { return static_cast<size_t>(2 * threads_of_a_call()); }

  // Returns the number of equal pieces of a group's channels, each treated as a group with the same y, if the
  // matrix of a line would not stay in the cache. (The forward pass would have to add the pieces up.) A
  // weight's gradient is also divided if there are too few images and groups for all threads, which otherwise
  // meet several times for each image (measured: 1.4 to 2.7 times as long).
  static size_t pieces_of(const Convolution& c) {
    const auto channels = static_cast<size_t>(c.w[1]), others = static_cast<size_t>(c.x[0] * c.groups);
    const size_t taps = spatial_size(c.w), of_image = taps * spatial_size(c.y),
                 lines = c.y.size() > 3 ? static_cast<size_t>(c.y[2]) : 1;
    const auto first = [&](const auto& is_small_enough) {
      size_t pieces = 1;
      while (pieces < channels && (channels % pieces != 0 || !is_small_enough(pieces))) ++pieces;
      return pieces;
    };
    if (c.kind == Kind::kForward) return 1;
    if (channels * of_image / lines > kFloatsAtOnce)
      return first([&](size_t pieces) { return channels / pieces * of_image <= kFloatsAtOnce; });
    if (c.kind == Kind::kData || taps == 1 || threads_of_a_call() == 1) return 1;
    const size_t pieces = first([&](size_t pieces) { return others * pieces >= parts_of_threads(); });
    return others * pieces >= parts_of_threads() && channels / pieces * taps >= kRowsOfPiece ? pieces : 1;
  }

  // Returns whether each image of x, or its gradient, is the matrix itself: one tap sees every pixel, and
  // there are enough pixels.
  bool is_matrix(const Convolution& c) const {
    return taps_ == 1 && std::ranges::all_of(c.stride, [](int64_t s) { return s == 1; }) &&
           plane_of_x() == plane_of_y() && padded_rows_ == rows_ && plane_of_y() >= kMinPixels;
  }

  size_t pixels(const Lines& some) const { return some.images * some.lines * line_; }
  size_t pixels_of(const Lines& some) const { return std::max(pixels(some), kMinExtent); }
  size_t plane_of_x() const { return axes_[0].in * axes_[1].in * axes_[2].in; }
  size_t plane_of_y() const { return axes_[0].out * line_; }

  stablehlo::ProductCall product(size_t some_pixels) const {
    const auto rows = static_cast<int64_t>(padded_rows_), filters = static_cast<int64_t>(padded_filters_),
               pixels = static_cast<int64_t>(some_pixels);
    if (kind_ == Kind::kForward) return {.m = filters, .k = rows, .n = pixels};
    if (kind_ == Kind::kData) return {.m = rows, .k = filters, .n = pixels, .transposed_a = true};
    return {.m = filters, .k = pixels, .n = rows, .transposed_b = true};
  }

  // Reorders [groups, filters, pieces, rows] to the products' [groups, pieces, filters, rows] with their
  // zeros, or back.
  void pack(const float* from, float* to, bool back) const {
    if (!back) fill_zeros(to, groups_ * pieces_ * padded_filters_ * padded_rows_);
    for (size_t i = 0; i < groups_ * filters_ * pieces_; ++i) {
      const size_t group = i / pieces_ / filters_, filter = i / pieces_ % filters_;
      const size_t there = ((group * pieces_ + i % pieces_) * padded_filters_ + filter) * padded_rows_;
      std::memcpy(to + (back ? i * rows_ : there), from + (back ? there : i * rows_), rows_ * sizeof(float));
    }
  }

  // Returns a piece's part of the bias, if there is a bias.
  const float* bias_of(const ConvolutionTensors& at, size_t piece) const {
    if (at.bias == nullptr) return nullptr;
    return at.bias + (kind_ == Kind::kData ? piece * channels_ : piece / pieces_ * filters_);
  }

  base::Status run_images(size_t begin, size_t end, size_t piece, float* x, float* w, float* y,
                          const float* bias) const {
    const size_t pixels = pixels_of({0, images_at_once_, 0, lines_at_once_});
    float *columns, *packed, *sum;
    const ScratchArrays memory({{columns, x_is_matrix_ ? 0 : padded_rows_ * pixels},
                                {packed, padded_filters_ * pixels},
                                {sum, kind_ == Kind::kWeights ? padded_filters_ * padded_rows_ : 0}});
    for (size_t image = begin; image < end; image += images_at_once_)
      for (size_t line = 0; line < axes_[0].out; line += lines_at_once_) {
        const Lines some{image, std::min(images_at_once_, end - image), line,
                         std::min(lines_at_once_, axes_[0].out - line)};
        SLUICE_OK(run_lines(some, x + piece * channels_ * plane_of_x(), w,
                            y + piece / pieces_ * filters_ * plane_of_y(), bias, columns, packed, sum));
      }
    return {};
  }

  // Computes some lines; x and y are a piece's part of the first image.
  base::Status run_lines(const Lines& some, float* x, float* w, float* y, const float* bias, float* columns,
                         float* packed, float* sum) const {
    const bool is_full = some.images == images_at_once_ && some.lines == lines_at_once_;
    const Gemm& gemm = *(is_full ? full_ : last_);
    const bool packs = some.images > 1 || some.lines != axes_[0].out || padded_filters_ != filters_ ||
                       pixels(some) < kMinExtent;
    float* const y_here = packs ? packed : y + some.image * groups_ * filters_ * plane_of_y();
    if (x_is_matrix_)
      columns = x + plane_at(some.image, 0);
    else if (kind_ != Kind::kData)
      gather(some, x, columns);
    // Each row of the product belongs to one channel.
    Epilogue add_bias;
    if (bias != nullptr)
      add_bias = [bias](const Piece& piece) {
        for (size_t row = 0; row < piece.rows; ++row)
          add(bias[piece.row + row], piece.columns, piece.first + row * piece.step);
      };
    if (kind_ == Kind::kForward) {
      SLUICE_OK(gemm.run(w, columns, y_here, packs ? Epilogue() : add_bias));
      if (packs) copy_to_y(some, packed, bias, y);
      return {};
    }
    if (packs) copy_y(some, y, packed);
    if (kind_ == Kind::kData) {
      SLUICE_OK(gemm.run(w, y_here, columns, x_is_matrix_ ? add_bias : Epilogue()));
      if (!x_is_matrix_) scatter(some, columns, bias, x);
      return {};
    }
    SLUICE_OK(gemm.run(y_here, columns, sum));
    parallel_pieces(padded_filters_ * padded_rows_, kFloatsOfPart,
                    [&](size_t first, size_t count) { add_floats(w + first, sum + first, count); });
    return {};
  }

  // Calls body(filter, its lines of an image in a matrix of their own, its lines in y).
  template <typename Body>
  void each_filter(const Lines& some, const Body& body) const {
    const size_t step = pixels_of(some), part = some.lines * line_;
    parallel_pieces(
        filters_ * some.images, std::max(size_t{1}, kFloatsOfPart / part), [&](size_t first, size_t count) {
          for (size_t i = first; i < first + count; ++i) {
            const size_t filter = i / some.images, image = i % some.images;
            body(filter, filter * step + image * part,
                 ((some.image + image) * groups_ * filters_ + filter) * plane_of_y() + some.line * line_);
          }
        });
  }
  void copy_y(const Lines& some, const float* y, float* packed) const {
    const size_t step = pixels_of(some), part = some.lines * line_;
    if (padded_filters_ != filters_ || step != pixels(some)) fill_zeros(packed, padded_filters_ * step);
    each_filter(some, [&](size_t, size_t here, size_t there) {
      std::memcpy(packed + here, y + there, part * sizeof(float));
    });
  }
  void copy_to_y(const Lines& some, const float* packed, const float* bias, float* y) const {
    const size_t part = some.lines * line_;
    each_filter(some, [&](size_t filter, size_t here, size_t there) {
      std::memcpy(y + there, packed + here, part * sizeof(float));
      if (bias != nullptr) add(bias[filter], part, y + there);
    });
  }

  // Fills the matrix for taps that see the same lines of x together, so that these lines stay in the cache.
  void gather(const Lines& some, const float* x, float* columns) const {
    const size_t step = pixels_of(some), part = some.lines * line_, at_once = axes_[2].kernel;
    if (padded_rows_ != rows_) fill_zeros(columns + rows_ * step, (padded_rows_ - rows_) * step);
    parallel_pieces(rows_ / at_once * some.images, std::max(size_t{1}, kFloatsOfPart / (part * at_once)),
                    [&](size_t first, size_t count) {
                      for (size_t i = first; i < first + count; ++i) {
                        const size_t row = i / some.images * at_once, image = i % some.images;
                        gather_rows(some, x + plane_at(some.image + image, row / taps_),
                                    row % taps_ / at_once, columns + row * step + image * part, step);
                        if (step == pixels(some)) continue;
                        for (size_t k = 0; k < at_once; ++k)
                          fill_zeros(columns + (row + k) * step + pixels(some), step - pixels(some));
                      }
                    });
  }

  size_t plane_at(size_t image, size_t channel) const {
    return (image * groups_ * pieces_ * channels_ + channel) * plane_of_x();
  }

  // Copies the pixels that the taps of a line of the window see on these lines, to rows that are `row` floats
  // apart; zeros where the window is outside of the image.
  void gather_rows(const Lines& some, const float* plane, size_t taps, float* to, size_t row) const {
    const size_t k0 = taps / axes_[1].kernel, k1 = taps % axes_[1].kernel;
    const Axis& last = axes_[2];
    for (size_t o0 = some.line; o0 < some.line + some.lines; ++o0)
      for (size_t o1 = 0; o1 < axes_[1].out; ++o1, to += last.out) {
        const size_t i0 = axes_[0].place(o0, k0), i1 = axes_[1].place(o1, k1);
        const bool is_outside = i0 >= axes_[0].in || i1 >= axes_[1].in;
        const float* const line = is_outside ? nullptr : plane + (i0 * axes_[1].in + i1) * last.in;
        for (size_t k2 = 0; k2 < last.kernel; ++k2) gather_line(line, k2, to + k2 * row);
      }
  }

  void gather_line(const float* line, size_t k2, float* to) const {
    const Axis& last = axes_[2];
    const auto [begin, end] = seen_[2][k2];
    if (line == nullptr || begin == end) return fill_zeros(to, last.out);
    const float* const from = line + last.place(begin, k2);
    fill_zeros(to, begin);
    if (last.stride == 1)
      std::memcpy(to + begin, from, (end - begin) * sizeof(float));
    else
      copy_apart(from, static_cast<size_t>(last.stride), end - begin, to + begin);
    fill_zeros(to + end, last.out - end);
  }

  // A line of x along all axes but the first. is_new: these lines of y are the first to see it, or none sees
  // it.
  struct LineOfX {
    size_t i0;
    bool is_new;
  };
  std::vector<LineOfX> lines_of_x(const Lines& some) const {
    std::vector<LineOfX> found;
    for (size_t i0 = 0; i0 < axes_[0].in; ++i0) {
      const auto& sources = sources_[0][i0];
      const bool is_new = sources.empty() ? some.line == 0 : sources.front().out - some.line < some.lines;
      if (is_new || std::any_of(sources.begin(), sources.end(),
                                [&](const Source& source) { return source.out - some.line < some.lines; }))
        found.push_back({i0, is_new});
    }
    return found;
  }

  // Adds the columns to their lines of x; one thread adds to each line, in the matrix's order. Lines begin
  // with the channel's bias or, without one, with 0.
  void scatter(const Lines& some, const float* columns, const float* bias, float* x) const {
    const std::vector<LineOfX> lines = lines_of_x(some);
    const size_t line = axes_[1].in * axes_[2].in;
    parallel_pieces(
        some.images * channels_ * lines.size(), std::max(size_t{1}, kFloatsOfPart / line),
        [&](size_t first, size_t count) {
          for (size_t i = first; i < first + count; ++i) {
            const size_t channel = i / lines.size() % channels_, image = i / lines.size() / channels_;
            const auto [i0, is_new] = lines[i % lines.size()];
            const size_t step = pixels_of(some);
            float* const to = x + plane_at(some.image + image, channel) + i0 * line;
            if (is_new) fill(bias == nullptr ? 0 : bias[channel], line, to);
            scatter_line(some, i0, columns + channel * taps_ * step + image * some.lines * line_, step, to);
          }
        });
  }

  // columns: the image's part of the channel's first row; the next row is `step` floats away.
  void scatter_line(const Lines& some, size_t i0, const float* columns, size_t step, float* to) const {
    const Axis& last = axes_[2];
    for (size_t i1 = 0; i1 < axes_[1].in; ++i1, to += last.in) {
      for (const auto& [k0, o0] : sources_[0][i0]) {
        if (o0 - some.line >= some.lines) continue;
        for (const auto& [k1, o1] : sources_[1][i1]) {
          const float* const row = columns + (k0 * axes_[1].kernel + k1) * last.kernel * step +
                                   ((o0 - some.line) * axes_[1].out + o1) * last.out;
          for (size_t k2 = 0; k2 < last.kernel; ++k2) {
            const auto [begin, end] = seen_[2][k2];
            if (begin == end) continue;
            float* const there = to + last.place(begin, k2);
            const float* const from = row + k2 * step + begin;
            if (last.stride == 1)
              add_floats(there, from, end - begin);
            else
              add_apart(from, end - begin, static_cast<size_t>(last.stride), there);
          }
        }
      }
    }
  }

  Kind kind_;
  Axes axes_;
  size_t images_, groups_, pieces_;
  size_t channels_, filters_;  // of a piece, of a group
  size_t taps_, rows_, line_;
  size_t padded_rows_, padded_filters_;
  size_t images_at_once_ = 1, lines_at_once_ = 1;
  size_t all_sets_ = 1, sets_ = 1;  // of images: sets that are done at once, sets with a sum each
  bool x_is_matrix_ = false;
  bool one_thread_each_ = false;  // one thread for each set and piece, if there are enough of them
  const Gemm *full_ = nullptr, *last_ = nullptr;
  std::array<std::vector<Seen>, 3> seen_;  // [axis][tap]
  Sources sources_;
};

}  // namespace

std::unique_ptr<ConvolutionKernel> make_planes(const Convolution& c) {
  auto kernel = std::make_unique<Planes>(c);
  return kernel->is_fast() ? std::move(kernel) : nullptr;
}

}  // namespace sluice::kernels
