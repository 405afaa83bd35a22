// What `sluice bench step` measures.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sluice/bench/cases.h"

namespace sluice::bench {

struct StepOptions {
  std::string model = "resnet50";
  int64_t batch_size = 128;  // samples of a replica
  Sizes sizes;
  int rounds = 20;
  int steps = 1;  // in each round
  int warmup = 3;
  int threads = 0;  // of LibTorch; 0: its default
  int devices = 0;  // 0: all of a TPU or GPU, 1 of a CPU
  bool eager = true;
  bool captured = false;
  bool keep_going = false;
  double seconds = 0;  // no round begins after this time; 0: all rounds
  bool cpu_kernels = true;
  bool bf16 = false;                // the forward pass runs under autocast
  std::string against;              // a file of StableHLO; empty: none
  std::vector<std::string> beside;  // commands (other_side.h)
  std::string plugin;
};

// Times the step on xla:0, and each other side that the options name. Every side runs in turn in each round,
// so that a slow minute of the machine affects all of them; medians are returned. Throws sluice::Error.
nlohmann::json measure_step(const StepOptions& options);

}  // namespace sluice::bench
