#include "sluice/train/recipe/sections.h"

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"

namespace sluice::train {

// clang-format off
std::vector<base::Flag> weights_rows(TrainOptions& o) {
  using base::Flag;
  return {
      Flag{"Recipe", "--ema", &o.ema, "", "Average the weights with this decay, such as 0.999; tests and best use the average; 0: no average"}
          .within(base::from_below(0, 1), "takes a decay of 0 or more and below 1, such as 0.999").setting(ranks::kAverages),
      Flag{"Recipe", "--ema-warmup", &o.ema_warmup, "", "Average over fewer steps at first: the decay is at most (1 + steps) / (10 + steps)"}
          .idle(o.ema == 0, {"--ema"}, "it requires --ema"),
      Flag{"Recipe", "--swa-start", &o.swa_start, "epoch", "Average the weights at the ends of epochs (SWA) from the end of this epoch on; tests and best use the mean; 0: no average"}
          .at_least(0).setting(ranks::kAverages),
      Flag{"Recipe", "--freeze", base::RepeatedText{&o.freeze}, "", "Do not train these parameters, named directly or by their module, such as 'layer1.*' or conv1; repeatable"},
      Flag{"Recipe", "--unfreeze-epoch", &o.unfreeze_epoch, "epoch", "Train the parameters of --freeze from the start of this epoch on; 0: never"}
          .at_least(0).idle(o.freeze.empty(), {"--freeze"}, "it requires --freeze"),
  };
}
// clang-format on

void check_weights(const TrainOptions& o) {
  const auto check_epoch = [&](const char* flag, int64_t epoch) {
    if (epoch > o.epochs && o.fast_dev_run == 0)
      throw_error(Code::kInvalidArgument,
                  base::str(flag, " ", epoch, " has no effect: the run ends after epoch ", o.epochs));
  };
  check_epoch("--swa-start", o.swa_start);
  if (o.ema > 0 && o.swa_start > 0)
    throw_error(Code::kInvalidArgument,
                "--ema and --swa-start both say which average tests measure: give one of them");
  if (o.unfreeze_epoch == 1)
    throw_error(Code::kInvalidArgument, "--unfreeze-epoch 1 is the first one: leave out --freeze");
  check_epoch("--unfreeze-epoch", o.unfreeze_epoch);
}

}  // namespace sluice::train
