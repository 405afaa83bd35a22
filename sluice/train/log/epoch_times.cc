#include "sluice/train/log/epoch_times.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "sluice/base/text/join.h"

namespace sluice::train {
namespace epoch_times_detail {

int percent(double part, double whole) {
  return whole > 0 ? static_cast<int>(std::lround(100 * part / whole)) : 0;
}

std::string tenths(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

}  // namespace epoch_times_detail

const char* EpochTimes::bound() const {
  if (input >= std::max(trace, device)) return "input";
  return trace >= device ? "trace" : "device";
}

int EpochTimes::input_percent() const { return epoch_times_detail::percent(input, seconds()); }
// At most the rest after input: two halves that are both rounded up would make more than 100.
int EpochTimes::trace_percent() const {
  return std::min(epoch_times_detail::percent(trace, seconds()), 100 - input_percent());
}

std::string text_of(const EpochTimes& times) {
  char text[160];
  std::snprintf(text, sizeof text, "%.17g %.17g %.17g %.17g", times.compiling, times.input, times.trace,
                times.device);
  return text;
}

base::Result<EpochTimes> least_busy(const std::vector<std::string>& texts, size_t* slowest) {
  EpochTimes found;
  double least = 2;
  for (size_t i = 0; i < texts.size(); ++i) {
    EpochTimes one;
    if (std::sscanf(texts[i].c_str(), "%lf %lf %lf %lf", &one.compiling, &one.input, &one.trace,
                    &one.device) != 4) {
      return base::fail(Code::kDataLoss, "the times of process ", i,
                        "'s epoch: expected four numbers, found '", texts[i], "'");
    }
    const double share = one.seconds() > 0 ? one.device / one.seconds() : 1;
    if (share >= least) continue;
    least = share;
    found = one;
    *slowest = i;
  }
  return found;
}

std::string describe(const EpochTimes& times, int64_t epoch) {
  using epoch_times_detail::tenths;
  return base::str(
      "Epoch ", epoch, " was ", times.bound(), "-bound: waiting for data ", times.input_percent(),
      " %, tracing ", times.trace_percent(), " %, device ", times.device_percent(), " % of ",
      tenths(times.seconds()),
      times.compiling > 0 ? base::str("; compiling took ", tenths(times.compiling), " more") : std::string(),
      ".");
}

}  // namespace sluice::train
