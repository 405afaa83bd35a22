#include "sluice/train/recipe/reasons.h"

#include "sluice/base/text/join.h"

namespace sluice::train {

base::Idle without_images(const TrainOptions& o) {
  return {o.task != Task::kImages, {"--task"}, base::str("--task ", name_of(o.task), " has no images")};
}

base::Idle without_samples(const TrainOptions& o) {
  return {o.task == Task::kClm || o.task == Task::kMlm,
          {"--task"},
          base::str("--task ", name_of(o.task), " has token files, which have neither samples nor classes")};
}

base::Idle without_texts(const TrainOptions& o) {
  return {o.task == Task::kImages, {"--task"}, "it is for --task clm, mlm and classify"};
}

base::Idle without_token_files(const TrainOptions& o) {
  return {o.task == Task::kImages || o.task == Task::kClassify,
          {"--task"},
          "it counts the tokens of token files: it is for --task clm and --task mlm"};
}

base::Idle without_shards(const TrainOptions& o) {
  return {o.fake_data, {"--fake-data"}, "--fake-data reads no shards"};
}

base::Idle without_test(const TrainOptions& o) {
  return {o.test.empty() && !o.fake_data, {"--test"}, "there is no test set: give it with --test"};
}

base::Idle without_xla(const TrainOptions& o) {
  return {
      o.device == DeviceKind::kCpu, {"--device"}, "--device cpu is LibTorch's own; this is for --device xla"};
}

base::Idle with_shapes(const TrainOptions& o) {
  return {!o.shapes.empty(), {"--shapes"}, "--shapes says how many rows a batch has"};
}

base::Idle in_dev_run(const TrainOptions& o) {
  return {o.fast_dev_run > 0,
          {"--fast-dev-run"},
          "--fast-dev-run N runs one epoch of N steps, and keeps nothing"};
}

base::Idle in_sweep(const TrainOptions& o) {
  return {
      o.find_lr || o.find_batch_size,
      {"--find-lr", "--find-batch-size"},
      base::str(o.find_lr ? "--find-lr" : "--find-batch-size", " is a sweep, which logs nothing of a run")};
}

}  // namespace sluice::train
