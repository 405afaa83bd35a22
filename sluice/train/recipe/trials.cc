#include "sluice/train/recipe/sections.h"

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"

namespace sluice::train {

// clang-format off
std::vector<base::Flag> trials_rows(TrainOptions& o) {
  using base::Flag;
  return {
      Flag{"Recipe", "--overfit-batches", &o.overfit_batches, "batches", "Train only on the first N batches, to see whether the model can learn them; 0: off"}
          .after("--limit-test-batches").at_least(0),
      Flag{"Recipe", "--fast-dev-run", &o.fast_dev_run, "steps", "Run N training steps and N test batches to check the set-up, and keep nothing; 0: off"}
          .at_least(0),
      Flag{"Recipe", "--find-batch-size", &o.find_batch_size, "", "Find a batch size instead of training: trials of twelve steps with 1, 2, 4 … times --batch-size, until a batch does not fit or is no faster; prints the smallest size that is nearly as fast as the fastest"}
          .after("--lr"),
      Flag{"Recipe", "--find-lr", &o.find_lr, "", "Find a learning rate instead of training: 100 steps with rates from 1e-8 to 1; prints the rate at which the loss falls fastest, and writes a table into the log folder"},
  };
}
// clang-format on

void check_trials(const TrainOptions& o) {
  if (o.fast_dev_run > 0 && !o.resume.empty())
    throw_error(Code::kInvalidArgument, "--fast-dev-run is a run of its own, which resumes nothing");
  if (o.overfit_batches > 0 && o.overfit_batches % o.accumulate != 0)
    throw_error(Code::kInvalidArgument, base::str("--overfit-batches ", o.overfit_batches,
                                                  " is not a multiple of --accumulate ", o.accumulate));
}

void check_finders(const TrainOptions& o) {
  if (o.find_batch_size && (o.find_lr || o.fast_dev_run > 0))
    throw_error(Code::kInvalidArgument,
                "--find-batch-size, --find-lr and --fast-dev-run are runs of their own: one at a time");
  if (o.find_batch_size && (o.global_batch_size > 0 || !o.shapes.empty()))
    throw_error(Code::kInvalidArgument,
                base::str("--find-batch-size tries sizes of --batch-size, which ",
                          o.shapes.empty() ? "--global-batch-size" : "--shapes", " decides: leave it out"));
}

}  // namespace sluice::train
