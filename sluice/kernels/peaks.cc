#include "sluice/kernels/peaks.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "sluice/base/span.h"
#include "sluice/base/strings.h"
#include "sluice/kernels/gemm/gemm.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

constexpr int kRounds = 5;

// Threads that help, until its end.
class Helpers {
 public:
  ~Helpers() {
    for (std::thread& thread : threads_) thread.join();
  }
  StartHelper start() {
    return [this](void (*task)(void*), void* data) {
      threads_.emplace_back(task, data);
      return true;
    };
  }

 private:
  std::vector<std::thread> threads_;
};

template <typename Body>
double fastest_seconds(const Body& body) {
  int64_t best = 0;
  for (int round = 0; round < kRounds; ++round) {
    Helpers helpers;
    const UseThreads threads(helpers.start());
    const int64_t begin = base::span_clock();
    if (!body()) return 0;
    const int64_t took = base::span_clock() - begin;
    if (best == 0 || took < best) best = took;
  }
  return static_cast<double>(best) / 1e9;
}

double measure_flops() {
  constexpr int64_t kExtent = 1024;
  constexpr auto kElements = static_cast<size_t>(kExtent * kExtent);
  const Gemm* const gemm = [&] {
    const UseThreads threads;
    return find_gemm({.m = kExtent, .k = kExtent, .n = kExtent});
  }();
  if (gemm == nullptr) return 0;
  std::vector<float> a(kElements, 0.5f), b(kElements, 0.25f), c(kElements);
  const double seconds = fastest_seconds([&] { return gemm->run(a.data(), b.data(), c.data()).has_value(); });
  return seconds > 0 ? 2.0 * kExtent * kExtent * kExtent / seconds : 0;
}

double measure_bytes() {
  constexpr size_t kElements = size_t{1} << 24, kPiece = size_t{1} << 16;  // arrays of 64 MiB
  std::vector<float> a(kElements, 0.5f), b(kElements, 0.25f), c(kElements);
  const double seconds = fastest_seconds([&] {
    parallel_pieces(kElements, kPiece, [&](size_t first, size_t count) {
      const float *x = a.data() + first, *y = b.data() + first;
      float* sum = c.data() + first;
      for (size_t i = 0; i < count; ++i) sum[i] = x[i] + y[i];
    });
    return true;
  });
  return 3.0 * sizeof(float) * kElements / seconds;
}

}  // namespace

const profile::Peaks& measured_peaks() {
  static const profile::Peaks peaks = [] {
    const int threads = threads_of_a_call();
    return profile::Peaks{measure_flops(), measure_bytes(),
                          base::str("measured on ", threads, threads == 1 ? " thread" : " threads")};
  }();
  return peaks;
}

}  // namespace sluice::kernels
