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

// Returns the batch size of one replica from the options, or with a mesh the rows of a batch that one of
// `replicas` parts has. Throws if a global batch size, or a mesh's whole batch, does not divide.
int64_t rows_per_replica(const TrainOptions& options, int replicas);
// Returns the rows of a batch that one part has (Session::batch_parts()) if there is a mesh, for which
// `flag` gives the size of the whole batch; else this size.
int64_t rows_of_part(const char* flag, int64_t size);

// Throws kInvalidArgument, which names the flag and the numbers that would do, unless the mesh divides the
// rows of all batches that the options describe.
void check_rows(const TrainOptions& options, const Mesh& mesh);
// Returns whether the run computes layers again: as the options say, else if fsdp is above 1 and the model
// has such layers.
bool recomputes(const TrainOptions& options, const Mesh& mesh);

}  // namespace sluice::train
