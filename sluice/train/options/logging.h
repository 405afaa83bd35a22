// The options of what a run prints, logs and answers.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/base/export.h"
#include "sluice/train/choices.h"
#include "sluice/train/options/values.h"

SLUICE_API_BEGIN

namespace sluice::train {

struct LoggingSection {
  std::string logdir = "sluice-run";
  int64_t log_steps = 20;                        // a line every N steps of an epoch
  LogWorkers log_workers = LogWorkers::kLeader;  // the processes whose lines are printed
  // A tracking server of MLflow, http(s)://host[:port]; empty: none. Then the experiment there.
  std::string mlflow;
  std::string mlflow_experiment = "Default";
  bool histograms = false;  // of the weights, for TensorBoard (Histograms)
  int64_t log_images = 0;   // the number of images of each test, for TensorBoard
  ProfileSteps profile;
  int64_t summary = 0;  // levels of modules in a table of the model's parameters; 0: none
  bool report = false;
  std::string profiler_port;  // of each process: 9012, or 0.0.0.0:9012; empty: none (see Options)
  std::string status_port;    // of the leader: 9100, or 0.0.0.0:9100; empty: none (see Options)
  bool json = false;
  bool quiet = false;  // print nothing
};

}  // namespace sluice::train

SLUICE_API_END
