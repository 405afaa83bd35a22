#include "sluice/train/recipe/sections.h"

#include "sluice/base/result.h"
#include "sluice/metrics/parse_names.h"
#include "sluice/train/recipe/parsed.h"
#include "sluice/train/recipe/reasons.h"
#include "sluice/train/recipe/recipe.h"

namespace sluice::train {

// clang-format off
std::vector<base::Flag> evaluation_rows(TrainOptions& o) {
  using base::Flag;
  return {
      Flag{"Recipe", "--test-every-epochs", &o.test_every_epochs, "epochs", "Test after every N epochs, and at the end of the run"}
          .at_least(1).idle(in_dev_run(o)).idle(without_test(o)),
      Flag{"Recipe", "--test-every-steps", &o.test_every_steps, "", "Also test and save a checkpoint after every N updates; 0: only between epochs"}
          .at_least(0).idle(in_dev_run(o)).idle(without_test(o)),
      Flag{"Recipe", "--test-every-minutes", &o.test_every_minutes, "minutes", "Also test and save a checkpoint once N minutes have passed since the last test; 0: off"}
          .within({.low = 0}, "must be 0 or more").idle(in_dev_run(o)).idle(without_test(o)),
      Flag{"Recipe", "--patience", &o.patience, "tests", "End the run after N tests in a row without improvement; 0: never"}
          .at_least(0).idle(in_dev_run(o)).idle(without_test(o)),
      Flag{"Recipe", "--min-delta", &o.min_delta, "", "Count a test as an improvement for --patience only if it is better by this; accuracy as a share of 1"}
          .within({.low = 0}, "must be 0 or more").idle(o.patience == 0, {"--patience"}, "without --patience no run ends by its tests"),
      Flag{"Recipe", "--limit-test-batches", &o.limit_test_batches, "batches", "Test each replica on N batches; 0: the whole test set"}
          .after("--unfreeze-epoch").at_least(0).idle(in_dev_run(o)).idle(without_test(o)),
      Flag{"Recipe", "--target-accuracy", &o.target_accuracy, "%", "Exit with status 21 if the accuracy stays below this; 0: no target"}
          .after("--seed").within(base::from_to(0, 100), "takes per cent, 0 to 100")
          .idle(without_samples(o)).idle(in_dev_run(o)).idle(without_test(o)),
      Flag{"Output", "--metrics", parsed("--metrics", o.metrics), "", "Compute these in each test besides loss and accuracy: top5 (any number), precision, recall, f1, auroc (also f1_micro, f1_weighted, f1_classes …), confusion, perplexity; such as top5,f1,confusion"}
          .after("--log-workers").checked([&o] { base::value_or_throw(metrics::check_names("--metrics", o.metrics, o.classes)); })
          .idle(without_samples(o)).idle(without_test(o)),
  };
}
// clang-format on

bool has_test(const TrainOptions& options) {
  return options.fake_data ? options.test_size > 0 : !options.test.empty();
}

}  // namespace sluice::train
