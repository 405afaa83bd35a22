#include "sluice/kernels/convolution/pointwise.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/gemm/gemm.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Convolution = stablehlo::ConvolutionCall;
using Kind = Convolution::Kind;

// A row of a matrix is one pixel with all its channels. With a stride, the rows of x that the windows touch
// are gathered first, or scattered afterwards.
class Pointwise : public ConvolutionKernel {
 public:
  explicit Pointwise(const Convolution& c)
      : kind_(c.kind), channels_(static_cast<size_t>(c.w[1])), gemm_(find_gemm(pointwise_gemm(c))) {
    list_rows(c);
  }

  base::Status run(const ConvolutionTensors& at) const override {
    const Scratch scratch(rows_.size() * row_bytes());
    void* const x = rows_.empty() ? at.x : scratch.data();
    auto* const all = static_cast<float*>(at.x);
    if (kind_ == Kind::kData) {
      SLUICE_OK(gemm_->run(at.y, at.w, x));
      if (rows_.empty()) return {};
      std::memset(all, 0, x_rows_ * row_bytes());
      copy_rows([&](size_t i) {
        return std::pair{all + rows_[i] * channels_, scratch.floats() + i * channels_};
      });
      return {};
    }
    copy_rows([&](size_t i) {
      return std::pair{scratch.floats() + i * channels_, all + rows_[i] * channels_};
    });
    return kind_ == Kind::kForward ? gemm_->run(x, at.w, at.y) : gemm_->run(at.y, x, at.w);
  }

 private:
  // Lists the rows of x that the windows touch, in their order; none if the windows touch all rows.
  void list_rows(const Convolution& c) {
    for (size_t d = 0; d < c.x.size(); ++d) x_rows_ *= d == 1 ? 1 : static_cast<size_t>(c.x[d]);
    if (std::ranges::all_of(c.stride, [](int64_t step) { return step == 1; })) return;
    rows_ = {0};
    for (size_t d = 0; d < c.x.size(); ++d) {
      if (d == 1) continue;
      const auto extent = static_cast<size_t>(c.x[d]), count = static_cast<size_t>(c.y[d]);
      const size_t step = d == 0 ? 1 : static_cast<size_t>(c.stride[d - 2]);
      std::vector<size_t> finer;
      finer.reserve(rows_.size() * count);
      for (const size_t row : rows_)
        for (size_t i = 0; i < count; ++i) finer.push_back(row * extent + i * step);
      rows_ = std::move(finer);
    }
  }

  size_t row_bytes() const { return channels_ * sizeof(float); }

  // Copies rows: to_and_from(i) returns the destination of row i, and its source.
  template <typename Row>
  void copy_rows(const Row& to_and_from) const {
    parallel_for((rows_.size() + kRowsOfPart - 1) / kRowsOfPart, [&](size_t part) {
      const size_t end = std::min(rows_.size(), (part + 1) * kRowsOfPart);
      for (size_t i = part * kRowsOfPart; i < end; ++i) {
        const auto [to, from] = to_and_from(i);
        std::memcpy(to, from, row_bytes());
      }
    });
  }

  static constexpr size_t kRowsOfPart = 64;

  Kind kind_;
  size_t channels_, x_rows_ = 1;
  std::vector<size_t> rows_;
  const Gemm* gemm_;
};

}  // namespace

stablehlo::ProductCall pointwise_gemm(const Convolution& c) {
  const int64_t in = c.w[1], out = c.w[0];
  const int64_t pixels = std::accumulate(c.y.begin() + 2, c.y.end(), c.y[0], std::multiplies<>());
  if (c.kind == Kind::kForward) return {.m = pixels, .k = in, .n = out, .transposed_b = true};
  if (c.kind == Kind::kData) return {.m = pixels, .k = out, .n = in};
  return {.m = out, .k = pixels, .n = in, .transposed_a = true};
}

std::unique_ptr<ConvolutionKernel> make_pointwise(const Convolution& c) {
  return std::make_unique<Pointwise>(c);
}

}  // namespace sluice::kernels
