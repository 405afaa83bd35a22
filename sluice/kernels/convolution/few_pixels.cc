#include "sluice/kernels/convolution/few_pixels.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/gemm/partial_sums.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Convolution = stablehlo::ConvolutionCall;

// With more the matrix is too large for what it saves.
constexpr size_t kMostBlocks = 16;
// With fewer pictures a matrix that is larger than the weights takes longer to fill than the product saves
// (measured).
constexpr int64_t kFewestPictures = 32;
// Numbers of the matrix that a thread works on before it looks for the next ones.
constexpr size_t kNumbersOfPart = 32 << 10;

size_t spatial_size(const stablehlo::Dims& dims) {
  return static_cast<size_t>(std::accumulate(dims.begin() + 2, dims.end(), int64_t{1}, std::multiplies<>()));
}

// The number of the window's element that connects two pixels, or as many as there are elements.
size_t element_between(const Convolution& c, size_t x_pixel, size_t y_pixel) {
  auto x = static_cast<int64_t>(x_pixel), y = static_cast<int64_t>(y_pixel);
  int64_t element = 0, step = 1;
  for (size_t d = c.stride.size(); d-- > 0;) {
    const int64_t in = c.x[d + 2], out = c.y[d + 2], window = c.w[d + 2];
    const int64_t distance = x % in + c.padding[d] - y % out * c.stride[d];
    if (distance < 0 || distance % c.dilation[d] != 0 || distance / c.dilation[d] >= window)
      return spatial_size(c.w);
    element += distance / c.dilation[d] * step;
    step *= window, x /= in, y /= out;
  }
  return static_cast<size_t>(element);
}

}  // namespace

std::unique_ptr<FewPixelsConvolution> FewPixelsConvolution::make(const Convolution& c) {
  auto made = std::make_unique<FewPixelsConvolution>();
  if (c.groups != 1 || !made->list_blocks(c)) return nullptr;
  made->kind_ = c.kind;
  made->channels_ = static_cast<size_t>(c.w[1]);
  made->filters_ = static_cast<size_t>(c.w[0]);
  made->product_ = find_product(made->as_product(c.x[0]));
  return made->product_ == nullptr ? nullptr : std::move(made);
}

// False where this is no way to do it.
bool FewPixelsConvolution::list_blocks(const Convolution& c) {
  x_pixels_ = spatial_size(c.x);
  y_pixels_ = spatial_size(c.y);
  elements_ = spatial_size(c.w);
  const size_t count = x_pixels_ * y_pixels_;
  if (x_pixels_ > kMostBlocks || y_pixels_ > kMostBlocks || count > kMostBlocks) return false;
  if (c.kind != Kind::kWeights && count > elements_ && c.x[0] < kFewestPictures) return false;
  blocks_of_.resize(elements_);
  for (size_t y = 0; y < y_pixels_; ++y)
    for (size_t x = 0; x < x_pixels_; ++x) {
      const size_t element = element_between(c, x, y);
      (element == elements_ ? zeros_ : blocks_of_[element]).push_back(y * x_pixels_ + x);
    }
  return 4 * zeros_.size() <= count;
}

// In the order of its operands and result: (x, matrix) → y, (y, matrix) → x, (y, x) → matrix.
stablehlo::ProductCall FewPixelsConvolution::as_product(int64_t pictures) const {
  const auto in = static_cast<int64_t>(x_pixels_ * channels_),
             out = static_cast<int64_t>(y_pixels_ * filters_);
  if (kind_ == Kind::kForward) return {.m = pictures, .k = in, .n = out, .transposed_b = true};
  if (kind_ == Kind::kData) return {.m = pictures, .k = out, .n = in};
  return {.m = out, .k = pictures, .n = in, .transposed_a = true};
}

size_t FewPixelsConvolution::place(size_t block) const {
  return (block / x_pixels_ * filters_ * x_pixels_ + block % x_pixels_) * channels_;
}

template <typename Body>
void FewPixelsConvolution::for_filters(const Body& body) const {
  const size_t part = std::max(size_t{1}, kNumbersOfPart / (x_pixels_ * y_pixels_ * channels_));
  parallel_for((filters_ + part - 1) / part, [&](size_t i) {
    for (size_t filter = i * part; filter < std::min(filters_, (i + 1) * part); ++filter) body(filter);
  });
}

void FewPixelsConvolution::fill_matrix(const float* w, float* matrix) const {
  for_filters([&](size_t filter) {
    float* const rows = matrix + filter * x_pixels_ * channels_;
    const float* const from = w + filter * channels_ * elements_;
    const size_t bytes = channels_ * sizeof(float);
    for (size_t element = 0; element < elements_; ++element) {
      const std::vector<size_t>& blocks = blocks_of_[element];
      if (blocks.empty()) continue;
      float* const first = rows + place(blocks[0]);
      for (size_t i = 0; i < channels_; ++i) first[i] = from[i * elements_ + element];
      for (size_t i = 1; i < blocks.size(); ++i) std::memcpy(rows + place(blocks[i]), first, bytes);
    }
    for (const size_t block : zeros_) std::memset(rows + place(block), 0, bytes);
  });
}

void FewPixelsConvolution::add_blocks(float* matrix, float* w) const {
  const bool idle =
      std::any_of(blocks_of_.begin(), blocks_of_.end(), [](const auto& b) { return b.empty(); });
  for_filters([&](size_t filter) {
    float* const rows = matrix + filter * x_pixels_ * channels_;
    float* const to = w + filter * channels_ * elements_;
    if (idle) std::memset(to, 0, channels_ * elements_ * sizeof(float));
    for (size_t element = 0; element < elements_; ++element) {
      const std::vector<size_t>& blocks = blocks_of_[element];
      if (blocks.empty()) continue;
      float* const sum = rows + place(blocks[0]);
      for (size_t i = 1; i < blocks.size(); ++i) add_floats(sum, rows + place(blocks[i]), channels_);
      for (size_t i = 0; i < channels_; ++i) to[i * elements_ + element] = sum[i];
    }
  });
}

base::Status FewPixelsConvolution::run(float* x, float* w, float* y) const {
  const Scratch scratch(x_pixels_ * y_pixels_ * channels_ * filters_ * sizeof(float));
  if (kind_ == Kind::kWeights) {
    SLUICE_OK(product_->run(y, x, scratch.data()));
    add_blocks(scratch.floats(), w);
    return {};
  }
  fill_matrix(w, scratch.floats());
  return kind_ == Kind::kForward ? product_->run(x, scratch.data(), y) : product_->run(y, scratch.data(), x);
}

}  // namespace sluice::kernels
