#include "sluice/kernels/gemm/partial_sums.h"

#include <array>

#include "sluice/kernels/each_cpu.h"

namespace sluice::kernels {
namespace {

// The elements that a thread adds up before it takes the next ones: they stay in its L1 cache.
constexpr size_t kPiece = 4 << 10;

}  // namespace

SLUICE_EACH_CPU
void add_floats(float* __restrict sum, const float* part, size_t elements) {
  for (size_t i = 0; i < elements; ++i) sum[i] += part[i];
}

SLUICE_EACH_CPU
void join_sums(size_t count, const float* parts, size_t step, size_t elements, float* __restrict sum) {
  std::array<double, kElementsOfJoin> joined{};
  for (size_t k = 0; k < count; ++k)
    for (size_t i = 0; i < elements; ++i) joined[i] += parts[k * step + i];
  for (size_t i = 0; i < elements; ++i) sum[i] = static_cast<float>(joined[i]);
}

std::vector<float*> sum_buffers(size_t count, size_t elements, float* first, float* scratch) {
  std::vector<float*> places;
  if (first != nullptr) places.push_back(first);
  for (size_t i = 0; places.size() < count; ++i) places.push_back(scratch + i * elements);
  return places;
}

void add_partial_sums(std::span<float* const> sums, size_t elements) {
  if (sums.size() < 2) return;
  parallel_pieces(elements, kPiece, [&](size_t first, size_t count) {
    for (size_t i = 1; i < sums.size(); ++i) add_floats(sums[0] + first, sums[i] + first, count);
  });
}

}  // namespace sluice::kernels
