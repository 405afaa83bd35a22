// The table of `sluice train`'s flags, from which its help, the keys of --config, docs/flags.md and the
// shells' completion are made.
#pragma once

#include <string>
#include <vector>

#include "sluice/cli/flag.h"
#include "sluice/train/options.h"

namespace sluice::cli {

// The values of the flags: the options, and texts that are parsed later.
struct TrainFlags {
  train::TrainOptions options;
  std::string devices, device_ids, config;
  std::string mean, deviation;
  std::string color_jitter, rand_augment;
  std::string betas, max_time;
  double max_tokens = 0, warmup_tokens = 0, decay_tokens = 0;
  std::vector<std::string> mix, mix_from, test;
  bool cpu_kernels = true, strict = false, detect_anomaly = false, exact = false, trust_config = false,
       allow_pipe = false;
};

// Returns the table over these values, which must outlive everything that is made from it.
std::vector<Flag> train_flags(TrainFlags& flags);

// Returns a choice among the values of an enumeration of TrainOptions. `value` must outlive it.
template <typename Choice>
ChoiceValue choice(const std::string& flag, Choice& value) {
  return {train::choice_names<Choice>(), train::name_of(value),
          [flag, &value](const std::string& text) { value = train::parse_choice<Choice>(flag, text); }};
}

}  // namespace sluice::cli
