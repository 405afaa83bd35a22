#include "sluice/cli/no_effect.h"

#include <vector>

#include "sluice/base/strings.h"

namespace sluice::cli {
namespace {

using FlagNames = std::vector<std::string>;

// Flags that have no effect while `idle` holds. `causes`: the flags that can make it hold, if they are given.
struct Rule {
  FlagNames flags;
  bool idle;
  FlagNames causes;
  std::string why;
};

// Flags that only concern images in shards.
const FlagNames kOfImagesInShards = {
    "--images",       "--original-workers", "--original-samples",    "--max-sample",
    "--max-buffered", "--max-pixels",       "--exif-rotation",       "--resize",
    "--crop",         "--crop-padding",     "--random-resized-crop", "--flip",
    "--color-jitter", "--rand-augment",     "--auto-contrast",       "--mean",
    "--std",          "--remainder"};

FlagNames joined(FlagNames names, const FlagNames& more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

std::vector<Rule> rules_for(const train::TrainOptions& o, const std::set<std::string>& given) {
  const bool schedule_divides = o.lr_schedule == train::LrSchedule::kStep ||
                                o.lr_schedule == train::LrSchedule::kWarmupAndExponentialDecay;
  using Kind = train::OptimizerKind;
  using train::Task;
  return {
      {joined(kOfImagesInShards, {"--channels", "--mixup", "--cutmix", "--train-size", "--test-size",
                                  "--image-size", "--log-images"}),
       o.task != Task::kImages,
       {"--task"},
       base::str("--task ", train::name_of(o.task), " has no images")},
      {{"--where", "--test-where", "--labels", "--classes", "--streams", "--shard-size", "--on-error",
        "--max-bad", "--allow-unknown-loss", "--workers", "--prefetch", "--cache", "--cache-size",
        "--label-smoothing", "--metrics", "--target-accuracy", "--shuffle"},
       o.task == Task::kClm || o.task == Task::kMlm,
       {"--task"},
       base::str("--task ", train::name_of(o.task),
                 " has token files, which have neither samples nor classes")},
      {{"--tokenizer", "--length", "--shapes", "--pack", "--long-documents", "--mask-share", "--texts"},
       o.task == Task::kImages,
       {"--task"},
       "it is for --task clm, mlm and classify"},
      {{"--max-tokens", "--warmup-tokens", "--decay-tokens"},
       o.task == Task::kImages || o.task == Task::kClassify,
       {"--task"},
       "it counts the tokens of token files: it is for --task clm and --task mlm"},
      {{"--texts"}, o.task != Task::kClassify, {"--task"}, "it is for --task classify"},
      {{"--mask-share"}, o.task != Task::kMlm, {"--task"}, "it is for --task mlm"},
      {{"--long-documents"},
       o.shapes.empty() && !o.pack && o.task != Task::kClassify,
       {"--shapes", "--pack"},
       "running text has no documents: it is for --shapes and --pack"},
      {{"--batch-size", "--test-batch-size"},
       !o.shapes.empty(),
       {"--shapes"},
       "--shapes says how many rows a batch has"},
      {{"--train-size", "--test-size", "--image-size"},
       o.task == Task::kImages && !o.fake_data,
       {"--train", "--test"},
       "it describes the images of --fake-data; with shards, Sluice reads it from the shards"},
      {joined(kOfImagesInShards,
              {"--train", "--mix", "--test", "--where", "--test-where", "--labels", "--shuffle", "--streams",
               "--shard-size", "--on-error", "--max-bad", "--allow-unknown-loss", "--workers", "--prefetch",
               "--cache", "--cache-size"}),
       o.fake_data,
       {"--fake-data"},
       "--fake-data reads no shards"},
      {{"--crop-padding"}, o.crop == 0, {"--crop"}, "it requires --crop"},
      {{"--cache-size"}, o.cache.empty(), {"--cache"}, "the folder is missing: give it with --cache"},
      {{"--original-samples"},
       o.original_workers == 0,
       {"--original-workers"},
       "it requires --original-workers; without it the shards are counted"},
      {{"--streams", "--remainder"},
       o.original_workers > 0,
       {"--original-workers"},
       "the order of --original-workers has neither streams nor a remainder"},
      {{"--mix-by", "--mix-from", "--epoch-samples"},
       o.mix.empty(),
       {"--train", "--fake-data"},
       "it requires --mix"},
      {{"--mix-from", "--epoch-samples"},
       o.mix_by != train::MixBy::kShare,
       {"--mix-by"},
       base::str("the numbers of --mix-by ", train::name_of(o.mix_by), " say what an epoch has")},
      {{"--remainder"},
       !o.mix.empty(),
       {"--mix"},
       "samples that do not fill a batch of a mixture always come in the next epoch"},
      {{"--momentum"},
       o.optimizer != Kind::kSgd && o.optimizer != Kind::kRmsProp,
       {"--optimizer"},
       base::str("--optimizer ", train::name_of(o.optimizer), " has no momentum")},
      {{"--nesterov"},
       o.optimizer != Kind::kSgd,
       {"--optimizer"},
       base::str("--optimizer ", train::name_of(o.optimizer), " has no Nesterov momentum")},
      {{"--betas"},
       o.optimizer != Kind::kAdam && o.optimizer != Kind::kAdamW,
       {"--optimizer"},
       base::str("--optimizer ", train::name_of(o.optimizer), " has no betas")},
      {{"--eps"}, o.optimizer == Kind::kSgd, {"--optimizer"}, "--optimizer sgd has no epsilon"},
      {{"--no-decay"},
       o.weight_decay == 0,
       {"--weight-decay"},
       "--weight-decay 0 makes no parameter smaller"},
      {{"--decay-epochs", "--decay-steps", "--decay-tokens"},
       o.lr_schedule != train::LrSchedule::kWsd,
       {"--lr-schedule"},
       base::str("--lr-schedule ", train::name_of(o.lr_schedule), " has no decay of its own: wsd has")},
      {{"--epochs", "--steps-per-epoch", "--max-steps", "--max-tokens", "--test-every-epochs",
        "--test-every-steps", "--limit-test-batches", "--patience", "--save-top-k", "--log-steps",
        "--save-steps", "--save-minutes", "--target-accuracy", "--logdir", "--resume", "--mlflow",
        "--mlflow-experiment", "--histograms"},
       o.fast_dev_run > 0,
       {"--fast-dev-run"},
       "--fast-dev-run N runs one epoch of N steps, and keeps nothing"},
      {{"--mlflow", "--mlflow-experiment", "--histograms", "--log-images", "--profile", "--summary"},
       o.find_lr || o.find_batch_size,
       {"--find-lr", "--find-batch-size"},
       base::str(o.find_lr ? "--find-lr" : "--find-batch-size", " is a sweep, which logs nothing of a run")},
      {{"--steps-per-epoch"},
       o.overfit_batches > 0,
       {"--overfit-batches"},
       "the batches of --overfit-batches are the epoch"},
      {{"--lr-every-epochs", "--lr-divisor"},
       !schedule_divides,
       {"--lr-schedule"},
       base::str("--lr-schedule ", train::name_of(o.lr_schedule),
                 " divides nothing: step and WarmupAndExponentialDecay do")},
      {{"--min-lr"},
       o.lr_schedule == train::LrSchedule::kConstant,
       {"--lr-schedule"},
       "--lr-schedule constant never goes down"},
      {{"--batch-size"},
       o.global_batch_size > 0,
       {"--global-batch-size"},
       "--global-batch-size decides: give one of them"},
      {{"--ema-warmup"}, o.ema == 0, {"--ema"}, "it requires --ema"},
      {{"--unfreeze-epoch"}, o.freeze.empty(), {"--freeze"}, "it requires --freeze"},
      {{"--min-delta"}, o.patience == 0, {"--patience"}, "without --patience no run ends by its tests"},
      {{"--test-batch-size", "--target-accuracy", "--test-every-epochs", "--test-every-steps",
        "--limit-test-batches", "--patience", "--save-top-k"},
       o.test.empty() && !o.fake_data,
       {"--test"},
       "there is no test set: give it with --test"},
      {{"--mlflow-experiment"}, o.mlflow.empty(), {"--mlflow"}, "it requires --mlflow"},
      {{"--metrics", "--log-images"},
       o.test.empty() && !o.fake_data,
       {"--test"},
       "there is no test set: give it with --test"},
      {{"--devices"}, given.count("--device-ids") > 0, {"--device-ids"}, "--device-ids names them: give one"},
      {{"--plugin", "--cpu-kernels", "--strict", "--detect-anomaly", "--exact", "--sync-batch-norm",
        "--check-replicas", "--report"},
       o.device == train::DeviceKind::kCpu,
       {"--device"},
       "--device cpu is LibTorch's own; this is for --device xla"},
  };
}

}  // namespace

std::set<std::string> given_flags(const CLI::App& verb) {
  std::set<std::string> given;
  for (const CLI::Option* option : verb.get_options())
    if (option->count() > 0 && !option->get_lnames().empty())
      given.insert("--" + option->get_lnames().front());
  return given;
}

std::string flags_without_effect(const CLI::App& verb, const train::TrainOptions& options,
                                 const std::set<std::string>& on_line,
                                 const std::set<std::string>& of_environment) {
  std::set<std::string> given = given_flags(verb);
  for (const std::string& flag : of_environment) given.erase(flag);
  std::vector<std::string> lines;
  std::set<std::string> told;
  for (const Rule& rule : rules_for(options, given)) {
    if (!rule.idle) continue;
    bool overruled = false;  // by the command line; the file's flags may then have no effect
    for (const std::string& cause : rule.causes) overruled = overruled || on_line.count(cause) > 0;
    for (const std::string& flag : rule.flags) {
      if (given.count(flag) == 0 || (overruled && on_line.count(flag) == 0)) continue;
      if (told.insert(flag).second) lines.push_back(base::str(flag, " has no effect: ", rule.why));
    }
  }
  return base::join(lines, "\n");
}

}  // namespace sluice::cli
