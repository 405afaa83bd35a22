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

const std::vector<Case>& float_cases() {
  static const auto& cases = *new std::vector<Case>{
      {"log(exp(x))", [](const Tensor& x) { return x.exp().log(); }, {89, 1, -200}},
      {"sqrt(x * x)", [](const Tensor& x) { return (x * x).sqrt(); }, {1e20f, -3, 1e-30f}},
      {"exp(x) / exp(x - 1)", [](const Tensor& x) { return x.exp() / (x - 1).exp(); }, {100, 2, -200}},
      {"exp(x) ** 0.01", [](const Tensor& x) { return x.exp().pow(0.01); }, {100, 2, -80}},
      {"(x / 3) * 3", [](const Tensor& x) { return x.div(3).mul(3); }, {3e38f, 1, 7}},
      {"(x * 2) / 2", [](const Tensor& x) { return x.mul(2).div(2); }, {3e38f, 1, 7}},
      {"1 / sqrt(x)", [](const Tensor& x) { return x.sqrt().reciprocal(); }, {0, -0.0f, 4}},
      {"x - x", [](const Tensor& x) { return x - x; }, {std::numeric_limits<float>::infinity(), 1}},
      {"x * 0",
       [](const Tensor& x) { return x * torch::zeros_like(x); },
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1}},
      {"bf16 and back",
       [](const Tensor& x) { return x.to(torch::kBFloat16).to(torch::kFloat); },
       {1.2345f, 3.3e38f, 1e-3f}},
      {"f64 to f32 and back",
       [](const Tensor& x) { return x.to(torch::kDouble).mul(1.1).to(torch::kFloat).to(torch::kDouble); },
       {1.2345f, 1e38f}},
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

TEST(Exact, ValuesAreLibTorchs) {
  const torch::Device device = test_device();
  for (const Case& row : float_cases()) {
    const Tensor x = torch::tensor(row.inputs), there = row.function(x);
    const Exact exact;
    expect_equal(row.function(x.to(device)), there, row.what);
  }
}

TEST(Exact, IntegersThatWrap) {
  const torch::Device device = test_device();
  for (const auto type : {torch::kChar, torch::kShort, torch::kInt, torch::kLong}) {
    const Tensor x = torch::tensor({100, 46341, -129}, torch::kLong).to(type);
    const Tensor there = (x * x * x).abs();
    const Exact exact;
    const Tensor on = x.to(device);
    EXPECT_TRUE(torch::equal((on * on * on).abs().cpu(), there)) << type;
  }
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
  const Tensor x = torch::tensor({89.0f}).to(device);
  const auto programs = [&] { return counters().programs; };
  const auto run = [&] {
    const Tensor y = x.exp().log();
    cut();
    return y.cpu().item<float>();
  };
  run();
  const int64_t before = programs();
  {
    const Exact exact;
    EXPECT_TRUE(std::isinf(run()));
    {
      const Exact again;
      EXPECT_TRUE(std::isinf(run()));
    }
    EXPECT_TRUE(std::isinf(run()));
  }
  EXPECT_EQ(programs() - before, 1);
  run();
  EXPECT_EQ(programs() - before, 1);
}

TEST(Exact, CapturedFunctionsAreRecordedAgain) {
  if (on_cpu()) GTEST_SKIP();
  const torch::Device device = test_device();
  auto function = capture([](Tensor x) {
    Tensor y = x.exp().log();
    sync();
    return y;
  });
  const Tensor x = torch::tensor({89.0f}).to(device);
  for (int i = 0; i < 6; ++i) function(x);
  const Exact exact;
  EXPECT_TRUE(std::isinf(function(x).cpu().item<float>()));
}

}  // namespace
}  // namespace sluice::tests
