// How quickly this machine's processor multiplies at best.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/base/thread.h"
#include "sluice/kernels/gemm/gemm.h"
#include "sluice/kernels/install.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

// 768 kB of matrices a thread; a product takes a millisecond or two on one core.
constexpr int64_t kExtent = 256;
constexpr double kRoundSeconds = 0.01;

}  // namespace

int threads_of_replicas(int local_replicas) {
  return std::min(threads_of_a_call() * local_replicas, static_cast<int>(base::available_processors()));
}

double measure_f32_peak(int threads, int rounds) {
  const Gemm* const gemm = find_gemm({.m = kExtent, .k = kExtent, .n = kExtent});
  if (gemm == nullptr || threads < 1 || rounds < 1) return 0;
  const auto elements = static_cast<size_t>(kExtent * kExtent);
  double began = 0, best = 0;
  std::atomic<int64_t> products = 0;
  std::atomic<bool> failed = false;
  // All begin a round together, and it lasts until the last of them has ended.
  const auto settle = [&]() noexcept {
    const double now = base::monotonic_seconds(), seconds = now - began;
    const double flops = 2.0 * kExtent * kExtent * kExtent * static_cast<double>(products.exchange(0));
    if (began > 0) best = std::max(best, flops / seconds);
    began = now;
  };
  std::barrier round(threads, settle);
  const auto work = [&] {
    const UseThreads alone;
    std::vector<float> a(elements, 1), b(elements, 1), c(elements);
    for (int i = 0; i <= rounds; ++i) {
      int64_t done = 0;
      for (const base::Stopwatch watch; done == 0 || watch.seconds() < kRoundSeconds; ++done)
        if (!gemm->run(a.data(), b.data(), c.data())) failed = true;
      products += done;
      round.arrive_and_wait();
    }
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  others.clear();
  return failed ? 0 : best;
}

}  // namespace sluice::kernels
