#include "sluice/train/option_checks.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sluice/base/environment.h"
#include "sluice/base/error.h"
#include "sluice/base/quantity.h"
#include "sluice/base/strings.h"
#include "sluice/models/models.h"
#include "sluice/pjrt/machine/find_plugin.h"
#include "sluice/replica/placement.h"
#include "sluice/train/schedule.h"

namespace sluice::train {
namespace option_checks_detail {

constexpr int64_t kMaxNumber = int64_t{1} << 53;
constexpr int64_t kMaxStreams = 1 << 16;        // the largest value that data::WebDataset accepts
constexpr double kMaxSamples = 1e12;            // of a mixture
constexpr int64_t kMinManyClasses = 1'000'000;  // from here on, check_classes counts the weights

template <typename Value>
[[noreturn]] void refuse(const std::string& flag, const char* expected, const Value& found) {
  throw_error(Code::kInvalidArgument, base::str(flag, " takes ", expected, ", not ", found));
}

// `fits` is also false for NaN.
void demand(const char* flag, bool fits, const char* expected, double found) {
  if (!fits) refuse(flag, expected, found);
}

bool is_zero_or_more(double number) { return number >= 0 && std::isfinite(number); }

// Checks --mix and --mix-from.
void check_mixture(const TrainOptions& options) {
  const bool shares = options.mix_by == MixBy::kShare;
  double sum = 0;
  for (const auto& [shards, amount] : options.mix) {
    const bool fits = shares ? amount >= 0 : amount > 0;
    if (!fits || !(amount < kMaxSamples))
      refuse(base::str("--mix ", shards, "=", amount), shares ? "a share of 0 or more" : "a number above 0",
             amount);
    sum += amount;
  }
  if (!options.mix.empty() && !(sum > 0))
    throw_error(Code::kInvalidArgument, "--mix: all shares are 0, expected at least one above");
  int64_t before = 0;
  for (const auto& [step, given] : options.mix_from) {
    const std::string flag = base::str("--mix-from ", step, "=", base::join(given, ","));
    if (step <= before)
      throw_error(Code::kInvalidArgument,
                  base::str(flag, ": expected a step above ", before, ", found ", step));
    before = step;
    const bool fit = std::all_of(given.begin(), given.end(),
                                 [](double share) { return share >= 0 && share < kMaxSamples; });
    if (given.size() != options.mix.size() || !fit || *std::max_element(given.begin(), given.end()) == 0)
      throw_error(Code::kInvalidArgument,
                  base::str(flag, ": expected ", options.mix.size(), " shares of 0 or more, one for each ",
                            "--mix and not all 0, found ", base::join(given, ",")));
  }
}

// The number of an image model's weights that one more class adds.
int64_t weights_of_a_class(const std::string& model) {
  const auto weights = [&](int64_t classes) {
    int64_t all = 0;
    for (const auto& parameter : models::create(model, {.classes = classes})->parameters())
      all += parameter.numel();
    return all;
  };
  return weights(2) - weights(1);
}

// Checks the parts of the schedule wsd that are known before the length of an epoch; an unknown part counts
// as 0.
void check_wsd(const TrainOptions& options) {
  if (options.fast_dev_run > 0) return;                                  // a trial has no such parts
  const bool counted = options.max_steps > 0 || options.max_tokens > 0;  // the run ends within its epochs
  const bool own_decay = options.decay_steps == 0 && options.decay_tokens == 0 && options.decay_epochs < 0;
  base::value_or_throw(check_wsd_parts(options.warmup_epochs,
                                       own_decay && !counted ? -1 : std::max(options.decay_epochs, 0.0),
                                       static_cast<double>(options.epochs), "epochs"));
  if (options.max_steps > 0 && options.max_tokens == 0)
    base::value_or_throw(check_wsd_parts(static_cast<double>(options.warmup_steps),
                                         own_decay ? -1 : static_cast<double>(options.decay_steps),
                                         static_cast<double>(options.max_steps), "steps"));
}

}  // namespace option_checks_detail

void at_least(const char* flag, int64_t value, int64_t least) {
  if (value < least)
    throw_error(Code::kInvalidArgument, base::str(flag, " must be at least ", least, ", not ", value));
  // A number that is too large for the type was read as the type's largest value.
  const char* const more = value == std::numeric_limits<int64_t>::max() ? " or more" : "";
  if (value > option_checks_detail::kMaxNumber)
    throw_error(Code::kInvalidArgument, base::str(flag, " must be at most ", option_checks_detail::kMaxNumber,
                                                  ", not ", value, more));
}

double max_bad_of(const std::string& text) {
  const bool percent = !text.empty() && text.back() == '%';
  const std::string number = percent ? text.substr(0, text.size() - 1) : text;
  size_t used = 0;
  double value = -1;
  try {
    value = std::stod(number, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const double max_value = percent ? 100 : static_cast<double>(option_checks_detail::kMaxNumber);
  const bool fits = used > 0 && used == number.size() && value >= 0 && value <= max_value;
  if (!fits || (!percent && value != std::floor(value)))
    throw_error(Code::kInvalidArgument,
                base::str("--max-bad takes a share of at most 100%, such as 0.1%, or a number of samples, ",
                          "such as 25, not '", text, "'"));
  return percent ? std::min(value / 100, 0.999) : value;
}

void check_data_numbers(const TrainOptions& options) {
  using option_checks_detail::refuse;
  at_least("--shuffle", options.shuffle, 0);
  if (options.streams < 1 || options.streams > option_checks_detail::kMaxStreams)
    refuse("--streams", "a number of 1 to 65536", options.streams);
  at_least("--shard-size", options.shard_size, 0);
  at_least("--original-workers", options.original_workers, 0);
  at_least("--original-samples", options.original_samples, 0);
  at_least("--resize", options.resize, 0);
  at_least("--crop", options.crop, 0);
  at_least("--crop-padding", options.crop_padding, 0);
  at_least("--workers", options.workers, 0);
  at_least("--image-size", options.image_size, 1);
  at_least("--train-size", options.train_size, 1);
  at_least("--test-size", options.test_size, 0);
  max_bad_of(options.max_bad);
  for (const float mean : options.mean)
    if (!(mean >= 0 && mean <= 1)) refuse("--mean", "numbers of 0 to 1, of pixels in 0…1", mean);
  for (const float deviation : options.deviation)
    if (!(deviation > 0 && deviation <= 1))
      refuse("--std", "numbers above 0 and up to 1, of pixels in 0…1", deviation);
  option_checks_detail::check_mixture(options);
}

void check_recipe_numbers(const TrainOptions& options) {
  using option_checks_detail::demand;
  using option_checks_detail::is_zero_or_more;
  const char* const zero_or_more = "a number of 0 or more";
  demand("--lr", is_zero_or_more(options.lr), zero_or_more, options.lr);
  demand("--min-lr", is_zero_or_more(options.min_lr), zero_or_more, options.min_lr);
  if (options.lr_schedule != LrSchedule::kConstant && options.min_lr > options.lr)
    throw_error(Code::kInvalidArgument, base::str("--min-lr ", options.min_lr, " is above --lr ", options.lr,
                                                  ": expected one that the schedule can go down to"));
  demand("--momentum", options.momentum >= 0 && options.momentum < 1, "a number of 0 or more and below 1",
         options.momentum);
  demand("--weight-decay", is_zero_or_more(options.weight_decay), zero_or_more, options.weight_decay);
  demand("--label-smoothing", options.label_smoothing >= 0 && options.label_smoothing < 1,
         "a share of 0 or more and below 1", options.label_smoothing);
  demand("--target-accuracy", options.target_accuracy >= 0 && options.target_accuracy <= 100,
         "per cent, 0 to 100", options.target_accuracy);
}

void check_schedule(const TrainOptions& options) {
  ScheduleOptions schedule;
  schedule.lr = options.lr;
  schedule.every_epochs = options.lr_every_epochs;
  schedule.divisor = options.lr_divisor;
  if (options.lr_schedule == LrSchedule::kInverseSqrt) {
    schedule.kind = options.lr_schedule;
    // A warm-up in steps or tokens has some length.
    const bool counted = options.warmup_steps > 0 || options.warmup_tokens > 0;
    schedule.warmup_epochs = counted ? 1 : options.warmup_epochs;
  }
  base::value_or_throw(check(schedule));
  if (options.lr_schedule == LrSchedule::kWsd) option_checks_detail::check_wsd(options);
}

void check_machine(const TrainOptions& options) {
  const bool cpu = options.device == DeviceKind::kCpu;
  if (cpu && (options.devices > 1 || !options.device_ids.empty()))
    throw_error(Code::kInvalidArgument,
                base::str("--device cpu is LibTorch's own and has one replica: leave --devices and ",
                          "--device-ids out, or take --device xla"));
  if (!cpu && !options.plugin.empty() && options.plugin != "auto") {
    const auto found = pjrt::find_plugin(options.plugin, {});  // no folders: only checks the name or path
    if (!found && found.error().code() == Code::kInvalidArgument)
      throw_error(found.error().code(), found.error().what());
  }
  const auto placement = base::value_or_throw(replica::find_placement(base::environment));
  if (cpu && placement && placement->processes > 1)
    throw_error(Code::kInvalidArgument,
                base::str("--device cpu trains in one process, and ", placement->source, " started ",
                          placement->processes, ": take --device xla"));
}

void check_classes(const TrainOptions& options) {
  if (options.classes < option_checks_detail::kMinManyClasses) return;
  const double bytes = 4.0 * static_cast<double>(options.classes) *
                       static_cast<double>(option_checks_detail::weights_of_a_class(options.model));
  const double memory =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (memory > 0 && bytes > memory)
    throw_error(Code::kInvalidArgument,
                base::str("--classes ", options.classes, ": the last layer of ", options.model, " takes ",
                          base::memory_text(static_cast<uint64_t>(bytes)), ", and this machine has ",
                          base::memory_text(static_cast<uint64_t>(memory))));
}

}  // namespace sluice::train
