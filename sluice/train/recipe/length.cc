#include "sluice/train/recipe/sections.h"

#include "sluice/base/clock.h"
#include "sluice/train/recipe/reasons.h"

namespace sluice::train {

// clang-format off
std::vector<base::Flag> length_rows(TrainOptions& o) {
  using base::Flag;
  const auto read_time = [&o](const std::string& text) {
    o.max_seconds = text.empty() ? 0 : base::value_or_throw(base::parse_span(text, "--max-time"));
  };
  return {
      Flag{"Recipe", "--batch-size", &o.batch_size, "samples", "Set the batch size of one replica"}
          .at_least(1)
          .idle(with_shapes(o))
          .idle(o.global_batch_size > 0, {"--global-batch-size"}, "--global-batch-size decides: give one of them"),
      Flag{"Recipe", "--global-batch-size", &o.global_batch_size, "samples", "Set the batch size of all replicas and accumulated batches together; 0: use --batch-size"}
          .at_least(0).setting_if(true),
      Flag{"Recipe", "--test-batch-size", &o.test_batch_size, "samples", "Set the batch size of one replica in a test; 0: as --batch-size"}
          .at_least(0).idle(with_shapes(o)).idle(without_test(o)),
      Flag{"Recipe", "--accumulate", &o.accumulate, "batches", "Use N batches for one update; the last update of an epoch uses the batches that are left"}
          .at_least(1),
      Flag{"Recipe", "--epochs", &o.epochs, "", "Train for N passes over the training set"}
          .at_least(0).idle(in_dev_run(o)).setting_if(true),
      Flag{"Recipe", "--steps-per-epoch", &o.steps_per_epoch, "", "End an epoch after N updates; 0: the whole training set"}
          .at_least(0).idle(in_dev_run(o))
          .idle(o.overfit_batches > 0, {"--overfit-batches"}, "the batches of --overfit-batches are the epoch"),
      Flag{"Recipe", "--max-steps", &o.max_steps, "", "End the run and its schedules after N updates; 0: when --epochs are over"}
          .at_least(0).idle(in_dev_run(o)).setting(),
      Flag{"Recipe", "--max-tokens", base::LargeNumber{&o.max_tokens}, "tokens", "End the run and its schedules with the update that reaches N tokens of the token files, such as 2e9 (clm, mlm); 0: no limit"}
          .at_least(0).idle(without_token_files(o)).idle(in_dev_run(o)).setting(),
      Flag{"Recipe", "--max-time", base::ParsedText{read_time}, "", "End the run after this time, such as 8h or 1h30m, with a test and a checkpoint; time before --resume counts; empty: never"},
  };
}
// clang-format on

}  // namespace sluice::train
