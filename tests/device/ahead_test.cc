// Recording for devices that are not here.
#include "sluice/device/program/ahead.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "sluice/base/files/file.h"
#include "sluice/base/result.h"
#include "sluice/device/sharding/shard.h"
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

// Two steps of a net whose first weight is large enough to lie over fsdp.
void train_over_a_mesh(const torch::Tensor& input, const torch::Tensor& target) {
  torch::manual_seed(3);
  torch::nn::Sequential model(torch::nn::Linear(512, 256), torch::nn::ReLU(), torch::nn::Linear(256, 4));
  shard(*model);
  std::vector<std::pair<std::string, at::Tensor>> named;
  for (const auto& item : model->named_parameters()) named.emplace_back(item.key(), item.value());
  name_tensors(named);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(model->forward(input), target).backward();
    optimizer.step();
    optimizer.zero_grad();
    sync("step");
  }
}

TEST(Ahead, OverAMeshIsTheProgramThatWouldRun) {
  if (on_cpu()) GTEST_SKIP() << "the device under test is LibTorch's CPU";
  const Mesh mesh({{"data", 2}, {"fsdp", 2}});
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  DeviceOptions options;
  options.dump = folder.path();
  options.cache = false;
  if (is_initialized()) shutdown();
  init(mesh, options);
  train_over_a_mesh(shard_batch(torch::ones({16, 512})), shard_batch(torch::zeros({16}, torch::kLong)));
  wait();
  const std::vector<std::string> names = base::value_or_throw(base::list_directory(folder.path()));
  ASSERT_FALSE(names.empty());
  const std::string ran = base::value_or_throw(base::read_file(folder.path(names.back())));
  restart();
  Ahead ahead(4, /*explicit_nan=*/true, "", mesh);
  train_over_a_mesh(ahead.input({16, 512}, torch::kFloat), ahead.input({16}, torch::kLong));
  EXPECT_EQ(ahead.text("step"), ran);
  EXPECT_THAT(ahead.text("step"), AllOf(HasSubstr("sdy.mesh @mesh = <[\"data\"=2, \"fsdp\"=2]>"),
                                        HasSubstr("mhlo.num_partitions = 4")));
  EXPECT_THAT(ahead.arguments("step"), ::testing::IsSupersetOf({"0.weight", "0.bias", "2.weight", "2.bias"}));
}

TEST(Ahead, AMeshNeedsItsDevicesAndABatchThatItDivides) {
  if (on_cpu()) GTEST_SKIP() << "the device under test is LibTorch's CPU";
  restart();
  EXPECT_THAT(thrown([] {
                Ahead(4, false, "", Mesh({{"fsdp", 8}}));
              }),
              HasSubstr("needs 8 devices, found 4"));
  Ahead ahead(4, false, "", Mesh({{"fsdp", 4}}));
  EXPECT_THAT(thrown([&] { (void)ahead.input({6, 2}, torch::kFloat); }), HasSubstr("has 6 elements"));
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
