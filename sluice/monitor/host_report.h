// One machine as `sluice top` shows it: its chips, their holders and metrics, and the training processes.
#pragma once

#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/monitor/chip_metrics.h"
#include "sluice/monitor/process_status.h"
#include "sluice/pjrt/machine/holder.h"
#include "sluice/pjrt/machine/machine.h"

namespace sluice::monitor {

struct HostReport {
  std::string host;     // its own name, or the one by which it was reached
  std::string trouble;  // why nothing below is known; "": all is well
  int tpu_chips = 0;
  std::string tpu;  // "4 chips of TPU v3 (/dev/accel0…3)", "no TPU"
  std::vector<std::string> tpu_files;
  std::vector<pjrt::Holder> holders;
  RuntimeMetrics metrics;
  std::vector<SeenProcess> processes;
  double time = 0;  // when this was observed, in seconds since 1970
};

// Observes this machine without stopping or slowing any process. `http` is kept from one look to the next.
HostReport look_at_host(cloud::Http& http);

// Returns the reports as one JSON object, {"hosts": […]}; with `indent` below 0 on one line.
std::string text_of(const std::vector<HostReport>& reports, int indent);
// Parses such an object with one report. kDataLoss for any other text.
base::Result<HostReport> parse_report(const std::string& text);

// Returns the holder of this chip (an index in tpu_files), or null if none is seen.
const pjrt::Holder* holder_of_chip(const HostReport& report, size_t chip);

}  // namespace sluice::monitor
