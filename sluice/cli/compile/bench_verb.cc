// sluice bench step
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "sluice/base/environment.h"
#include "sluice/base/text/join.h"
#include "sluice/bench/measure.h"
#include "sluice/cli/flags/flag.h"
#include "sluice/cli/verbs.h"
#include "sluice/train/recipe/choice.h"

namespace sluice::cli {
namespace {

struct StepFlags {
  CLI::App* app = nullptr;  // the verb that has these flags
  bench::StepOptions options;
  train::Precision precision = train::Precision::kF32;
};

// clang-format off
std::vector<Flag> step_rows(StepFlags& f) {
  bench::StepOptions& o = f.options;
  return {
      Flag{"", "--model", &o.model, "", base::str("One of ", base::join(bench::case_names(), ", "))},
      Flag{"", "--batch-size", &o.batch_size, "", "Samples a step, per replica"}.above_zero(),
      Flag{"", "--image-size", &o.sizes.image_size, "", "Side of the images, in pixels"}.above_zero(),
      Flag{"", "--length", &o.sizes.length, "", "Tokens in a row, of language models"}.above_zero(),
      Flag{"", "--rounds", &o.rounds, "", "Each round times every side once; medians are reported"}.above_zero(),
      Flag{"", "--steps", &o.steps, "", "Steps that are timed together, with one wait at their end, as a training loop does it"}
          .above_zero(),
      Flag{"", "--warmup", &o.warmup, "", "Steps before the first round"}.above_zero(),
      Flag{"", "--devices", &o.devices, "", "Replicas, each with a batch of its own; gradients are averaged. 0: all devices of a TPU or GPU, 1 of a CPU"}
          .zero_or_more(),
      Flag{"", "--threads", &o.threads, "", "LibTorch's threads; 0: its default"},
      Flag{"", "--eager,!--no-eager", &o.eager, "", "Also time LibTorch eager on the CPU, in each memory format"},
      Flag{"", "--captured", &o.captured, "", "Also time the step as a captured one (sluice::capture), after the rounds"},
      Flag{"", "--against", &o.against, "", "Also time this StableHLO file with the same plugin (bench/jax_step.py writes such files)"},
      Flag{"", "--beside", RepeatedText{&o.beside}, "", "Also time this command, which runs the same step (bench/torch_step.py), in turns with ours; repeatable; sluice/bench/other_side.h has the protocol"},
      Flag{"", "--keep-going", &o.keep_going, "", "Leave out a command of --beside that fails; its error is in the JSON"},
      Flag{"", "--seconds", &o.seconds, "", "Begin no further round when the whole bench has taken this many seconds (0: run all rounds)"}
          .zero_or_more(),
      Flag{"", "--precision", train::choice("--precision", f.precision), "", "Compute the forward pass in this type (autocast)"},
      Flag{"", "--cpu-kernels", OnOffValue{&o.cpu_kernels}, "", "off: let XLA's CPU plugin compile every operation itself, without oneDNN"},
      Flag{"", "--plugin", &o.plugin, "", kPluginHelp},
  };
}
// clang-format on

int step(StepFlags& flags) {
  bench::StepOptions& options = flags.options;
  if (flags.app->count("--cpu-kernels") == 0)
    options.cpu_kernels = base::environment_flag("SLUICE_CPU_KERNELS", options.cpu_kernels);
  options.bf16 = flags.precision == train::Precision::kBf16;
  std::printf("%s\n", bench::measure_step(options).dump(2).c_str());
  return 0;
}

}  // namespace

Verb bench_verb() {
  auto flags = std::make_shared<StepFlags>();
  Verb timed_step = {.name = "step",
                     .help = "Time one training step on xla:0 beside LibTorch eager, in one run; prints JSON",
                     .add_flags =
                         [flags](CLI::App& app) {
                           flags->app = &app;
                           add_flags(app, step_rows(*flags));
                         },
                     .run = [flags] { return step(*flags); }};
  return {.name = "bench", .help = "Measure this machine", .verbs = {std::move(timed_step)}};
}

}  // namespace sluice::cli
