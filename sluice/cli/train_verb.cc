// sluice train
#include <charconv>
#include <memory>

#include "sluice/base/error.h"
#include "sluice/base/strings.h"
#include "sluice/cli/no_effect.h"
#include "sluice/cli/verbs.h"
#include "sluice/session/device_list.h"
#include "sluice/train/options.h"

namespace sluice::cli {
namespace {

using train::TrainOptions;

// What the flags fill: the options, and texts that need a second look.
struct Flags {
  TrainOptions options;
  std::string devices, device_ids, config;
  std::string mean, deviation;
  bool cpu_kernels = true, strict = false;
};

void data_flags(CLI::App& app, Flags& flags) {
  TrainOptions& o = flags.options;
  app.add_option("--train", o.train,
                 "Training shards: paths, {0000..0639} and {a,b} braces, globs, :: lists, @file")
      ->group("Data");
  app.add_option("--test", o.test, "Test shards; without them nothing is evaluated")->group("Data");
  app.add_option("--classes", o.classes, "Number of classes")->group("Data");
  app.add_option("--images", o.images, "Extensions of the picture in a sample")->group("Data");
  app.add_option("--labels", o.labels, "Extension of the class number in a sample")->group("Data");
  app.add_option("--channels", o.channels, "3: colour, 1: grey")->group("Data");
  app.add_option("--shuffle", o.shuffle, "Shuffle buffers of all processes together [samples]")
      ->group("Data");
  app.add_option("--streams", o.streams,
                 "Streams that an epoch is dealt to, a multiple of the replicas; the order depends on it")
      ->group("Data");
  app.add_option("--remainder", o.remainder,
                 "Samples that do not fill a batch: drop, carry (into the next epoch) or pad")
      ->check(CLI::IsMember({"drop", "carry", "pad"}))
      ->group("Data");
  app.add_option("--shard-size", o.shard_size, "Samples in each training shard, 0: counted")->group("Data");
  app.add_option(
         "--original-workers", o.original_workers,
         "The order of PyTorch's DataLoader over webdataset with so many workers, 0: the default order")
      ->group("Data");
  app.add_option("--original-samples", o.original_samples,
                 "What an epoch is believed to have with --original-workers, 0: counted")
      ->group("Data");
  app.add_option("--on-error", o.on_error,
                 "Bad shards and samples: stop, skip, or retry (read again, then skip)")
      ->check(CLI::IsMember({"stop", "skip", "retry"}))
      ->group("Data");
  app.add_option("--max-bad", o.max_bad, "Bad samples left out of an epoch at most: 0.1% or a number")
      ->group("Data");
  app.add_option("--resize", o.resize, "Shorter side after resizing [pixels], 0: as it is")->group("Data");
  app.add_option("--crop", o.crop, "Random crop in training, centre crop in the test [pixels], 0: none")
      ->group("Data");
  app.add_option("--crop-padding", o.crop_padding, "Border of zeros before the random crop [pixels]")
      ->group("Data");
  app.add_option("--mixup", o.mixup, "Alpha of mixup in training, such as 0.2; 0: none")->group("Data");
  app.add_option("--cutmix", o.cutmix, "Alpha of CutMix in training, such as 1.0; 0: none")->group("Data");
  app.add_option("--random-resized-crop", o.random_resized_crop,
                 "Random part in training, resized to this side; in the test the middle [pixels], 0: none")
      ->group("Data");
  app.add_flag("--flip", o.flip, "Mirror half of the training pictures")->group("Data");
  app.add_option("--mean", flags.mean, "Of the channels, in 0…1, such as 0.49,0.48,0.45; empty: 0.5 each")
      ->group("Data");
  app.add_option("--std", flags.deviation, "Of the channels, in 0…1; empty: 0.25 each")->group("Data");
  app.add_option("--workers", o.workers, "Decoding threads, 0: one for each core, at most 8")->group("Data");
  app.add_option("--cache", o.cache, "Folder that keeps shards from buckets and web servers")->group("Data");
  app.add_option("--cache-size", o.cache_size, "Bytes in it at most [GiB]")
      ->check(CLI::Range(1, 1 << 20))
      ->group("Data");
  app.add_option("--prefetch", o.prefetch, "Batches ahead on the host [MiB]")
      ->check(CLI::Range(1, 1 << 20))
      ->group("Data");
  app.add_flag("--fake-data", o.fake_data, "Random pictures instead of shards")->group("Data");
  app.add_option("--image-size", o.image_size, "Of fake data [pixels]")->group("Data");
  app.add_option("--train-size", o.train_size, "Of fake data [samples]")->group("Data");
  app.add_option("--test-size", o.test_size, "Of fake data [samples]")->group("Data");
}

void recipe_flags(CLI::App& app, Flags& flags) {
  TrainOptions& o = flags.options;
  app.add_option("--model", o.model, "resnet18, resnet50, cifar_resnet20, mlp, lenet, transformer, …")
      ->group("Recipe");
  app.add_option("--weights", o.weights,
                 "Start from these: safetensors, a state dict of Python's torch.save, or a checkpoint; also "
                 "gs://… and https://…")
      ->group("Recipe");
  app.add_option("--batch-size", o.batch_size, "Per replica [samples]")->group("Recipe");
  app.add_option("--global-batch-size", o.global_batch_size,
                 "All replicas and accumulated batches together [samples], 0: not used")
      ->group("Recipe");
  app.add_option("--test-batch-size", o.test_batch_size, "Per replica [samples], 0: as --batch-size")
      ->group("Recipe");
  app.add_option("--accumulate", o.accumulate, "Batches for one update")->group("Recipe");
  app.add_option("--epochs", o.epochs, "Passes over the training set")->group("Recipe");
  app.add_option("--steps-per-epoch", o.steps_per_epoch, "Updates in an epoch, 0: the whole training set")
      ->group("Recipe");
  app.add_option("--optimizer", o.optimizer, "sgd, adam or adamw")->group("Recipe");
  app.add_option("--lr", o.lr, "Learning rate; never scaled by the number of replicas")->group("Recipe");
  app.add_option("--momentum", o.momentum, "Of sgd")->group("Recipe");
  app.add_option("--weight-decay", o.weight_decay, "Of all weights")->group("Recipe");
  app.add_option("--label-smoothing", o.label_smoothing, "Share of each label spread over all classes")
      ->group("Recipe");
  app.add_option("--clip-norm", o.clip_norm, "Largest norm of the gradients, 0: no limit")->group("Recipe");
  app.add_option("--lr-schedule", o.lr_schedule, "constant, step, cosine or WarmupAndExponentialDecay")
      ->group("Recipe");
  app.add_option("--warmup-epochs", o.warmup_epochs, "Linear rise from 0 [epochs]; -1: the schedule's own")
      ->group("Recipe");
  app.add_option("--lr-every-epochs", o.lr_every_epochs,
                 "step, WarmupAndExponentialDecay: divide so often [epochs]")
      ->group("Recipe");
  app.add_option("--lr-divisor", o.lr_divisor, "step, WarmupAndExponentialDecay: divide by this")
      ->group("Recipe");
  app.add_option("--min-lr", o.min_lr, "The schedule goes no lower")->group("Recipe");
  app.add_option("--seed", o.seed, "Of weights, order, augmentation and dropout")->group("Recipe");
  app.add_option("--target-accuracy", o.target_accuracy, "Exit with status 21 below this [%], 0: no target")
      ->group("Recipe");
}

void machine_flags(CLI::App& app, Flags& flags) {
  TrainOptions& o = flags.options;
  app.add_option("--device", o.device, "xla, or cpu for LibTorch's own CPU (eager)")->group("Machine");
  app.add_option("--plugin", o.plugin, base::str("PJRT plugin of xla: ", kPluginHelp))->group("Machine");
  app.add_option(
         "--devices", flags.devices,
         "Number of devices, all, or a list of them: [5] or 5,; empty: all of a TPU or GPU, 1 of a CPU")
      ->group("Machine");
  app.add_option("--device-ids", flags.device_ids, "These devices: 5 or 0,1,4")->group("Machine");
  app.add_option("--precision", o.precision, "f32, or bf16 (weights stay f32)")->group("Machine");
  app.add_flag("--sync-batch-norm", o.sync_batch_norm,
               "BatchNorm's statistics over the batches of all replicas")
      ->group("Machine");
  app.add_option("--check-replicas", o.check_replicas,
                 "Compare the weights on all replicas every so many steps (slow), 0: never")
      ->group("Machine");
  app.add_option("--cpu-kernels", flags.cpu_kernels,
                 "off: XLA's CPU plugin compiles every operation itself, without calling oneDNN")
      ->option_text("on|off")
      ->group("Machine");
  app.add_flag("--strict", flags.strict,
               "An operation that xla cannot do, or a read within a step, is an error")
      ->group("Machine");
}

void output_flags(CLI::App& app, Flags& flags) {
  TrainOptions& o = flags.options;
  app.add_option("--logdir", o.logdir,
                 "Folder for checkpoints, metrics and TensorBoard events; also gs://bucket/folder")
      ->group("Output");
  app.add_option("--log-steps", o.log_steps,
                 "A line every so many steps, counted within the epoch; of a shorter epoch at its end")
      ->group("Output");
  app.add_option("--log-workers", o.log_workers,
                 "Whose lines: leader prints the mean over all replicas, all: each process that of its own")
      ->option_text("leader|all")
      ->group("Output");
  app.add_option(
         "--save-steps", o.save_steps,
         "A checkpoint every so many steps, counted within the epoch, and after each epoch; 0: only then")
      ->group("Output");
  // The text is given when the flag stands without a value.
  app.add_option("--resume", o.resume,
                 "Go on from a checkpoint folder or gs://…; without a value: from LOGDIR/last, if there")
      ->expected(0, 1)
      ->default_str("")
      ->group("Output");
  app.add_flag("--report", o.report, "Print what the device did at the end")->group("Output");
  app.add_flag("--json", o.json, "JSON lines on standard output, everything else on standard error")
      ->group("Output");
  app.add_option("--config", flags.config, "TOML file with any of these flags; the command line wins")
      ->group("Output");
}

template <typename T>
std::vector<T> numbers(const std::string& flag, std::string text) {
  std::vector<T> result;
  if (base::starts_with(text, "[") && base::ends_with(text, "]")) text = text.substr(1, text.size() - 2);
  for (const std::string& part : base::split(text, ',')) {
    const std::string_view number = base::trim(part);
    if (number.empty()) continue;
    T value{};
    auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size())
      throw Usage(base::str(flag, " takes numbers separated by commas, not \"", text, "\""));
    result.push_back(value);
  }
  return result;
}

// --devices and --device-ids: a number of devices, or which.
void choose_devices(const Flags& flags, TrainOptions& options) {
  try {
    train::DeviceList list = train::parse_devices("--devices", flags.devices);
    const std::vector<int> ids = train::parse_device_ids("--device-ids", flags.device_ids);
    if (!ids.empty()) list = {static_cast<int>(ids.size()), ids};
    options.devices = list.count;
    options.device_ids = list.ids;
  } catch (const Error& error) {
    throw Usage(error.what());
  }
}

void finish(CLI::App& app, Flags& flags) {
  const std::set<std::string> on_line = given_flags(app);
  const std::set<std::string> of_environment = apply_environment(app);
  if (!flags.config.empty()) apply_config(app, flags.config);
  TrainOptions& options = flags.options;
  if (app.count("--resume") > 0 && (options.resume.empty() || options.resume == "true"))
    options.resume = "auto";
  options.mean = numbers<float>("--mean", flags.mean);
  options.deviation = numbers<float>("--std", flags.deviation);
  choose_devices(flags, options);
  if (app.count("--cpu-kernels") > 0) options.cpu_kernels = flags.cpu_kernels;
  if (app.count("--strict") > 0) options.strict = flags.strict;
  if (const std::string idle = flags_without_effect(app, options, on_line, of_environment); !idle.empty())
    throw Usage(idle);
  options.config = app.config_to_str(/*default_also=*/true);
  try {
    train::check(options);
  } catch (const Error& error) {
    throw Usage(error.what());
  }
}

}  // namespace

void add_train_verb(CLI::App& program, Action& action) {
  CLI::App* verb =
      program.add_subcommand("train", "Train a model on shards, with evaluation and checkpoints");
  verb->footer(
      "A line's Rate and GlobalRate are examples a second of one replica: the moving average from line to "
      "line, and the mean since the epoch began. The curves examples/sec and Global Rate are of all replicas "
      "(docs/training.md).\n"
      "Exit status: 0 done, 1 failed, 2 wrong usage, 21 target accuracy missed, 130 interrupted, 143 "
      "terminated.");
  verb->option_defaults()->take_last();  // a flag at the end of a script's command line wins
  auto flags = std::make_shared<Flags>();
  recipe_flags(*verb, *flags);
  data_flags(*verb, *flags);
  machine_flags(*verb, *flags);
  output_flags(*verb, *flags);
  verb->callback([verb, flags, &action] {
    action = [verb, flags] {
      finish(*verb, *flags);
      return train::train(flags->options).exit_status;
    };
  });
}

}  // namespace sluice::cli
