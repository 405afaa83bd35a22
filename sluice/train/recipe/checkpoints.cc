#include "sluice/train/recipe/sections.h"

#include "sluice/train/recipe/parsed.h"
#include "sluice/train/recipe/reasons.h"

namespace sluice::train {

// clang-format off
std::vector<base::Flag> checkpoint_rows(TrainOptions& o) {
  using base::Flag;
  return {
      Flag{"Recipe", "--save-top-k", &o.save_top_k, "checkpoints", "Keep the N best checkpoints as top-STEP in the log folder; 0: keep only best"}
          .after("--min-delta").at_least(0).idle(in_dev_run(o)).idle(without_test(o)),
      Flag{"Output", "--save-steps", &o.save_steps, "steps", "Save a checkpoint every N steps of an epoch, and after each epoch; 0: only after epochs"}
          .after("--log-images").at_least(0).idle(in_dev_run(o)),
      Flag{"Output", "--save-minutes", &o.save_minutes, "minutes", "Save a checkpoint at the end of the step in which N minutes have passed since the last one; 0: off"}
          .within({.low = 0}, "must be 0 or more").idle(in_dev_run(o)),
      Flag{"Output", "--resume", parsed("--resume", o.resume).or_without_value(kFromLast), "", "Continue from a checkpoint folder, gs://…, s3://… or az://…; without a value: from LOGDIR/last, if there"}
          .idle(in_dev_run(o)),
  };
}
// clang-format on

}  // namespace sluice::train
