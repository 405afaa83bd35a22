// Positions and labels that only the device can find to be wrong.
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

namespace nn = torch::nn;
using testing::AllOf;
using testing::HasSubstr;

torch::Tensor numbers(std::vector<int64_t> values) {
  return torch::tensor(values, torch::kLong).to(test_device());
}

TEST(ValueChecks, AReadSaysWhatWasFoundWhere) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  torch::Tensor x = ramp({4, 3}).to(test_device());
  struct Case {
    const char* operation;
    const char* found;
    std::function<torch::Tensor()> call;
  };
  const Case cases[] = {
      {"aten::index_select", "index holds 4, expected values from 0 to 3",
       [&] {
         return x.index_select(0, numbers({1, 4}));
       }},
      {"aten::index_select", "index holds -1",
       [&] {
         return x.index_select(1, numbers({0, -1}));
       }},
      {"aten::index_select", "index holds 4294967296",
       [&] { return x.index_select(0, numbers({1LL << 32})); }},
      {"aten::gather", "index holds 3, expected values from 0 to 2",
       [&] {
         return x.gather(1, numbers({0, 3}).view({1, 2}));
       }},
      {"aten::scatter", "index holds 5",
       [&] {
         return x.scatter(0, numbers({5}).view({1, 1}), 1.0);
       }},
      {"aten::index", "indices holds -5, expected values from -4 to 3",
       [&] { return x.index({numbers({-5})}); }},
      {"aten::take", "index holds 12, expected values from -12 to 11",
       [&] {
         return x.take(numbers({3, 12}));
       }},
      {"aten::nll_loss_forward", "target holds 3, expected values from 0 to 2, or -100",
       [&] {
         return torch::cross_entropy_loss(x, numbers({0, 3, 1, -100}));
       }},
      {"aten::floor_divide", "other holds 0, expected other integers",
       [&] {
         return numbers({5, 7}).floor_divide(numbers({2, 0}));
       }},
      {"aten::remainder", "other holds 0",
       [&] {
         return numbers({5, 7}).remainder(numbers({0, 3}));
       }},
      {"aten::fmod", "other holds 0",
       [&] {
         return numbers({5, 7}).fmod(0);
       }},
  };
  for (const Case& row : cases) {
    SCOPED_TRACE(row.found);
    EXPECT_THAT(thrown([&] { row.call().sum().item<float>(); }),
                AllOf(HasSubstr(row.operation), HasSubstr(row.found)));
    EXPECT_EQ(thrown([&] { (x + 1).sum().item<float>(); }), "");  // said once
  }
  EXPECT_EQ(thrown([&] { torch::cross_entropy_loss(x, numbers({0, 2, 1, -100})).item<float>(); }), "");
  EXPECT_EQ(thrown([&] { x.index({numbers({-4, 3})}).sum().item<float>(); }), "");
}

TEST(ValueChecks, WhatALossIgnoresIsNoPosition) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  torch::Tensor x = ramp({2, 3}).to(test_device()), labels = numbers({0, -100});
  torch::Tensor loss = torch::cross_entropy_loss(x, labels);
  EXPECT_THAT(thrown([&] { (loss + x.index_select(1, labels).sum()).item<float>(); }),
              HasSubstr("aten::index_select: index holds -100"));
}

TEST(ValueChecks, ATrainingIsStoppedByAWrongLabelAndNamesItsLayer) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  torch::Device device = test_device();
  nn::Sequential model(nn::Embedding(5, 4), nn::Linear(4, 3));
  model->to(device);
  std::vector<std::pair<std::string, torch::Tensor>> named;
  for (const auto& parameter : model->named_parameters())
    named.emplace_back(parameter.key(), parameter.value());
  name_tensors(named);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  int steps = 0;
  auto train = [&](int64_t token, int64_t label) {
    optimizer.zero_grad();
    torch::cross_entropy_loss(model->forward(numbers({0, token})), numbers({0, label})).backward();
    optimizer.step();
    sync("step");
    ++steps;
  };
  for (int step = 0; step < 5; ++step) train(step, 1);
  const std::string told = thrown([&] {
    train(5, 1);
    for (int step = 0; step < 5; ++step) train(1, 1);
  });
  EXPECT_THAT(told, AllOf(HasSubstr("(layer 0.weight): index holds 5"), HasSubstr("('step')")));
  EXPECT_LE(steps, 5 + 3);  // two programs may be on their way
  EXPECT_THAT(thrown([&] {
                train(1, 7);
                wait();
              }),
              HasSubstr("target holds 7"));
}

TEST(ValueChecks, FetchEagerModeAndReplicasSayItToo) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  torch::Tensor x = ramp({4, 3});
  const Fetch fetched = fetch(x.to(test_device()).index_select(0, numbers({9})));
  EXPECT_THAT(thrown([&] { fetched.get(); }), HasSubstr("index holds 9"));
  DeviceOptions options;
  options.eager = true;
  restart(options);
  torch::Tensor there = x.to(test_device());
  EXPECT_THAT(thrown([&] { there.index_select(0, numbers({8})); }), HasSubstr("index holds 8"));
  options = DeviceOptions();
  options.devices = 2;
  restart(options);
  torch::Tensor different = upload({torch::tensor({1L}), torch::tensor({7L})});
  EXPECT_THAT(thrown([&] { on_replica(x.to(test_device()).index_select(0, different), 0); }),
              HasSubstr("index holds 7"));
  options = DeviceOptions();
  options.check = false;
  restart(options);
  EXPECT_EQ(thrown([&] { x.to(test_device()).index_select(0, numbers({8})).sum().item<float>(); }), "");
  restart();
}

TEST(ValueChecks, TheFirstNaNIsNamed) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  torch::Tensor x = torch::tensor({1.0F, 0.0F, -1.0F});
  EXPECT_EQ(thrown([&] { x.to(test_device()).log().sum().item<float>(); }), "");
  DeviceOptions options;
  options.detect_anomaly = true;
  restart(options);
  torch::Tensor there = x.to(test_device());
  EXPECT_THAT(thrown([&] { (there + 1).sub(1).log().mul(2).sum().item<float>(); }),
              AllOf(HasSubstr("aten::log: its result holds NaN"), HasSubstr("nothing that program")));
  EXPECT_EQ(thrown([&] { there.abs().log().mul(2).sum().item<float>(); }), "");  // -inf is a number
  EXPECT_THAT(thrown([&] {
                (torch::tensor({1.0F, NAN}).to(test_device()) + 1).sum().item<float>();
              }),
              HasSubstr("the program: an input holds NaN"));
  // The value is right, and its gradient, inf times 0, is not.
  torch::Tensor leaf = torch::zeros({3}, torch::TensorOptions(test_device()).requires_grad(true));
  torch::Tensor loss = leaf.mul(0).sqrt().sum();
  EXPECT_EQ(loss.item<float>(), 0);
  EXPECT_THAT(thrown([&] {
                loss.backward();
                leaf.grad().sum().item<float>();
              }),
              HasSubstr("its result holds NaN"));
  restart();
}

}  // namespace
}  // namespace sluice::tests
