#include "sluice/train/recipe/sections.h"

#include <algorithm>

#include "sluice/base/error.h"
#include "sluice/base/result.h"
#include "sluice/base/text/join.h"
#include "sluice/train/optimizers/schedule.h"
#include "sluice/train/recipe/choice.h"
#include "sluice/train/recipe/reasons.h"

namespace sluice::train {
namespace recipe_schedule_detail {

// Checks that one of the three ways to say the length of a part of the run is used.
void check_one(const char* flag, const char* what, double epochs, int64_t steps, int64_t tokens) {
  if ((epochs >= 0) + (steps > 0) + (tokens > 0) > 1)
    throw_error(Code::kInvalidArgument,
                base::str(flag, "-epochs, ", flag, "-steps and ", flag, "-tokens say how long the ", what,
                          " is: give one of them"));
}

// Checks the parts of the schedule wsd that are known before the length of an epoch; an unknown part counts
// as 0.
void check_wsd(const TrainOptions& o) {
  if (o.fast_dev_run > 0) return;                            // a trial has no such parts
  const bool counted = o.max_steps > 0 || o.max_tokens > 0;  // the run ends within its epochs
  const bool own_decay = o.decay_steps == 0 && o.decay_tokens == 0 && o.decay_epochs < 0;
  base::value_or_throw(check_wsd_parts(o.warmup_epochs,
                                       own_decay && !counted ? -1 : std::max(o.decay_epochs, 0.0),
                                       static_cast<double>(o.epochs), "epochs"));
  if (o.max_steps > 0 && o.max_tokens == 0)
    base::value_or_throw(check_wsd_parts(static_cast<double>(o.warmup_steps),
                                         own_decay ? -1 : static_cast<double>(o.decay_steps),
                                         static_cast<double>(o.max_steps), "steps"));
}

}  // namespace recipe_schedule_detail

// clang-format off
std::vector<base::Flag> schedule_rows(TrainOptions& o) {
  using base::Flag;
  const std::string schedule = base::str("--lr-schedule ", name_of(o.lr_schedule));
  const base::Idle without_decay = {o.lr_schedule != LrSchedule::kWsd, {"--lr-schedule"}, base::str(schedule, " has no decay of its own: wsd has")};
  const bool divides = o.lr_schedule == LrSchedule::kStep || o.lr_schedule == LrSchedule::kWarmupAndExponentialDecay;
  const base::Idle divides_nothing = {!divides, {"--lr-schedule"}, base::str(schedule, " divides nothing: step and WarmupAndExponentialDecay do")};
  return {
      Flag{"Recipe", "--lr-schedule", choice("--lr-schedule", o.lr_schedule), "", "Lower the learning rate in this way; docs/training.md explains each"}
          .setting(),
      Flag{"Recipe", "--warmup-epochs", &o.warmup_epochs, "epochs", "Raise the learning rate linearly from 0 over N epochs; -1: the schedule's default"}
          .unless_given({"--warmup-steps", "--warmup-tokens"}).setting_if(o.warmup_epochs >= 0),
      Flag{"Recipe", "--warmup-steps", &o.warmup_steps, "", "Raise the learning rate over N updates, instead of --warmup-epochs; 0: not used"}
          .at_least(0).setting(),
      Flag{"Recipe", "--warmup-tokens", base::LargeNumber{&o.warmup_tokens}, "tokens", "Raise the learning rate until the update that reaches N tokens of the token files, such as 4e8, instead of --warmup-epochs (clm, mlm); 0: not used"}
          .at_least(0).idle(without_token_files(o)).setting(),
      Flag{"Recipe", "--decay-epochs", &o.decay_epochs, "epochs", "wsd: lower the learning rate over the last N epochs; -1: a tenth of the run"}
          .idle(without_decay).setting_if(o.decay_epochs >= 0),
      Flag{"Recipe", "--decay-steps", &o.decay_steps, "", "wsd: lower the learning rate over the last N updates, instead of --decay-epochs; 0: not used"}
          .at_least(0).idle(without_decay).setting(),
      Flag{"Recipe", "--decay-tokens", base::LargeNumber{&o.decay_tokens}, "tokens", "wsd: lower the learning rate over the last N tokens of the run, instead of --decay-epochs (clm, mlm); 0: not used"}
          .at_least(0).idle(without_token_files(o)).idle(without_decay).setting(),
      Flag{"Recipe", "--lr-every-epochs", &o.lr_every_epochs, "epochs", "step, WarmupAndExponentialDecay: divide the learning rate every N epochs"}
          .idle(divides_nothing),
      Flag{"Recipe", "--lr-divisor", &o.lr_divisor, "", "step, WarmupAndExponentialDecay: divide the learning rate by this"}
          .idle(divides_nothing),
      Flag{"Recipe", "--min-lr", &o.min_lr, "", "Keep the schedule from going below this learning rate"}
          .within(base::from(0), "takes a number of 0 or more")
          .idle(o.lr_schedule == LrSchedule::kConstant, {"--lr-schedule"}, "--lr-schedule constant never goes down"),
  };
}
// clang-format on

void check_schedule(const TrainOptions& o) {
  namespace detail = recipe_schedule_detail;
  if (o.lr_schedule != LrSchedule::kConstant && o.min_lr > o.lr)
    throw_error(Code::kInvalidArgument, base::str("--min-lr ", o.min_lr, " is above --lr ", o.lr,
                                                  ": expected one that the schedule can go down to"));
  detail::check_one("--warmup", "warm-up", o.warmup_epochs, o.warmup_steps, o.warmup_tokens);
  detail::check_one("--decay", "decay", o.decay_epochs, o.decay_steps, o.decay_tokens);
  ScheduleOptions schedule;
  schedule.lr = o.lr;
  schedule.every_epochs = o.lr_every_epochs;
  schedule.divisor = o.lr_divisor;
  if (o.lr_schedule == LrSchedule::kInverseSqrt) {
    schedule.kind = o.lr_schedule;
    // A warm-up in steps or tokens has some length.
    const bool counted = o.warmup_steps > 0 || o.warmup_tokens > 0;
    schedule.warmup_epochs = counted ? 1 : o.warmup_epochs;
  }
  base::value_or_throw(check(schedule));
  if (o.lr_schedule == LrSchedule::kWsd) detail::check_wsd(o);
}

}  // namespace sluice::train
