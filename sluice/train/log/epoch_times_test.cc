#include "sluice/train/log/epoch_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "sluice/base/files/file.h"
#include "sluice/data/shards/tar_writer.h"
#include "sluice/train/testing/small_training.h"
#include "sluice/train/trainer.h"

namespace sluice::train {
namespace {

TEST(EpochTimes, AddUpToTheWallTimeWithoutCompiling) {
  // 10 s: 3 of compiling, during 1 of which a program ran; 4 with a program in all; 2 without data.
  const EpochTimes times{sessions::time_parts(10, {5, 1, 1}, {9, 4, 3}, 2)};
  EXPECT_DOUBLE_EQ(times.compiling, 3);
  EXPECT_DOUBLE_EQ(times.device, 3);
  EXPECT_DOUBLE_EQ(times.input, 2);
  EXPECT_DOUBLE_EQ(times.trace, 2);
  EXPECT_DOUBLE_EQ(times.seconds(), 7);
  EXPECT_STREQ(times.bound(), "device");
  EXPECT_EQ(describe(times, 2),
            "Epoch 2 was device-bound: waiting for data 29 %, tracing 29 %, device 42 % of 7.0 s; "
            "compiling took 3.0 s more.");
  // Clocks that are read one after the other may disagree a little; no share is negative.
  const EpochTimes odd{sessions::time_parts(1, {0, 0, 0}, {1.01, 0, 0}, 0.1)};
  EXPECT_DOUBLE_EQ(odd.device, 1);
  EXPECT_DOUBLE_EQ(odd.input + odd.trace, 0);
}

TEST(EpochTimes, WithoutProgramsAllButWaitingIsTheDevices) {
  const EpochTimes times{sessions::eager_time_parts(4, 3)};
  EXPECT_EQ(describe(times, 1),
            "Epoch 1 was input-bound: waiting for data 75 %, tracing 0 %, device 25 % of 4.0 s.");
}

TEST(EpochTimes, TheProcessWhoseDeviceWaitedMostCounts) {
  EpochTimes busy, starved;
  busy.device = 9;
  busy.trace = 1;
  starved.device = 2;
  starved.input = 8;
  size_t process = 9;
  const auto found = least_busy({text_of(busy), text_of(starved), text_of(busy)}, &process);
  ASSERT_TRUE(found);
  EXPECT_EQ(process, 1u);
  EXPECT_DOUBLE_EQ(found->input, 8);
  EXPECT_THAT(least_busy({"1 2 3"}, &process).error().what(), testing::HasSubstr("expected four numbers"));
}

TrainOptions one_epoch(const std::string& logdir) {
  TrainOptions options = small_training_on_xla(logdir);
  options.classes = 2;
  options.channels = 3;
  options.train_size = 20;
  options.test_size = 1;
  options.batch_size = 2;
  options.epochs = 1;
  options.lr = 0.01;
  options.log_steps = 20;
  return options;
}

struct Said {
  char bound[16] = "";
  int input = 0, trace = 0, device = 0;
  std::string text;
};

// What the end of the first epoch says.
template <typename Model>
Said said_of(const TrainOptions& options, Model model) {
  if (is_initialized()) shutdown();
  testing::internal::CaptureStdout();
  std::string failed;
  try {
    Trainer(options).fit(model);
  } catch (const Error& error) {
    failed = error.what();
  }
  Said said;
  said.text = failed + testing::internal::GetCapturedStdout();
  const size_t at = said.text.find("Epoch 1 was ");
  if (at == std::string::npos) return said;
  std::sscanf(said.text.c_str() + at,
              "Epoch 1 was %15[a-z]-bound: waiting for data %d %%, tracing %d %%, device %d %%", said.bound,
              &said.input, &said.trace, &said.device);
  return said;
}

// The host's own work in a forward pass takes all the time: a wait, so that no load on the machine changes
// whose it is.
struct SlowForward : torch::nn::Module {
  SlowForward() { last = register_module("last", torch::nn::Linear(192, 2)); }
  torch::Tensor forward(torch::Tensor x) {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    return last->forward(x.flatten(1));
  }
  torch::nn::Linear last{nullptr};
};

// Most of a gigaflop in a few operations.
struct LargeProducts : torch::nn::Module {
  LargeProducts() {
    weight = register_parameter("weight", torch::randn({320, 320}) / 18);
    last = register_module("last", torch::nn::Linear(192, 2));
  }
  torch::Tensor forward(torch::Tensor x) {
    torch::Tensor y = weight;
    for (int i = 0; i < 4; ++i) y = torch::tanh(y.mm(weight));
    return last->forward(x.flatten(1)) + y.mean();
  }
  torch::Tensor weight;
  torch::nn::Linear last{nullptr};
};

// Large images for a small model: reading and resizing them takes all the time.
TEST(EpochTimes, AnEpochIsInputBound) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  constexpr size_t kSide = 2000;
  std::string bytes;
  for (int i = 0; i < 12; ++i) {
    bytes += data::tar_member(base::str("s", i, ".ppm"), base::str("P6\n", kSide, ' ', kSide, "\n255\n") +
                                                             std::string(3 * kSide * kSide, 'x'));
    bytes += data::tar_member(base::str("s", i, ".cls"), std::to_string(i % 2));
  }
  base::value_or_throw(
      base::write_file_atomically(folder.path("a.tar"), bytes + data::tar_end(bytes.size())));
  TrainOptions options = one_epoch(folder.path("run"));
  options.fake_data = false;
  options.train = folder.path("a.tar");
  options.images = "ppm";
  options.resize = 8;
  options.workers = 1;
  const Said said = said_of(
      options, std::make_shared<torch::nn::SequentialImpl>(torch::nn::Flatten(), torch::nn::Linear(192, 2)));
  EXPECT_STREQ(said.bound, "input") << said.text;
  EXPECT_GE(said.input, 60) << said.text;
  EXPECT_EQ(said.input + said.trace + said.device, 100) << said.text;
  EXPECT_THAT(said.text, testing::HasSubstr(". The narrowest stage of the data is "));
}

TEST(EpochTimes, AnEpochIsTraceBound) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const Said said = said_of(one_epoch(folder.path("run")), std::make_shared<SlowForward>());
  EXPECT_STREQ(said.bound, "trace") << said.text;
  EXPECT_GE(said.trace, 60) << said.text;
  EXPECT_EQ(said.input + said.trace + said.device, 100) << said.text;
  EXPECT_THAT(said.text, testing::ContainsRegex("; compiling took [0-9.]+ s more\\."));
}

TEST(EpochTimes, AnEpochIsDeviceBound) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  TrainOptions options = one_epoch(folder.path("run"));
  options.train_size = 6;
  const Said said = said_of(options, std::make_shared<LargeProducts>());
  EXPECT_STREQ(said.bound, "device") << said.text;
  EXPECT_GE(said.device, 60) << said.text;
  EXPECT_EQ(said.input + said.trace + said.device, 100) << said.text;
  const std::string rows = base::value_or_throw(base::read_file(folder.path("run/metrics.jsonl")));
  EXPECT_THAT(
      rows, testing::HasSubstr(R"("split": "epoch", "epoch": 1, "step": 3, "bound": "device", "input_sec)"));
}

}  // namespace
}  // namespace sluice::train
