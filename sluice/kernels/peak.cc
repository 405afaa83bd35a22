// Measures how fast this machine's processor multiplies and reads memory at best.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <functional>
#include <thread>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/base/thread.h"
#include "sluice/kernels/gemm/gemm.h"
#include "sluice/kernels/install.h"
#include "sluice/kernels/onednn.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

// Each thread has 768 kB of matrices; a product takes a millisecond or two on one core.
constexpr int64_t kExtent = 256;
constexpr double kRoundSeconds = 0.01;
constexpr size_t kSumElements = size_t{1} << 24;  // 64 MiB for each array

// Returns the largest amount per second in `rounds` rounds on `threads` threads. All threads begin a round
// together, and it lasts until the last of them has ended. Each thread calls `prepare` once; the returned
// function does a round and returns its amount.
double best_rate(int threads, int rounds, const std::function<std::function<double()>()>& prepare) {
  double began = 0, best = 0;
  std::atomic<double> amount = 0;
  const auto settle = [&]() noexcept {
    const double now = base::monotonic_seconds();
    if (began > 0) best = std::max(best, amount.load() / (now - began));
    amount = 0;
    began = now;
  };
  std::barrier round(threads, settle);
  const auto work = [&] {
    const UseThreads alone;
    const std::function<double()> piece = prepare();
    for (int i = 0; i <= rounds; ++i) {
      amount += piece();
      round.arrive_and_wait();
    }
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  others.clear();
  return best;
}

}  // namespace

int threads_of_replicas(int local_replicas) {
  return std::min(threads_of_a_call() * local_replicas, static_cast<int>(base::available_processors()));
}

double measure_f32_peak(int threads, int rounds) {
  if (!Onednn::open()) return 0;
  const Gemm* const gemm = find_gemm({.m = kExtent, .k = kExtent, .n = kExtent});
  if (gemm == nullptr || threads < 1 || rounds < 1) return 0;
  std::atomic<bool> failed = false;
  const double best = best_rate(threads, rounds, [&] {
    const auto elements = static_cast<size_t>(kExtent * kExtent);
    return [&failed, gemm, a = std::vector<float>(elements, 1), b = std::vector<float>(elements, 1),
            c = std::vector<float>(elements)]() mutable {
      double flops = 0;
      for (const base::Stopwatch watch; flops == 0 || watch.seconds() < kRoundSeconds;) {
        if (!gemm->run(a.data(), b.data(), c.data())) failed = true;
        flops += 2.0 * kExtent * kExtent * kExtent;
      }
      return flops;
    };
  });
  return failed ? 0 : best;
}

double measure_bandwidth(int threads, int rounds) {
  if (threads < 1 || rounds < 1) return 0;
  const size_t part = kSumElements / static_cast<size_t>(threads);
  return best_rate(threads, rounds, [&] {
    return [part, a = std::vector<float>(part, 1), b = std::vector<float>(part, 1),
            c = std::vector<float>(part)]() mutable {
      for (size_t i = 0; i < part; ++i) c[i] = a[i] + b[i];
      return 3.0 * sizeof(float) * static_cast<double>(part);
    };
  });
}

}  // namespace sluice::kernels
