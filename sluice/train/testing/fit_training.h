// Trainings of a small regression, by steps of the test's own: the helpers that their tests share.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/data/decode/npy.h"
#include "sluice/data/shards/tar_writer.h"
#include "sluice/train/testing/small_training.h"
#include "sluice/train/trainer.h"

namespace sluice::train {

// An npy file of one row of f32.
inline std::string npy(const std::vector<float>& row) {
  return data::npy_file("<f4", {static_cast<int64_t>(row.size())},
                        {reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float)});
}

inline std::vector<float> input_of(int i) {
  return {static_cast<float>(i % 7) / 7, static_cast<float>(i % 5) / 5, static_cast<float>(i % 3) / 3};
}
inline float target_of(int i) {
  const auto x = input_of(i);
  return 2 * x[0] - x[1] + 0.5F * x[2] + 0.25F;
}

// 50 samples: three numbers, and one that is linear in them.
inline data::WebDataset numbers(const std::string& path) {
  std::string bytes;
  for (int i = 0; i < 50; ++i) {
    bytes += data::tar_member(base::str("s", i, ".x.npy"), npy(input_of(i)));
    bytes += data::tar_member(base::str("s", i, ".y.npy"), npy({target_of(i)}));
  }
  base::value_or_throw(base::write_file_atomically(path, bytes + data::tar_end(bytes.size())));
  return data::WebDataset(path).to_tuple("x.npy", "y.npy");
}

// The suite is instantiated in fit_test.cc, for the CPU and for the device of XLA.
class Fit : public testing::TestWithParam<DeviceKind> {
 protected:
  Fit() : folder_(base::value_or_throw(base::TemporaryDirectory::create())) {
    if (is_initialized()) shutdown();
    torch::manual_seed(4);
    options_ = GetParam() == DeviceKind::kXla ? small_training_on_xla(folder_.path("run"))
                                              : small_training(folder_.path("run"));
    options_.model = "";
    options_.classes = 0;
    options_.fake_data = false;
    options_.epochs = 3;
    options_.log_steps = 2;
    options_.momentum = 0;
    options_.weight_decay = 0;
    set_ = std::make_unique<data::WebDataset>(numbers(folder_.path("a.tar")));
    set_->batch(8);
  }
  ~Fit() override {
    if (is_initialized()) shutdown();
  }

  Sets sets() const {
    auto train = *set_, test = *set_;
    return {train.shuffle(50).drop_last(), test.pad()};
  }
  // Squared errors, one for each row, and their mean absolute one.
  Steps regression() const {
    Steps steps;
    steps.training_step = [model = model_.ptr()](Batch& batch) -> StepOutput {
      const torch::Tensor error = model->forward(batch.columns[0]) - batch.columns[1];
      return {.loss = error.square().squeeze(1),
              .logs = {{"mae", error.detach().abs().mean()}},
              .epoch_logs = {{"bias", error.detach().squeeze(1)}}};
    };
    steps.validation_step = [model = model_.ptr()](Batch& batch) -> StepOutput {
      const torch::Tensor output = model->forward(batch.columns[0]), target = batch.columns[1];
      return {.loss = (output - target).square().squeeze(1),
              .logs = {{"mae", (output - target).abs()}},
              .output = output,
              .target = target};
    };
    steps.metrics = {metrics::MeanSquaredError()};
    return steps;
  }
  std::string fit(const Steps& steps, TrainResult* result = nullptr) {
    testing::internal::CaptureStdout();
    try {
      Trainer trainer(options_, sets());
      const TrainResult found = trainer.fit(model_, steps);
      if (result != nullptr) *result = found;
    } catch (...) {
      testing::internal::GetCapturedStdout();
      throw;
    }
    return testing::internal::GetCapturedStdout();
  }
  static std::string message(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  std::string error_of(const Steps& steps) {
    return message([&] { fit(steps); });
  }
  std::vector<nlohmann::json> rows(const std::string& split) const {
    std::ifstream in(folder_.path("run/metrics.jsonl"));
    std::vector<nlohmann::json> found;
    for (std::string line; std::getline(in, line);)
      if (auto row = nlohmann::json::parse(line); row["split"] == split) found.push_back(row);
    return found;
  }

  base::TemporaryDirectory folder_;
  TrainOptions options_;
  std::unique_ptr<data::WebDataset> set_;
  torch::nn::Linear model_{torch::nn::LinearOptions(3, 1)};
};

}  // namespace sluice::train
