#include "sluice/device/report/metrics.h"

#include <execinfo.h>

#include <algorithm>

#include "sluice/base/clock.h"
#include "sluice/base/hash.h"

namespace sluice::device {

namespace {
double first_record = 0;
constexpr int kFrames = 48;
}  // namespace

void Series::add(double seconds) {
  if (kept_.size() < kKept)
    kept_.push_back(seconds);
  else
    kept_[static_cast<size_t>(count_) % kKept] = seconds;
  ++count_;
  total_ += seconds;
}

double Series::percentile(double p) const {
  if (kept_.empty()) return 0;
  std::vector<double> sorted = kept_;
  const auto rank = static_cast<size_t>(p / 100 * static_cast<double>(sorted.size() - 1) + 0.5);
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<int64_t>(rank), sorted.end());
  return sorted[rank];
}

Metrics& Metrics::get() {
  static auto* metrics = [] {
    auto* made = new Metrics();
    made->since = base::monotonic_seconds();
    return made;
  }();
  return *metrics;
}

void note_first_record() { first_record = base::monotonic_seconds(); }
double first_record_time() { return first_record; }

void note_host_read(std::string_view what, double seconds, int64_t bytes) {
  void* frames[kFrames];
  const int depth = backtrace(frames, kFrames);
  uint64_t hash = 0;
  for (int i = 0; i < depth; ++i) hash = base::mix_word(hash, reinterpret_cast<uintptr_t>(frames[i]));
  Metrics& metrics = Metrics::get();
  std::scoped_lock lock(metrics.mutex);
  ++metrics.counters.host_reads;
  ++metrics.downloads;
  metrics.bytes_to_host += bytes;
  metrics.counters.wait_seconds += seconds;
  metrics.wait.add(seconds);
  Place& place = metrics.reads[hash];
  if (place.count == 0) {
    place.what = what;
    place.frames.assign(frames, frames + depth);
  }
  ++place.count;
  place.seconds += seconds;
  place.bytes += bytes;
}

void note_delivery(const std::vector<at::Tensor>& one_per_replica) {
  Metrics& metrics = Metrics::get();
  std::scoped_lock lock(metrics.mutex);
  ++metrics.downloads;
  for (const at::Tensor& tensor : one_per_replica)
    metrics.bytes_to_host += static_cast<int64_t>(tensor.nbytes());
}

}  // namespace sluice::device
