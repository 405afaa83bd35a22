#include "sluice/device/report/metrics.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/device/report/frames.h"

namespace sluice::device {

namespace {
double first_record = 0;
}  // namespace

std::string seconds_text(double s) {
  char text[32];
  if (s < 1e-3)
    snprintf(text, sizeof text, "%.0f us", s * 1e6);
  else if (s < 1)
    snprintf(text, sizeof text, "%.1f ms", s * 1e3);
  else
    snprintf(text, sizeof text, "%.2f s", s);
  return text;
}

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
  Frames frames = frames_here();
  Metrics& metrics = Metrics::get();
  std::scoped_lock lock(metrics.mutex);
  ++metrics.counters.host_reads;
  ++metrics.downloads;
  metrics.bytes_to_host += bytes;
  metrics.counters.wait_seconds += seconds;
  metrics.wait.add(seconds);
  Place& place = metrics.reads[hash_of(frames)];
  if (place.count == 0) {
    place.what = what;
    place.frames = std::move(frames);
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
