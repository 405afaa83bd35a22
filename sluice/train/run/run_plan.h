// The plan of a run, which follows from its options and its data: how long it is, and its learning rates.
#pragma once

#include <cstdint>

#include "sluice/train/input/input.h"
#include "sluice/train/optimizers/schedule.h"
#include "sluice/train/options.h"
#include "sluice/train/run/run_length.h"

namespace sluice::train {

struct RunPlan {
  RunLength length;
  ScheduleOptions schedule;
};

// Throws kInvalidArgument if no epoch has a step, if --max-steps can't be reached, and for a schedule that
// does not fit into the run.
RunPlan plan_run(const Input& train, const TrainOptions& options);

// Returns the batch size of one replica from the options. Throws if a global batch size does not divide.
int64_t rows_per_replica(const TrainOptions& options, int replicas);

// Throws kInvalidArgument, which names the flag and the numbers that would do, unless the mesh divides the
// rows of all batches that the options describe.
void check_rows(const TrainOptions& options, const Mesh& mesh);
// Returns whether the run computes layers again: as the options say, else if fsdp is above 1 and the model
// has such layers.
bool recomputes(const TrainOptions& options, const Mesh& mesh);

}  // namespace sluice::train
