// All options of `sluice train`, and its result. The defaults are the ones that --help shows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/train/options/augmentation.h"
#include "sluice/train/options/checkpoints.h"
#include "sluice/train/options/data.h"
#include "sluice/train/options/evaluation.h"
#include "sluice/train/options/language.h"
#include "sluice/train/options/length.h"
#include "sluice/train/options/logging.h"
#include "sluice/train/options/machine.h"
#include "sluice/train/options/model.h"
#include "sluice/train/options/optimizer.h"
#include "sluice/train/options/schedule.h"
#include "sluice/train/options/trials.h"
#include "sluice/train/options/weights.h"

SLUICE_API_BEGIN

namespace sluice::train {

// Each section has its rows in recipe/: flag, help, limits and so on of each option.
struct TrainOptions : ModelSection,
                      LengthSection,
                      EvaluationSection,
                      WeightsSection,
                      TrialsSection,
                      OptimizerSection,
                      ScheduleSection,
                      DataSection,
                      AugmentationSection,
                      LanguageSection,
                      MachineSection,
                      LoggingSection,
                      CheckpointSection {};

// The exit statuses of the program.
enum ExitStatus {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,
  kTargetMissed = 21,
  kInterrupted = 130,
  kTerminated = 143
};

struct TrainResult {
  int exit_status = kDone;
  int64_t steps = 0;                                   // updates of the whole run, earlier parts included
  double accuracy = -1;                                // percent, of the last evaluation; -1: none
  double best_accuracy = -1;                           // percent
  std::vector<std::pair<std::string, double>> values;  // all values of the last evaluation, shares in percent
  std::optional<double> best;                          // of the monitored value
  double loss = 0;                                     // of the last logged step
  double examples_per_second = 0;
};

// Throws sluice::Error for options that are wrong with any data and on any machine: an unknown model (with
// the nearest known one), a missing or senseless number.
void check(const TrainOptions& options);
// Sets the defaults for training language models: AdamW (betas 0.9, 0.95; mlm 0.9, 0.98, kClassify 0.9,
// 0.999), learning rate 5e-4 (kClassify 5e-5), weight decay 0.1 of matrices only, clip_norm 1, a warm-up of a
// tenth of the first epoch, 8 rows per batch, 1 epoch (kClassify 32 rows, 3 epochs).
void set_language_recipe(TrainOptions& options);
// Checks the options, then trains. Throws sluice::Error.
TrainResult train(const TrainOptions& options);

}  // namespace sluice::train

SLUICE_API_END
