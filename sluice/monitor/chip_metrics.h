// What libtpu measures of the chips while a program runs on them: its RuntimeMetricService, a gRPC service of
// the program's process, on port 8431 of this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/cloud/http.h"

namespace sluice::monitor {

// Of one device: a chip; on v2 and v3 a core, of which two have one duty cycle.
struct ChipMetrics {
  int device = 0;
  std::optional<double> duty_cycle;                   // percent of the time that its cores computed
  std::optional<uint64_t> memory_used, memory_total;  // bytes
};

struct RuntimeMetrics {
  bool running = false;  // something listens: a TPU program runs
  std::vector<ChipMetrics> chips;
  std::vector<std::string> faults;  // of what listens and is not understood, one a port
};

// $TPU_RUNTIME_METRICS_PORTS (one a process), else 8431.
std::vector<int> metrics_ports();

// Asks the services of these ports, each for at most `deadline` seconds in all. Where one process runs for
// each chip, each knows its own chips.
RuntimeMetrics read_runtime_metrics(cloud::Http& http, const std::vector<int>& ports, double deadline = 1);

// The values in one answer (tpu.monitoring.runtime.MetricResponse), by device. kDataLoss for what is none.
struct DeviceValue {
  int device = 0;
  double value = 0;
};
base::Result<std::vector<DeviceValue>> parse_metric(std::string_view message);

}  // namespace sluice::monitor
