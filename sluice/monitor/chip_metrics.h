// Reads libtpu's measurements of the chips while a program runs on them. Its RuntimeMetricService is a gRPC
// service in the program's process, on port 8431 of this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/cloud/http.h"

namespace sluice::monitor {

// The metrics of one device: a chip or, on v2 and v3, a core; the two cores of a chip share a duty cycle.
struct ChipMetrics {
  int device = 0;
  std::optional<double> duty_cycle;                   // percent of the time that its cores computed
  std::optional<uint64_t> memory_used, memory_total;  // bytes
};

struct RuntimeMetrics {
  bool running = false;  // something listens, so a TPU program runs
  std::vector<ChipMetrics> chips;
  std::vector<std::string> faults;  // of listeners that are not understood, one for each port
};

// Returns $TPU_RUNTIME_METRICS_PORTS (one for each process), else 8431.
std::vector<int> metrics_ports();

// Asks the services of these ports, each for at most `deadline` seconds in all. With one process for each
// chip, each service knows its own chips.
RuntimeMetrics read_runtime_metrics(cloud::Http& http, const std::vector<int>& ports, double deadline = 1);

// Parses the values of one answer, by device (tpu.monitoring.runtime.MetricResponse, else kDataLoss).
struct DeviceValue {
  int device = 0;
  double value = 0;
};
base::Result<std::vector<DeviceValue>> parse_metric(std::string_view message);

}  // namespace sluice::monitor
