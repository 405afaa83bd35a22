// Recording for devices that are not here.
#include "sluice/device/program/ahead.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "sluice/base/files/file.h"
#include "sluice/base/result.h"
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

using device::Ahead;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Two steps of a small net with momentum, cut after each.
void train_two_steps(const torch::Tensor& input, const torch::Tensor& target) {
  torch::manual_seed(3);
  torch::nn::Linear model(8, 4);
  model->to(input.device());
  name_tensors({{"head.weight", model->weight}, {"head.bias", model->bias}});
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(model->forward(input), target).backward();
    optimizer.step();
    optimizer.zero_grad();
    sync("step");
  }
}

std::string text_of_two_steps(int replicas, bool explicit_nan = false) {
  Ahead ahead(replicas, explicit_nan);
  train_two_steps(ahead.input({16, 8}, torch::kFloat), ahead.input({16}, torch::kLong));
  EXPECT_EQ(ahead.count("step"), 2);
  return ahead.text("step");
}

TEST(Ahead, LowersWithoutRunning) {
  if (on_cpu()) GTEST_SKIP() << "the device under test is LibTorch's CPU";
  restart();
  const Counters before = counters();
  const std::string text = text_of_two_steps(32);
  const Counters after = counters();
  EXPECT_EQ(after.programs, before.programs);
  EXPECT_EQ(after.live_buffers, before.live_buffers);
  EXPECT_EQ(after.cuts, before.cuts);
  EXPECT_THAT(text, AllOf(HasSubstr("mhlo.num_replicas = 32"), HasSubstr("tensor<16x8xf32>"),
                          HasSubstr("tf.aliasing_output"), HasSubstr("loc(\"head.weight/")));
}

TEST(Ahead, IsTheProgramThatWouldRun) {
  if (on_cpu()) GTEST_SKIP() << "the device under test is LibTorch's CPU";
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  DeviceOptions options;
  options.dump = folder.path();
  restart(options);
  const auto device = test_device();
  train_two_steps(torch::ones({16, 8}).to(device), torch::zeros({16}, torch::kLong).to(device));
  wait();
  std::vector<std::string> names = base::value_or_throw(base::list_directory(folder.path()));
  ASSERT_FALSE(names.empty());
  const std::string ran = base::value_or_throw(base::read_file(folder.path(names.back())));
  EXPECT_EQ(text_of_two_steps(1, /*explicit_nan=*/true), ran);
  EXPECT_NE(text_of_two_steps(1, /*explicit_nan=*/false), "");
  restart();
}

// 12 heads of 1024 positions have 50 MB of scores.
TEST(Ahead, AttentionIsALoopOnATpu) {
  if (on_cpu()) GTEST_SKIP() << "the device under test is LibTorch's CPU";
  restart();
  const std::map<const char*, int> loops = {
      {"", 0}, {"NVIDIA H100 80GB HBM3", 0}, {"TPU v3", 0}, {"TPU v5 lite", 2}, {"TPU v6 lite", 2}};
  for (const auto& [kind, count] : loops) {
    Ahead ahead(1, /*explicit_nan=*/false, kind);
    const torch::Tensor q = ahead.input({1, 12, 1024, 64}, torch::kFloat).requires_grad_();
    at::scaled_dot_product_attention(q, q, q, {}, 0.0, /*is_causal=*/true).sum().backward();
    sync("step");
    EXPECT_EQ(count_of("\"stablehlo.while\"", ahead.text("step")), count) << kind;
  }
}

TEST(Ahead, ValuesAreRefused) {
  if (on_cpu()) GTEST_SKIP() << "the device under test is LibTorch's CPU";
  restart();
  {
    Ahead ahead(4);
    const torch::Tensor input = ahead.input({2}, torch::kFloat);
    const torch::Tensor sum = (input + 1).sum();
    const std::string no_value = "only compiled ahead of time";
    EXPECT_THAT(thrown([&] { (input * 2).cpu(); }), HasSubstr(no_value));
    EXPECT_THAT(thrown([&] { input.cpu(); }), HasSubstr(no_value));
    const Fetch never = fetch(input);
    EXPECT_FALSE(never.ready());
    EXPECT_THROW(never.get(), Error);
    // One tensor a replica is a batch that differs.
    const torch::Tensor batch = upload(std::vector<at::Tensor>(4, torch::ones({2})));
    EXPECT_EQ(batch.size(0), 2);
  }
  // Afterwards everything runs again.
  EXPECT_EQ(torch::ones({3}, test_device()).sum().item<float>(), 3);
}

TEST(Ahead, OneAtATimeAndOnlyBetweenPrograms) {
  if (on_cpu()) GTEST_SKIP() << "the device under test is LibTorch's CPU";
  restart();
  Ahead first(2);
  EXPECT_THROW(Ahead second(2), Error);
  EXPECT_EQ(first.count("step"), 0);
  EXPECT_EQ(first.text("step"), "");
}

}  // namespace
}  // namespace sluice::tests
