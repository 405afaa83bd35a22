#include "sluice/profile/words.h"

#include <algorithm>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/profile/format.h"
#include "sluice/profile/host_lines.h"

namespace sluice::profile {
namespace {

std::string moment(int64_t nanoseconds) {
  return base::str(base::utc_time(static_cast<double>(nanoseconds / 1'000'000'000), "%Y-%m-%d %H:%M:%S"),
                   format(".%03d UTC", static_cast<int>(nanoseconds / 1'000'000 % 1000)));
}

// Returns the rows of a table, the largest first.
std::string table(const std::map<std::string, Total>& totals, const Steps& steps) {
  std::vector<std::pair<std::string, Total>> rows(totals.begin(), totals.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.self > b.second.self; });
  std::string out = "        ms       %    times      bytes\n";
  for (const auto& [name, total] : rows) {
    const double bytes = static_cast<double>(total.bytes) / steps.count();
    out += format("%10.3f  %6.2f  %7.1f  %9s  %s\n", static_cast<double>(total.self) / steps.count() / 1e6,
                  100 * static_cast<double>(total.self) / steps.nanoseconds(),
                  static_cast<double>(total.count) / steps.count(),
                  bytes < 1 ? "" : base::memory_text(static_cast<uint64_t>(bytes)).c_str(), name.c_str());
  }
  return out;
}

std::string of_line(const base::SpanLine& line, const Steps& steps, bool trains) {
  std::vector<base::SpanRecord> spans = line.spans;
  sort_spans(spans);
  const auto totals = self_times(spans, steps.begin(), steps.end());
  if (totals.empty()) return "";
  int64_t named = 0;
  for (const auto& [name, total] : totals) named += total.self;
  const double share = 100 * static_cast<double>(named) / steps.nanoseconds();
  std::string head = trains ? "The thread that trains"
                            : base::str(line.is_thread ? "Thread " : "", line.name,
                                        line.is_thread ? base::str(" (", line.id, ")") : "");
  return base::str("\n", head, ", a step: ", format("%.1f", share), " % of its time has a name\n",
                   table(totals, steps));
}

}  // namespace

std::string in_words(const base::SpanRecording& recording, const About& about, const std::string& layers) {
  std::string out =
      base::str("Profile of process ", about.process, " of ", about.processes, " on ", about.host, ", from ",
                moment(recording.begin + recording.epoch), "\n", about.device, "\n");
  const Steps steps = find_steps(recording);
  if (steps.spans.empty()) return out + "No whole step is in it.\n";
  out += base::str("Steps ", steps.spans.front().numbers.step, " to ", steps.spans.back().numbers.step, ": ",
                   format("%.3f", steps.nanoseconds() / steps.count() / 1e6), " ms each (");
  constexpr size_t kShown = 8;
  for (size_t i = 0; i < std::min(steps.spans.size(), kShown); ++i)
    out += base::str(i == 0 ? "" : ", ",
                     format("%.3f", static_cast<double>(steps.spans[i].end - steps.spans[i].begin) / 1e6));
  out += steps.spans.size() > kShown ? ", …)\n" : ")\n";
  if (recording.dropped > 0)
    out += base::str("There was no room for ", recording.dropped, " spans: profile fewer steps.\n");
  for (const base::SpanLine& line : recording.lines)
    if (line.is_thread && line.id == recording.main_thread) out += of_line(line, steps, /*trains=*/true);
  for (const base::SpanLine& line : recording.lines)
    if (!line.is_thread) out += of_line(line, steps, /*trains=*/false);
  for (const base::SpanLine& line : recording.lines)
    if (line.is_thread && line.id != recording.main_thread) out += of_line(line, steps, /*trains=*/false);
  if (!layers.empty()) out += base::str("\n", layers);
  if (!about.device_planes)
    out +=
        "\nThe plugin has no profiler, so of what its devices do only calls of library kernels are known. A "
        "program is on them from its launch, or from the end of the one before it, until its results are "
        "there.\n";
  return out;
}

}  // namespace sluice::profile
