// The rates of some steps of a training: time, throughput, utilisation.
#pragma once

#include <cstdint>
#include <optional>

#include "sluice/base/export.h"

SLUICE_API_BEGIN

namespace sluice {

// Rates of a window of steps. An unknown rate has no value. docs/training.md, "How good a step is", defines
// how each is counted.
struct StepRates {
  int64_t steps = 0;                               // the number of steps counted here
  std::optional<double> p50_ms = {}, p95_ms = {};  // milliseconds of a step
  std::optional<double> examples_per_second = {};  // of all replicas of all processes
  std::optional<double> tokens_per_second = {};    // likewise, for batches of tokens
  std::optional<double> flops_per_step = {};       // of one replica: products and convolutions
  std::optional<double> flops_per_second = {};     // of one replica
  std::optional<double> mfu = {};                  // of one replica's device, as a fraction of 1
  // The same with half of the products of causal attention; none without causal attention.
  std::optional<double> causal_mfu = {};
  std::optional<double> input_share = {};  // fraction of the time that was spent waiting for a batch
  // Bytes in use, the peak and the limit of this process's fullest device.
  std::optional<int64_t> memory_in_use = {}, memory_peak = {}, memory_limit = {};
};

}  // namespace sluice

SLUICE_API_END
