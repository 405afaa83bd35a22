// Each number of c is the dot product of a row of one side and a row of the other, both as they are in
// memory. Some rows of the side with many and all rows of the side with few are read together, with all their
// sums in registers.
#include "sluice/kernels/gemm/gemm_dots.h"

#include <algorithm>
#include <array>
#include <utility>

#include "sluice/kernels/lanes.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Product = stablehlo::ProductCall;

// With more rows, packing them for tiles costs less than reading them from the cache repeatedly.
constexpr size_t kMaxFew = 8;
// The floats of a row that are read at a time: with them, all of the few rows stay in the L2 cache.
constexpr size_t kFloatsAtOnce = 4096;
// Shorter rows do not pay for adding up the lanes of the sums.
constexpr int64_t kMinLength = 256;
// Multiplications of a thread's part.
constexpr size_t kWorkOfPart = size_t{1} << 19;

// Rows of `length` floats, `step` floats apart, from `many` and `few` on. The result of row i of `many` and
// row j of `few` is at c[i * c_many + j * c_few].
struct Dots {
  const float *many, *few;
  size_t step, length;
  float* c;
  size_t c_many, c_few;
  bool add;
};

template <typename L, size_t kRows, size_t kFew>
SLUICE_INLINE void multiply_rows(const Dots& dots, size_t row) {
  const auto [many, few, step, length, c, c_many, c_few, add] = dots;
  L sums[kRows][kFew] = {};
  const float* const first = many + row * step;
  size_t i = 0;
  for (; i + kFloatsOf<L> <= length; i += kFloatsOf<L>) {
    L of_few[kFew], of_many;
#pragma GCC unroll 8
    for (size_t j = 0; j < kFew; ++j) load(few + j * step + i, of_few[j]);
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      load(first + r * step + i, of_many);
#pragma GCC unroll 8
      for (size_t j = 0; j < kFew; ++j) sums[r][j] += of_many * of_few[j];
    }
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (size_t j = 0; j < kFew; ++j) {
      float lanes[kFloatsOf<L>];
      store(sums[r][j], lanes);
      for (size_t half = kFloatsOf<L> / 2; half > 0; half /= 2)
        for (size_t k = 0; k < half; ++k) lanes[k] += lanes[half + k];
      float sum = lanes[0];
      for (size_t k = i; k < length; ++k) sum += first[r * step + k] * few[j * step + k];
      float& to = c[(row + r) * c_many + j * c_few];
      to = add ? to + sum : sum;
    }
}

// Multiplies as many rows at once as there are registers for their sums.
template <typename L, size_t kFew>
SLUICE_INLINE void multiply_few(const Dots& dots, size_t first, size_t rows) {
  constexpr size_t kSums = sizeof(L) == sizeof(Lanes16) ? 16 : 8, kRows = kFew <= 4 ? kSums / 4 : kSums / 8;
  size_t row = first;
  for (; row + kRows <= first + rows; row += kRows) multiply_rows<L, kRows, kFew>(dots, row);
  for (; row < first + rows; ++row) multiply_rows<L, 1, kFew>(dots, row);
}
template <typename L, size_t kFew = kMaxFew>
SLUICE_INLINE void multiply_dots_by(const Dots& dots, size_t few, size_t first, size_t rows) {
  if constexpr (kFew > 1)
    if (few < kFew) return multiply_dots_by<L, kFew - 1>(dots, few, first, rows);
  multiply_few<L, kFew>(dots, first, rows);
}
SLUICE_BY_LANES(multiply_dots, (const Dots& dots, size_t few, size_t first, size_t rows),
                (dots, few, first, rows))

class DotGemm : public Gemm {
 public:
  explicit DotGemm(const Product& p)
      : rows_(static_cast<size_t>(p.m)),
        columns_(static_cast<size_t>(p.n)),
        length_(static_cast<size_t>(p.k)),
        few_is_b_(p.n <= p.m) {}

  using Gemm::run;
  base::Status run(void* a, void* b, void* c, const Epilogue& epilogue) const override {
    auto *many = static_cast<const float*>(a), *few = static_cast<const float*>(b);
    if (!few_is_b_) std::swap(many, few);
    const size_t many_rows = std::max(rows_, columns_), few_rows = std::min(rows_, columns_);
    const size_t part = std::max(size_t{4}, kWorkOfPart / (few_rows * length_) / 4 * 4);
    parallel_pieces(many_rows, part, [&](size_t first, size_t count) {
      for (size_t i = 0; i < length_; i += kFloatsAtOnce) {
        const Dots dots{many + i,
                        few + i,
                        length_,
                        std::min(kFloatsAtOnce, length_ - i),
                        static_cast<float*>(c),
                        few_is_b_ ? columns_ : 1,
                        few_is_b_ ? 1 : columns_,
                        i > 0};
        multiply_dots(dots, few_rows, first, count);
      }
    });
    run_epilogue(static_cast<float*>(c), rows_, columns_, epilogue);
    return {};
  }

 private:
  size_t rows_, columns_, length_;
  bool few_is_b_;
};

}  // namespace

std::unique_ptr<Gemm> make_dot_gemm(const Product& p) {
  const bool fits = p.batch == 1 && !p.transposed_a && p.transposed_b &&
                    std::min(p.m, p.n) <= static_cast<int64_t>(kMaxFew) && p.k >= kMinLength;
  return fits && has_lanes8() ? std::make_unique<DotGemm>(p) : nullptr;
}

}  // namespace sluice::kernels
