// metrics_report(): a text report of the device's work.
#include <algorithm>
#include <cstdio>
#include <mutex>

#include "sluice/base/clock.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/device/device.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/report/busy_clock.h"
#include "sluice/device/report/frames.h"
#include "sluice/device/report/metrics.h"
#include "sluice/device/runtime.h"

namespace sluice::device {
namespace {

// Returns "device 0: 1.2 GB in use, 3.4 GB at the peak, of 16.0 GB", from the plugin's statistics.
std::string memory_line(int device, const pjrt::MemoryStats& stats) {
  std::string line = base::str("  device ", device, ": ", base::memory_text(stats.in_use), " in use");
  if (stats.peak) line += base::str(", ", base::memory_text(*stats.peak), " at the peak");
  if (stats.limit) line += base::str(", of ", base::memory_text(*stats.limit));
  return line + "\n";
}

// Returns "4.5 a second".
std::string rate_text(int64_t count, double seconds) {
  char text[64];
  snprintf(text, sizeof text, "%.1f a second", static_cast<double>(count) / seconds);
  return text;
}

void add_series(std::string& out, const char* name, const Series& series) {
  if (series.count() == 0) return;
  out += base::str("  ", name, std::string(12 - std::min<size_t>(11, std::string_view(name).size()), ' '),
                   series.count(), " times, ", seconds_text(series.total()), " in all; percentiles");
  for (double p : {1.0, 25.0, 50.0, 75.0, 99.0})
    out += base::str(" ", p, "% ", seconds_text(series.percentile(p)));
  out += "\n";
}

// Returns the places in the user's code where the host waited, the longest wait first; one source line is one
// place.
std::vector<std::pair<std::string, Place>> places(const Metrics& metrics) {
  std::map<std::string, Place> merged;
  for (const auto& [hash, read] : metrics.reads) {
    Place& place = merged[describe_place(read.frames) + "\n" + read.what];
    place.what = read.what;
    place.count += read.count;
    place.seconds += read.seconds;
    place.bytes += read.bytes;
  }
  std::vector<std::pair<std::string, Place>> sorted;
  for (auto& [key, place] : merged) sorted.emplace_back(key.substr(0, key.find('\n')), place);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  return sorted;
}

// Adds the findings. `elapsed` (in seconds) excludes the report's own time: finding a place's line can take a
// second.
void add_findings(std::string& out, const Metrics& metrics,
                  const std::vector<std::pair<std::string, Place>>& reads, double elapsed) {
  std::vector<std::string> findings;
  const auto share = [&](double s) { return static_cast<int>(100 * s / elapsed + 0.5); };
  for (const auto& [where, place] : reads) {
    if (place.count < 5 || share(place.seconds) < 5) continue;
    findings.push_back(base::str(place.what, " at ", where.empty() ? "an unknown place" : where, ", ",
                                 place.count, " times for ", metrics.counters.cuts, " programs: ",
                                 share(place.seconds), " % of the time is waiting; use session.log_every"));
  }
  for (const auto& [name, count] : metrics.fallbacks) {
    findings.push_back(base::str(name, " ran on the CPU ", count, " times; --strict makes it an error"));
  }
  if (!metrics.recompiles.empty()) {
    findings.push_back(base::str(
        metrics.recompiles.size(),
        " recompiles after the second program of a boundary; the last: ", metrics.recompiles.back()));
  }
  if (metrics.counters.forced_cuts > 0) {
    findings.push_back(
        base::str("the graph was cut ", metrics.counters.forced_cuts, " times because no boundary came"));
  }
  out += "Findings\n";
  if (findings.empty()) out += "  none\n";
  for (const std::string& finding : findings) out += "  - " + finding + "\n";
}

}  // namespace

}  // namespace sluice::device

namespace sluice {

std::string metrics_report() {
  using namespace device;
  const Counters now_counters = counters();
  std::string memory;
  {
    TraceLock lock = lock_trace();
    for (pjrt::Device* dev : runtime().devices) {
      if (auto stats = dev->memory()) memory += memory_line(dev->id(), *stats);
    }
  }
  Metrics& metrics = Metrics::get();
  std::scoped_lock lock(metrics.mutex);
  std::string out = "Sluice device report\n";
  out += base::str("Programs\n  ", now_counters.cuts, " launched, ", now_counters.programs,
                   " distinct: ", now_counters.compiles, " compiled, ", now_counters.cache_hits,
                   " from the disk cache\n  ", now_counters.recorded, " operations recorded\n");
  out += "Times\n";
  add_series(out, "tracing", metrics.trace);
  add_series(out, "lowering", metrics.lower);
  add_series(out, "compiling", metrics.compile);
  add_series(out, "loading", metrics.load);
  add_series(out, "launching", metrics.launch);
  add_series(out, "host reads", metrics.wait);
  const double elapsed = std::max(1e-9, base::monotonic_seconds() - metrics.since);
  out += base::str("  devices busy ", seconds_text(now_counters.busy_seconds), " (",
                   static_cast<int>(100 * std::min(1.0, now_counters.busy_seconds / elapsed) + 0.5), " % of ",
                   seconds_text(elapsed), ")\n");
  out += base::str("Transfers\n  to the device ", metrics.uploads, " (",
                   base::size_text(metrics.bytes_to_device), "), to the host ", metrics.downloads, " (",
                   base::size_text(metrics.bytes_to_host), ", ", rate_text(metrics.downloads, elapsed),
                   ")\n  buffers: ", pjrt::Buffer::made(), " made, ", pjrt::Buffer::freed(), " freed, ",
                   now_counters.live_buffers, " live\n");
  if (!memory.empty()) out += "Memory\n" + memory;
  out += base::str("Fallbacks to the CPU\n", metrics.fallbacks.empty() ? "  none\n" : "");
  for (const auto& [name, count] : metrics.fallbacks) out += base::str("  ", name, ": ", count, "\n");
  const auto reads = places(metrics);
  out += base::str("Host reads\n", reads.empty() ? "  none\n" : "");
  for (const auto& [where, place] : reads) {
    out +=
        base::str("  ", place.what, " at ", where.empty() ? "an unknown place" : where, ": ", place.count,
                  " times, waited ", seconds_text(place.seconds), ", ", base::size_text(place.bytes), "\n");
  }
  if (!metrics.recompiles.empty()) out += "Recompiles\n";
  for (const std::string& recompile : metrics.recompiles) out += "  " + recompile + "\n";
  add_findings(out, metrics, reads, elapsed);
  return out;
}

void reset_metrics() {
  auto& metrics = device::Metrics::get();
  std::scoped_lock lock(metrics.mutex);
  metrics.counters = {};
  device::BusyClock::get().restart();
  metrics.trace = metrics.lower = metrics.compile = metrics.load = metrics.launch = metrics.wait = {};
  metrics.bytes_to_device = metrics.bytes_to_host = metrics.uploads = metrics.downloads = 0;
  metrics.fallbacks.clear();
  metrics.reads.clear();
  metrics.recompiles.clear();
  metrics.since = base::monotonic_seconds();
}

}  // namespace sluice
