// How good some steps of a training were.
#pragma once

#include <cstdint>
#include <optional>

#include "sluice/base/export.h"

SLUICE_API_BEGIN

namespace sluice {

// Of the steps of a stretch. What is not known has no value. How all of it is counted is in
// docs/training.md, "How good a step is".
struct StepRates {
  int64_t steps = 0;                               // that are counted here
  std::optional<double> p50_ms = {}, p95_ms = {};  // of a step
  std::optional<double> examples_per_second = {};  // of all replicas of all processes
  std::optional<double> tokens_per_second = {};    // likewise, of batches of tokens
  std::optional<double> flops_per_step = {};       // of one replica: products and convolutions
  std::optional<double> flops_per_second = {};     // of one replica
  std::optional<double> mfu = {};                  // of one replica's device, part of 1
  std::optional<double> input_share = {};          // of the time waiting for a batch, part of 1
  // Bytes of this process's fullest device, and what it has.
  std::optional<int64_t> memory_in_use = {}, memory_peak = {}, memory_limit = {};
};

}  // namespace sluice

SLUICE_API_END
