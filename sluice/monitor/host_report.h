// One machine as `sluice top` shows it: its chips, who holds them, what they do, and the training processes.
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
  std::string host;     // as it calls itself, or as it is reached
  std::string trouble;  // why nothing below is known of it; "": all is well
  int tpu_chips = 0;
  std::string tpu;  // "4 chips of TPU v3 (/dev/accel0…3)", "no TPU"
  std::vector<std::string> tpu_files;
  std::vector<pjrt::Holder> holders;
  RuntimeMetrics metrics;
  std::vector<SeenProcess> processes;
  double time = 0;  // when this was so, in seconds since 1970
};

// Of this machine, now. Nothing that runs is stopped or slowed. `http`: kept from one look to the next.
HostReport look_at_host(cloud::Http& http);

// The reports as one JSON object, {"hosts": […]}; `indent` below 0: on one line.
std::string text_of(const std::vector<HostReport>& reports, int indent);
// The one report in such an object. kDataLoss for what is none.
base::Result<HostReport> parse_report(const std::string& text);

// Which of the holders has this chip (its place in tpu_files); null: nobody is seen to.
const pjrt::Holder* holder_of_chip(const HostReport& report, size_t chip);

}  // namespace sluice::monitor
