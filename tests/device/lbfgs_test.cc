// LBFGS: the CPU's steps, with one wait for each evaluation of the closure; files both ways.
#include <sstream>

#include "tests/device/support.h"

namespace sluice::tests {
namespace {

using torch::Tensor;
using torch::optim::LBFGS;
using Options = torch::optim::LBFGSOptions;

// A minimum whose curvatures differ a thousandfold, so that the history matters.
struct Problem {
  explicit Problem(torch::Device device, const Options& options)
      : weight(ramp({6}, 0.1).to(device).requires_grad_()),
        bias(torch::zeros({2}).to(device).requires_grad_()),
        scale(torch::logspace(0, 1.5, 6).to(device)),
        optimizer(std::vector<Tensor>{weight, bias}, options) {}

  Tensor step() {
    return optimizer.step([this] {
      ++evaluations;
      optimizer.zero_grad();
      const Tensor far = (weight - 0.5) * scale * 0.3 + bias.sum() * 0.1;
      Tensor loss = far.pow(2).sum() + (weight - 0.3).pow(4).sum() + (bias - 1).pow(2).sum();
      loss.backward();
      return loss;
    });
  }

  Tensor weight, bias, scale;
  LBFGS optimizer;
  int64_t evaluations = 0;
};

void expect_the_cpus_steps(const Options& options, int steps) {
  Problem here(test_device(), options), there(torch::kCPU, options);
  for (int i = 0; i < steps; ++i) {
    const double found = here.step().item<double>(), expected = there.step().item<double>();
    EXPECT_NEAR(found, expected, 1e-4 * std::max(1.0, std::abs(expected))) << "step " << i;
    EXPECT_EQ(here.evaluations, there.evaluations) << "step " << i;
  }
  expect_same({here.weight, here.bias}, {there.weight, there.bias}, 1e-3);
}

TEST(Lbfgs, TakesTheCpusSteps) { expect_the_cpus_steps(Options(0.2).max_iter(4), 3); }

TEST(Lbfgs, TakesTheCpusStepsWithALineSearch) {
  expect_the_cpus_steps(Options(1).max_iter(5).line_search_fn("strong_wolfe"), 2);
}

TEST(Lbfgs, ForgetsTheOldestPairs) { expect_the_cpus_steps(Options(0.2).max_iter(6).history_size(2), 2); }

TEST(Lbfgs, GrowsItsHistory) { expect_the_cpus_steps(Options(0.05).max_iter(11).max_eval(40), 1); }

TEST(Lbfgs, WaitsOnceForEachEvaluation) {
  if (on_cpu()) GTEST_SKIP() << "waits are the device's";
  Problem problem(test_device(), Options(1).max_iter(10).line_search_fn("strong_wolfe"));
  problem.step();
  const int64_t reads = counters().host_reads, evaluated = problem.evaluations;
  const Tensor loss = problem.step();
  const int64_t evaluations = problem.evaluations - evaluated;
  EXPECT_GE(evaluations, 2);
  // One more where the search takes a point that it did not look at last.
  EXPECT_LE(counters().host_reads - reads, evaluations + 1);
}

std::string saved(const LBFGS& optimizer) {
  std::ostringstream stream;
  torch::save(optimizer, stream);
  return stream.str();
}

// A training that goes on from files of another one.
void expect_resumes(torch::Device from, torch::Device to, const Options& options) {
  Problem whole(from, options), first(from, options), second(to, options);
  for (int i = 0; i < 3; ++i) whole.step();
  for (int i = 0; i < 2; ++i) first.step();
  {
    torch::NoGradGuard no_grad;
    second.weight.copy_(first.weight), second.bias.copy_(first.bias);
  }
  std::istringstream stream(saved(first.optimizer));
  torch::load(second.optimizer, stream);
  second.step();
  expect_same({second.weight, second.bias}, {whole.weight, whole.bias}, 1e-3);
}

TEST(Lbfgs, ResumesFromAFile) {
  // On the device a history that is not full can be saved too.
  Options options = Options(0.2).max_iter(4);
  expect_resumes(test_device(), test_device(), options.history_size(20));
  expect_resumes(test_device(), torch::kCPU, options.history_size(20));
  expect_resumes(torch::kCPU, test_device(), options.history_size(3));
}

}  // namespace
}  // namespace sluice::tests
