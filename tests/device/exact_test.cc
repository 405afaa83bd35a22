// What several operations give together in one program, beside LibTorch's CPU, with and without Exact.
#include "sluice/device/exact.h"

#include <cmath>
#include <limits>

#include "sluice/device/capture/capture.h"
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

using torch::Tensor;

struct Case {
  const char* what;
  std::function<Tensor(const Tensor&)> function;
  std::vector<float> inputs;
};

// XLA would make one operation of two here (sluice/patterns/folds.cc).
const std::vector<Case>& folds() {
  static const auto& cases = *new std::vector<Case>{
      {"log(exp(x))", [](const Tensor& x) { return x.exp().log(); }, {89, 1, -80}},
      {"log(exp(x)), seen otherwise",
       [](const Tensor& x) {
         return x.exp().reshape({3, 1}).expand({3, 4}).t().log();
       },
       {89, 1, -80}},
      {"log(x ** 1.5)", [](const Tensor& x) { return x.pow(1.5).log(); }, {1e30f, -2, 3}},
      {"sqrt(x * x)", [](const Tensor& x) { return (x * x).sqrt(); }, {1e20f, -3, 0.5f}},
      {"rsqrt(x * x)", [](const Tensor& x) { return (x * x).rsqrt(); }, {1e20f, -3, 0.5f}},
      {"exp(x) / exp(x - 1)", [](const Tensor& x) { return x.exp() / (x - 1).exp(); }, {100, 2, -80}},
      {"exp(x) * exp(3 - x)", [](const Tensor& x) { return x.exp() * (3 - x).exp(); }, {89, 2, -80}},
      {"exp(x) ** 0.01", [](const Tensor& x) { return x.exp().pow(0.01); }, {100, 2, -80}},
      {"(x ** 3) ** 0.5", [](const Tensor& x) { return x.pow(3).pow(0.5); }, {1e20f, -2, 3}},
      {"sqrt(x) * sqrt(x)", [](const Tensor& x) { return x.sqrt() * x.sqrt(); }, {-4, 2, 0}},
      {"rsqrt(x) ** 2", [](const Tensor& x) { return x.rsqrt() * x.rsqrt(); }, {-4, 2, 1e-30f}},
      {"1 / sqrt(x)", [](const Tensor& x) { return x.sqrt().reciprocal(); }, {0, -0.0f, 4}},
      {"x - x", [](const Tensor& x) { return x - x; }, {std::numeric_limits<float>::infinity(), 1, 0}},
      {"x * 0",
       [](const Tensor& x) { return x * torch::zeros_like(x); },
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1}},
  };
  return cases;
}

// These may differ without Exact (docs/device.md).
const std::vector<Case>& more_cases() {
  static const auto& cases = *new std::vector<Case>{
      {"(x / 3) * 3", [](const Tensor& x) { return x.div(3).mul(3); }, {3e38f, 1, 7}},
      {"(x * 2) / 2", [](const Tensor& x) { return x.mul(2).div(2); }, {3e38f, 1, 7}},
      {"(x / 1e30) / 1e-30", [](const Tensor& x) { return x.div(1e30).div(1e-30); }, {3, 1, 7}},
      {"bf16 and back",
       [](const Tensor& x) { return x.to(torch::kBFloat16).to(torch::kFloat); },
       {1.2345f, 3.3e38f, 1e-3f}},
      {"f32 and back",
       [](const Tensor& x) { return x.to(torch::kDouble).mul(1.1).to(torch::kFloat).to(torch::kDouble); },
       {1.2345f, 1e38f, 3}},
  };
  return cases;
}

// Kahan's sum in bf16: without a rounding at each operation its compensation is lost.
Tensor kahan(const Tensor& x) {
  Tensor sum = torch::zeros({}, x.options()), lost = torch::zeros({}, x.options());
  for (int64_t i = 0; i < x.size(0); ++i) {
    const Tensor y = x[i] - lost, t = sum + y;
    lost = (t - sum) - y;
    sum = t;
  }
  return sum;
}

void expect_equal(const Tensor& here, const Tensor& there, const char* what) {
  EXPECT_TRUE(torch::allclose(here.cpu().to(torch::kDouble), there.to(torch::kDouble), 1e-6, 0,
                              /*equal_nan=*/true))
      << what << ": " << here.cpu() << "\nLibTorch: " << there;
}

// All in one program.
void expect_libtorchs(const std::vector<Case>& cases) {
  const torch::Device device = test_device();
  std::vector<Tensor> here;
  for (const Case& row : cases) here.push_back(row.function(torch::tensor(row.inputs).to(device)));
  cut();
  for (size_t i = 0; i < cases.size(); ++i)
    expect_equal(here[i], cases[i].function(torch::tensor(cases[i].inputs)), cases[i].what);
}

TEST(Folds, ValuesAreLibTorchs) { expect_libtorchs(folds()); }

TEST(Folds, SquaresThatWrap) {
  const torch::Device device = test_device();
  for (const auto type : {torch::kChar, torch::kShort, torch::kInt, torch::kLong}) {
    const Tensor x =
        torch::tensor({int64_t{100}, int64_t{46341}, int64_t{3037000500}, int64_t{-12}}).to(type);
    const Tensor on = x.to(device);
    EXPECT_TRUE(torch::equal((on * on).abs().cpu(), (x * x).abs())) << type;
  }
}

TEST(Exact, ValuesAreLibTorchs) {
  const Exact exact;
  expect_libtorchs(folds());
  expect_libtorchs(more_cases());
}

TEST(Exact, Bf16RoundsAtEachOperation) {
  const torch::Device device = test_device();
  const Tensor x = torch::full({100}, 0.1).to(torch::kBFloat16), there = kahan(x);
  {
    const Exact exact;
    expect_equal(kahan(x.to(device)), there, "Kahan's sum");
  }
  DeviceOptions options;
  options.exact = true;
  restart(options);
  expect_equal(kahan(x.to(device)), there, "Kahan's sum, SLUICE_EXACT=1");
  restart();
}

// A training whose weights are bf16, beside LibTorch's.
std::vector<float> train_in_bf16(const torch::Device& device) {
  torch::manual_seed(3);
  torch::nn::Sequential model(torch::nn::Linear(16, 32), torch::nn::Tanh(), torch::nn::Linear(32, 4));
  const Tensor x = torch::randn({64, 16}), y = torch::arange(64).remainder(4);
  model->to(device, torch::kBFloat16);
  const Tensor on = x.to(torch::kBFloat16).to(device), label = y.to(device);
  torch::optim::SGD optimizer(model->parameters(), 0.5);
  std::vector<float> losses;
  for (int i = 0; i < 20; ++i) {
    optimizer.zero_grad();
    const Tensor loss = torch::nn::functional::cross_entropy(model->forward(on).to(torch::kFloat), label);
    loss.backward();
    optimizer.step();
    cut();
    losses.push_back(loss.item<float>());
  }
  return losses;
}

TEST(Exact, ATrainingInBf16) {
  const torch::Device device = test_device();
  const std::vector<float> there = train_in_bf16(torch::kCPU);
  EXPECT_LT(there.back(), 0.8 * there.front());
  const auto expect_near = [&](const std::vector<float>& here) {
    for (size_t i = 0; i < there.size(); ++i) EXPECT_NEAR(here[i], there[i], 0.02 * there[i]) << "step " << i;
  };
  expect_near(train_in_bf16(device));
  const Exact exact;
  expect_near(train_in_bf16(device));
}

// Random bits below a bf16's are added and cut away: the mean stays, and no operation in between may keep
// more bits or fewer.
TEST(Exact, StochasticRounding) {
  const torch::Device device = test_device();
  const Tensor x = torch::full({1 << 14}, 1 + 1.0 / 1024).to(device);
  const Tensor noise = torch::randint(0, 1 << 16, {1 << 14}, torch::kInt).to(device);
  const Tensor bits = (x.view(torch::kInt) + noise).bitwise_and(-65536);
  const Tensor rounded = bits.view(torch::kFloat).to(torch::kBFloat16);
  const Tensor here = rounded.to(torch::kFloat).cpu();
  EXPECT_TRUE(((here == 1) + (here == 1 + 1.0 / 128)).all().item<bool>());
  EXPECT_NEAR(here.mean().item<double>(), 1 + 1.0 / 1024, 2e-4);
}

// Gradients: d/dx sqrt(x²) at 1e20 is inf / inf on the CPU.
TEST(Exact, BackwardPassesToo) {
  const torch::Device device = test_device();
  const auto gradient = [](Tensor x) {
    x.requires_grad_();
    (x * x).sqrt().sum().backward();
    return x.grad();
  };
  const Tensor x = torch::tensor({1e20f, 2.0f}), there = gradient(x.clone());
  const Exact exact;
  expect_equal(gradient(x.to(device)), there, "gradient of sqrt(x * x)");
}

TEST(Exact, IsPartOfTheProgram) {
  if (on_cpu()) GTEST_SKIP();
  const torch::Device device = test_device();
  const Tensor x = torch::tensor({3.0f}).to(device);
  const auto programs = [&] { return counters().programs; };
  const auto run = [&] {
    const Tensor y = x.exp() + 1;
    cut();
  };
  run();
  const int64_t before = programs();
  {
    const Exact exact;
    run();
    {
      const Exact again;
      run();
    }
    run();
  }
  EXPECT_EQ(programs() - before, 1);
  run();
  EXPECT_EQ(programs() - before, 1);
}

TEST(Exact, CapturedFunctionsAreRecordedAgain) {
  if (on_cpu()) GTEST_SKIP();
  const torch::Device device = test_device();
  auto function = capture([](Tensor x) {
    Tensor y = x.exp() * x;
    sync();
    return y;
  });
  const Tensor x = torch::tensor({3.0f}).to(device);
  for (int i = 0; i < 6; ++i) function(x);
  const int64_t before = counters().programs;
  const Exact exact;
  function(x);
  EXPECT_EQ(counters().programs - before, 1);
}

}  // namespace
}  // namespace sluice::tests
