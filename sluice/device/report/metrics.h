// The counts and times of the device, for counters(), metrics_report() and warnings.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/device/device.h"
#include "sluice/device/report/frames.h"

namespace sluice::device {

// Returns "15 us", "2.5 ms" or "12.50 s".
std::string seconds_text(double s);

// A series of durations: total, and percentiles over the last kKept.
class Series {
 public:
  static constexpr size_t kKept = 4096;
  void add(double seconds);
  int64_t count() const { return count_; }
  double total() const { return total_; }
  double percentile(double p) const;  // p in 0..100; 0 when empty

 private:
  int64_t count_ = 0;
  double total_ = 0;
  std::vector<double> kept_;
};

// A place in the user's code where the host waited for the device.
struct Place {
  std::string what;  // "aten::_local_scalar_dense (.item())"
  Frames frames;
  int64_t count = 0;
  double seconds = 0;
  int64_t bytes = 0;
};

struct Metrics {
  std::mutex mutex;
  Counters counters;
  Series trace, lower, compile, load, launch, wait;
  int64_t bytes_to_device = 0, bytes_to_host = 0, uploads = 0, downloads = 0;
  std::map<std::string, int64_t> fallbacks;
  std::map<uint64_t, Place> reads;  // the key is a hash of the frames
  std::vector<std::string> recompiles;
  double since = 0;  // the start of all counts: the first use, or reset_metrics()

  static Metrics& get();
};

// Notes the first operation after a cut: the host's time for the trace begins here.
void note_first_record();
double first_record_time();

// Counts a wait of the host at the current place.
void note_host_read(std::string_view what, double seconds, int64_t bytes);

// Counts a value that arrived without a wait that a report would name. One tensor for each local replica.
void note_delivery(const std::vector<at::Tensor>& one_per_replica);

}  // namespace sluice::device
