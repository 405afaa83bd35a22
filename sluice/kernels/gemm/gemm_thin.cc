// Products where one matrix is too long for the caches and another is small. The library reads the long ones
// when it needs them, and waits; here they are prefetched during earlier multiplications.
#include "sluice/kernels/gemm/gemm_thin.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/gemm/micro_kernel.h"
#include "sluice/kernels/gemm/partial_sums.h"
#include "sluice/kernels/lanes.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Product = stablehlo::ProductCall;

constexpr size_t kColumns = kMaxTileColumns;  // of a tile, with AVX-512

// The shapes for which the library is slower (measured): M, or K of a transposed a, is at least kMinLong; the
// other two extents make a matrix of at most kMaxFloats, and the smaller of them is in [kMinNarrow,
// kMaxNarrow].
constexpr int64_t kMinLong = 12 << 10, kMaxFloats = 64 << 10, kMinNarrow = 64, kMaxNarrow = 128;
// The block of the loop over K, without and with a transposed a (measured).
constexpr size_t kBlockK = 128, kTransposedBlockK = 64;
// The rows that stay in the caches while they meet all columns of b (measured).
constexpr size_t kBlockM = 10 * kTileRows;

bool fits_columns(int64_t count) { return count % static_cast<int64_t>(kColumns) == 0; }

// Prefetches share `number` of shares of `share` floats each; the last one may be smaller.
SLUICE_INLINE void prefetch_share(const float* first, size_t floats, size_t number, size_t share) {
  const size_t begin = std::min(floats, number * share);
  prefetch<false>(first + begin, std::min(share, floats - begin));
}

// c [m, n] = a [m, k] b [k, n] with very many rows.
class TallGemm : public Gemm {
 public:
  explicit TallGemm(const Product& p)
      : m_(static_cast<size_t>(p.m)),
        k_(static_cast<size_t>(p.k)),
        n_(static_cast<size_t>(p.n)),
        transposed_b_(p.transposed_b) {}

  using Gemm::run;
  base::Status run(void* a, void* b, void* c, const Epilogue& epilogue) const override {
    const Scratch packed(k_ * n_ * sizeof(float));
    pack(static_cast<const float*>(b), packed.floats());
    const size_t blocks = (m_ + kBlockM - 1) / kBlockM;
    const auto parts = static_cast<size_t>(parts_of_a_call(static_cast<int64_t>(blocks)));
    parallel_for(parts, [&](size_t part) {
      for (size_t block = blocks * part / parts; block < blocks * (part + 1) / parts; ++block) {
        const size_t row = block * kBlockM;
        run_block(row, static_cast<const float*>(a), packed.floats(), static_cast<float*>(c));
        if (epilogue)
          epilogue({row, std::min(kBlockM, m_ - row), 0, n_, static_cast<float*>(c) + row * n_, n_});
      }
    });
    return {};
  }

 private:
  // Packs b as [k / kBlockK, n / kColumns, kBlockK, kColumns].
  void pack(const float* b, float* to) const {
    parallel_for(n_ / kColumns, [&](size_t panel) {
      const size_t column = panel * kColumns;
      for (size_t first = 0; first < k_; first += kBlockK) {
        const size_t k = std::min(kBlockK, k_ - first);
        pack_columns(b + (transposed_b_ ? column * k_ + first : first * n_ + column), transposed_b_ ? k_ : n_,
                     transposed_b_, k, to + first * n_ + column * k);
      }
    });
  }

  void run_block(size_t first_row, const float* a, const float* packed, float* c) const {
    const size_t end = std::min(m_, first_row + kBlockM);
    for (size_t first = 0; first < k_; first += kBlockK) {
      const size_t k = std::min(kBlockK, k_ - first);
      for (size_t column = 0; column < n_; column += kColumns)
        for (size_t row = first_row; row < end; row += kTileRows) {
          if (column == 0)
            for (size_t i = row + 2 * kTileRows; i < std::min(m_, row + 3 * kTileRows); ++i)
              prefetch<false>(a + i * k_ + first, k);
          if (first == 0)
            for (size_t i = row + kTileRows; i < std::min(m_, row + 2 * kTileRows); ++i)
              prefetch<true>(c + i * n_ + column, kColumns);
          multiply_tiles({a + row * k_ + first, 0, k_, 1, packed + first * n_ + column * k, k,
                          c + row * n_ + column, n_, first > 0},
                         std::min(kTileRows, end - row));
        }
    }
  }

  size_t m_, k_, n_;
  bool transposed_b_;
};

// c [m, n] = aᵀ b with a [k, m] and b [k, n] with a very long K. Each part of K has a sum of its own. The
// narrower matrix is packed; if it is a, the product is computed as cᵀ.
class DeepGemm : public Gemm {
 public:
  explicit DeepGemm(const Product& p)
      : transposed_(makes_transpose(p)),
        m_(static_cast<size_t>(transposed_ ? p.n : p.m)),
        k_(static_cast<size_t>(p.k)),
        n_(static_cast<size_t>(transposed_ ? p.m : p.n)),
        parts_(static_cast<size_t>(std::min(p.k, parts_of_a_call((p.m + p.n) * p.k / (8 * p.m * p.n))))) {}

  // Returns whether b, or a, has a suitable number of columns.
  static bool fits(const Product& p) { return makes_transpose(p) || fits_columns(p.n); }

  using Gemm::run;
  base::Status run(void* a, void* b, void* c, const Epilogue& epilogue) const override {
    if (transposed_) std::swap(a, b);
    const size_t size = m_ * n_;
    const Scratch scratch((parts_ - (transposed_ ? 0 : 1)) * size * sizeof(float));
    const std::vector<float*> sums =
        sum_buffers(parts_, size, transposed_ ? nullptr : static_cast<float*>(c), scratch.floats());
    parallel_for(parts_, [&](size_t part) {
      run_part(k_ * part / parts_, k_ * (part + 1) / parts_, static_cast<const float*>(a),
               static_cast<const float*>(b), sums[part]);
    });
    add_partial_sums(sums, size);
    if (transposed_) write_transposed(sums[0], static_cast<float*>(c));
    run_epilogue(static_cast<float*>(c), transposed_ ? n_ : m_, transposed_ ? m_ : n_, epilogue);
    return {};
  }

 private:
  static bool makes_transpose(const Product& p) { return p.m < p.n && fits_columns(p.m); }

  // Transposes [m, n] to [n, m].
  void write_transposed(const float* from, float* to) const {
    parallel_for(n_ / kLineFloats, [&](size_t part) {
      const size_t first = part * kLineFloats;
      transpose(from + first, n_, m_, kLineFloats, to + first * m_, m_);
    });
  }

  void run_part(size_t begin, size_t end, const float* a, const float* b, float* c) const {
    const Scratch packed(n_ > kColumns ? kTransposedBlockK * n_ * sizeof(float) : 0);
    const size_t tiles = (m_ + kTileRows - 1) / kTileRows;
    for (size_t first = begin; first < end; first += kTransposedBlockK) {
      const size_t k = std::min(kTransposedBlockK, end - first), next = first + k,
                   next_k = std::min(kTransposedBlockK, end - next);
      const float* b_block = b + first * n_;
      if (n_ > kColumns) {
        pack(b_block, k, packed.floats());
        b_block = packed.floats();
      }
      const size_t a_share = (next_k * m_ + tiles - 1) / tiles, b_share = (next_k * n_ + tiles - 1) / tiles;
      for (size_t column = 0; column < n_; column += kColumns)
        for (size_t tile = 0; tile < tiles; ++tile) {
          const size_t row = tile * kTileRows;
          if (column == 0) {
            prefetch_share(a + next * m_, next_k * m_, tile, a_share);
            prefetch_share(b + next * n_, next_k * n_, tile, b_share);
          }
          for (size_t i = row + kTileRows; i < std::min(m_, row + 2 * kTileRows); ++i)
            prefetch<true>(c + i * n_ + column, kColumns);
          multiply_tiles({a + first * m_ + row, 0, 1, m_, b_block + column * k, k, c + row * n_ + column, n_,
                          first > begin},
                         std::min(kTileRows, m_ - row));
        }
    }
  }

  // Packs b as [n / kColumns, k, kColumns].
  void pack(const float* b, size_t k, float* to) const {
    for (size_t column = 0; column < n_; column += kColumns)
      pack_columns(b + column, n_, /*transposed=*/false, k, to + column * k);
  }

  bool transposed_;
  size_t m_, k_, n_, parts_;
};

}  // namespace

bool is_thin(const Product& p) {
  const auto [length, other] = p.transposed_a ? std::pair(p.k, p.m) : std::pair(p.m, p.k);
  const int64_t narrow = std::min(other, p.n);
  return p.batch == 1 && length >= kMinLong && other * p.n <= kMaxFloats && narrow >= kMinNarrow &&
         narrow <= kMaxNarrow;
}

std::unique_ptr<Gemm> make_thin_gemm(const Product& p) {
  if (!has_lanes16() || p.batch > 1) return nullptr;
  if (!p.transposed_a) return fits_columns(p.n) ? std::make_unique<TallGemm>(p) : nullptr;
  return !p.transposed_b && DeepGemm::fits(p) ? std::make_unique<DeepGemm>(p) : nullptr;
}

}  // namespace sluice::kernels
