// The trainer on the device "xla", through the real CPU plugin, against LibTorch on the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"
#include "sluice/device/sharding/shard.h"
#include "sluice/models/models.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/train/testing/small_training.h"
#include "sluice/train/trainer.h"

namespace sluice::train {
namespace {

// The whole trainer: the losses of both devices agree, and nothing compiles after the first epoch.
TEST(TrainerOnXla, AgreesWithTheCpuAndCompilesTwoPrograms) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  TrainOptions options = small_training_on_xla("");
  options.model = "lenet";
  options.channels = 3;
  options.image_size = 12;
  options.train_size = 96;
  options.test_size = 40;
  options.epochs = 3;
  options.lr_schedule = LrSchedule::kCosine;
  options.warmup_epochs = 1;
  options.log_steps = 1;
  options.strict = true;
  std::vector<TrainResult> results;
  int64_t programs = 0, fallbacks = 0;
  for (const DeviceKind device : {DeviceKind::kCpu, DeviceKind::kXla}) {
    options.device = device;
    options.logdir = folder.path(name_of(device));
    if (is_initialized()) shutdown();  // the options differ
    programs = counters().programs;
    fallbacks = counters().fallbacks;
    testing::internal::CaptureStdout();
    results.push_back(train(options));
    testing::internal::GetCapturedStdout();
  }
  EXPECT_NEAR(results[0].loss, results[1].loss, 1e-3 * std::abs(results[0].loss) + 1e-4);
  EXPECT_EQ(results[0].accuracy, results[1].accuracy);
  EXPECT_EQ(counters().programs - programs, 2);  // the step, the test
  EXPECT_EQ(counters().fallbacks - fallbacks, 0);
}

// Layers that are computed again give the same weights, in as many programs.
TEST(TrainerOnXla, RecomputesLayers) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  TrainOptions options = small_training_on_xla("");
  options.model = "transformer";
  options.train_size = 64;
  options.epochs = 1;
  std::vector<TrainResult> results;
  for (const bool recompute : {false, true}) {
    options.recompute = recompute;
    options.logdir = folder.path(recompute ? "recomputed" : "kept");
    if (is_initialized()) shutdown();
    testing::internal::CaptureStdout();
    results.push_back(train(options));
    testing::internal::GetCapturedStdout();
    EXPECT_EQ(counters().fallbacks, 0);
  }
  EXPECT_NEAR(results[0].loss, results[1].loss, 1e-6);
  const auto kept = base::value_or_throw(sessions::read_checkpoint(folder.path("kept/last")));
  const auto recomputed = base::value_or_throw(sessions::read_checkpoint(folder.path("recomputed/last")));
  for (size_t i = 0; i < kept.model.size(); ++i)
    EXPECT_TRUE(torch::allclose(kept.model[i].second, recomputed.model[i].second, 1e-4, 1e-5))
        << kept.model[i].first;
  options.model = "mlp";
  EXPECT_THROW(train(options), Error);
  shutdown();
}

// Four devices that share a model give the weights of one, also by way of a checkpoint.
TEST(TrainerOnXla, AMeshTrainsAsOneDeviceDoes) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  TrainOptions options = small_training_on_xla("");
  options.model = "mlp";  // its two large layers lie over fsdp
  options.optimizer = OptimizerKind::kAdamW;
  options.lr = 0.001;
  options.train_size = 64;
  options.test_size = 24;
  options.cpu_kernels = false;
  const auto trained = [&](const std::string& run, const std::string& mesh, int64_t epochs) {
    options.logdir = folder.path(run);
    options.mesh = Mesh::parse(mesh);
    options.epochs = epochs;
    if (is_initialized()) shutdown();
    testing::internal::CaptureStdout();
    const TrainResult result = train(options);
    testing::internal::GetCapturedStdout();
    EXPECT_EQ(sluice::mesh().str(), mesh);
    return result;
  };
  const auto weights = [&](const std::string& run) {
    return base::value_or_throw(sessions::read_checkpoint(folder.path(run + "/last"))).model;
  };
  const TrainResult one = trained("one", "", 2), four = trained("four", "data=2,fsdp=2", 2);
  EXPECT_NEAR(one.loss, four.loss, 1e-5 * std::abs(one.loss) + 1e-6);
  (void)trained("resumed", "fsdp=4", 1);
  options.resume = {.from_last = true};
  (void)trained("resumed", "data=2,fsdp=2", 2);
  const auto expected = weights("one"), found = weights("four"), resumed = weights("resumed");
  ASSERT_EQ(found.size(), expected.size());
  ASSERT_EQ(resumed.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(torch::allclose(found[i].second, expected[i].second, 1e-4, 1e-5)) << expected[i].first;
    EXPECT_TRUE(torch::allclose(resumed[i].second, expected[i].second, 1e-4, 1e-5)) << expected[i].first;
  }
  options.resume = {};
  options.batch_size = 18;
  try {
    (void)trained("refused", "data=2,fsdp=2", 2);
    ADD_FAILURE() << "a batch of 18 over four devices";
  } catch (const Error& error) {
    testing::internal::GetCapturedStdout();
    EXPECT_THAT(error.what(), testing::HasSubstr("--batch-size 18 is not a multiple of data=2 × fsdp=2 = 4"));
  }
  shutdown();
}

// Compares how the averages lie with how their parameters lie.
class LayoutsOfAverages : public Callback {
 public:
  explicit LayoutsOfAverages(std::shared_ptr<WeightAverage> average) : average_(std::move(average)) {}
  std::string name() const override { return "layouts of averages"; }
  void after_step(Run& run) override {
    for (const auto& [name, average] : average_->tensors()) {
      const std::string layout = layout_of(average).str();
      EXPECT_EQ(layout, layout_of(run.module().named_parameters()[name]).str()) << name;
      in_blocks += layout.find("fsdp") != std::string::npos;
    }
  }
  int in_blocks = 0;

 private:
  std::shared_ptr<WeightAverage> average_;
};

TEST(TrainerOnXla, AveragesOverAMeshLieLikeTheirParameters) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  TrainOptions options = small_training_on_xla(folder.path("run"));
  options.train_size = 64;
  options.test_size = 0;
  options.cpu_kernels = false;
  options.mesh = Mesh::parse("fsdp=4");
  int in_blocks = 0;
  for (const int64_t epochs : {1, 2}) {  // the second one continues from the averages of the first
    if (is_initialized()) shutdown();
    options.epochs = epochs;
    testing::internal::CaptureStdout();
    Trainer trainer(options);
    const auto average = std::make_shared<WeightAverage>(WeightAverageOptions{.decay = 0.5});
    const auto layouts = std::make_shared<LayoutsOfAverages>(average);
    trainer.add(average);
    trainer.add(layouts);
    trainer.fit(models::create("mlp", {4, 1, 8}));
    testing::internal::GetCapturedStdout();
    in_blocks += layouts->in_blocks;
    options.resume = {.from_last = true};
  }
  EXPECT_EQ(in_blocks, 8);  // of four steps an epoch, the matrix of 1024 × 1024
  shutdown();
}

// Products in bf16, everything that is kept in f32.
TEST(TrainerOnXla, Bf16IsOfTheProductsAlone) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  TrainOptions options = small_training_on_xla(folder.path("run"));
  options.precision = Precision::kBf16;
  options.cpu_kernels = false;  // products are the program's own operations
  if (is_initialized()) shutdown();
  ::setenv("SLUICE_DUMP", folder.path("programs").c_str(), 1);
  testing::internal::CaptureStdout();
  const TrainResult result = train(options);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), testing::HasSubstr(" weights on xla:0, bf16; "));
  ::unsetenv("SLUICE_DUMP");
  EXPECT_GT(result.best_accuracy, 80);  // as on the CPU in f32: trainer_test.cc
  int products = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path("programs"))) {
    const std::string text = base::value_or_throw(base::read_file(file.path().string()));
    for (const std::string& line : base::split(text, '\n')) {
      if (line.find("stablehlo.dot_general") == std::string::npos) continue;
      EXPECT_THAT(line, testing::ContainsRegex(" : \\(tensor<[0-9x]*xbf16>, tensor<[0-9x]*xbf16>\\) -> "))
          << file.path();
      ++products;
    }
  }
  EXPECT_GE(products, 8);  // three layers in training, and in the test
  const sessions::Checkpoint last = base::value_or_throw(sessions::read_checkpoint(folder.path("run/last")));
  EXPECT_EQ(last.model.size(), 6u);
  for (const auto& [name, value] : last.model) EXPECT_EQ(value.scalar_type(), at::kFloat) << name;
  for (const auto& [name, value] : last.state) {
    if (name.find("momentum") == std::string::npos) continue;
    EXPECT_EQ(value.scalar_type(), at::kFloat) << name;
  }
  shutdown();
}

}  // namespace
}  // namespace sluice::train
