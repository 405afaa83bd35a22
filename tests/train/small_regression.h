// A regression that is over in a moment: 44 samples of three numbers, and a net with BatchNorm.
#pragma once

#include <torch/torch.h>

#include <cstdlib>
#include <string>

#include "sluice/base/files/file.h"
#include "sluice/data/dataset.h"
#include "sluice/data/decode/npy.h"
#include "sluice/data/shards/tar_writer.h"
#include "sluice/train/trainer.h"

namespace sluice::train::test {

constexpr int kSamples = 44;

// In memory where there is such a folder: hundreds of checkpoints that reach a disk take minutes.
inline base::TemporaryDirectory scratch() {
  if (base::is_directory("/dev/shm")) ::setenv("TMPDIR", "/dev/shm", /*overwrite=*/0);
  return base::value_or_throw(base::TemporaryDirectory::create());
}

inline std::string npy(const std::vector<float>& row) {
  return data::npy_file("<f4", {static_cast<int64_t>(row.size())},
                        {reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float)});
}

// Batches of 8 in an order of their own for each epoch: five of training, six of the test.
inline Sets regression_sets(const std::string& shard) {
  if (!base::path_exists(shard)) {
    std::string bytes;
    for (int i = 0; i < kSamples; ++i) {
      const std::vector<float> x = {static_cast<float>(i % 7) / 7, static_cast<float>(i % 5) / 5,
                                    static_cast<float>(i % 3) / 3};
      bytes += data::tar_member(base::str("s", i, ".x.npy"), npy(x));
      bytes += data::tar_member(base::str("s", i, ".y.npy"), npy({2 * x[0] - x[1] * x[2] + 0.25F}));
    }
    base::value_or_throw(base::write_file_atomically(shard, bytes + data::tar_end(bytes.size())));
  }
  const auto described = [&] {
    return data::WebDataset(shard).decode("l").to_tuple("x.npy", "y.npy").batch(8).workers(1);
  };
  data::WebDataset train = described(), test = described();
  return {train.shuffle(50).drop_last(), test.pad()};
}

struct NetImpl : torch::nn::Module {
  NetImpl() {
    register_module("first", first);
    register_module("norm", norm);
    register_module("last", last);
  }
  torch::Tensor forward(const torch::Tensor& x) { return last(torch::tanh(norm(first(x)))); }
  torch::nn::Linear first{3, 4};
  torch::nn::BatchNorm1d norm{4};
  torch::nn::Linear last{4, 1};
};
TORCH_MODULE(Net);

// Squared errors, one for each row; their roots are logged as "mae".
inline Steps regression_steps(Net net) {
  Steps steps;
  steps.training_step = [net](Batch& batch) mutable -> StepOutput {
    const torch::Tensor error = net(batch.columns[0]) - batch.columns[1];
    return {.loss = error.square().squeeze(1), .logs = {{"mae", error.detach().abs().mean()}}};
  };
  steps.validation_step = [net](Batch& batch) mutable -> StepOutput {
    const torch::Tensor error = net(batch.columns[0]) - batch.columns[1];
    return {.loss = error.square().squeeze(1), .logs = {{"mae", error.abs()}}};
  };
  return steps;
}

inline TrainOptions regression_options(const std::string& logdir, DeviceKind device = DeviceKind::kCpu) {
  TrainOptions options;
  options.device = device;
  if (device == DeviceKind::kXla) options.plugin = "cpu";
  options.epochs = 3;
  options.lr = 0.05;
  options.lr_schedule = LrSchedule::kConstant;
  options.weight_decay = 0;
  options.log_steps = 1;
  options.quiet = true;
  options.logdir = logdir;
  return options;
}

}  // namespace sluice::train::test
