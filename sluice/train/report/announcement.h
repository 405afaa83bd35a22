// The lines that a run begins with.
#pragma once

#include "sluice/stablehlo/layer_work.h"
#include "sluice/train/report/run_log.h"
#include "sluice/train/run/run_plan.h"
#include "sluice/train/run/run_setup.h"

namespace sluice::train {

// Reports the device, the batch, the model, the data and what filters leave out.
void announce(const RunSetup& given, const RunPlan& plan, RunLog& log);
// Prints the layers of the step that `work` belongs to.
void announce_layers(const RunSetup& given, const stablehlo::Work& work, RunLog& log);

}  // namespace sluice::train
