// Training on the device: equal to LibTorch's, whatever the cuts and the donation, without recompiling or
// growing.
#include <ATen/record_function.h>

#include <cmath>
#include <fstream>
#include <random>

#include "sluice/device/program/program.h"
#include "tests/device/tasks.h"

namespace sluice::tests {
namespace {

std::vector<torch::Tensor> run(Training& training, int steps) {
  std::vector<torch::Tensor> losses;
  for (int i = 0; i < steps; ++i) {
    losses.push_back(training.step(i));
    cut();
  }
  return losses;
}

std::vector<torch::Tensor> on_host(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> copies;
  for (const torch::Tensor& tensor : tensors) copies.push_back(tensor.detach().cpu().clone());
  return copies;
}

class TrainingEquals : public testing::TestWithParam<std::string> {};

TEST_P(TrainingEquals, LibTorchEagerOver20Steps) {
  Task task = task_named(GetParam());
  Training expected = task.make(torch::kCPU);
  Training found = task.make(test_device());
  auto expected_losses = run(expected, 20);
  auto found_losses = run(found, 20);
  for (size_t i = 0; i < expected_losses.size(); ++i) {
    expect_same(found_losses[i], expected_losses[i], task.tolerance, c10::str(task.name, " step ", i));
  }
  // It learns something, else the comparison would show little.
  double first = expected_losses.front().sum().item<double>(),
         last = expected_losses.back().sum().item<double>();
  EXPECT_GT(std::abs(first - last), 1e-2);
  expect_same(found.buffers, expected.buffers, task.tolerance * 10, task.name + " buffer");
  if (!on_cpu()) {
    EXPECT_EQ(counters().fallbacks, 0) << metrics_report();
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, TrainingEquals,
                         testing::Values("mlp", "cnn", "grouped", "resnet", "transformer", "dcgan"),
                         [](const auto& info) { return info.param; });

// Cuts after operations of the device, by chance.
class RandomCuts {
 public:
  explicit RandomCuts(unsigned one_in) {
    state() = {true, std::mt19937(5), one_in};
    auto end = [](const at::RecordFunction&, at::ObserverContext*) {
      thread_local bool inside = false;
      State& s = state();
      if (inside || !s.active || s.random() % s.one_in != 0) return;
      inside = true;
      sluice::sync("random cut");
      inside = false;
    };
    handle_ = at::addGlobalCallback(
        at::RecordFunctionCallback(
            [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> { return nullptr; }, end)
            .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  }
  ~RandomCuts() {
    state().active = false;
    at::removeCallback(handle_);
  }

 private:
  struct State {
    bool active = false;
    std::mt19937 random;
    unsigned one_in = 1;
  };
  static State& state() {
    static State the_state;
    return the_state;
  }
  at::CallbackHandle handle_;
};

struct Result {
  std::vector<torch::Tensor> parameters, losses;
};

// Five steps of a task with these options; cuts == 0: only at the steps' ends.
Result five_steps(const std::function<Training(torch::Device)>& make, DeviceOptions options, unsigned cuts) {
  restart(options);
  torch::manual_seed(11);
  Training training = make(test_device());
  Result result;
  std::vector<torch::Tensor> losses;
  {
    std::unique_ptr<RandomCuts> random;
    if (cuts > 0 && !on_cpu()) random = std::make_unique<RandomCuts>(cuts);
    losses = run(training, 5);
  }
  result.losses = on_host(losses);
  result.parameters = on_host(training.parameters);
  for (const torch::Tensor& buffer : on_host(training.buffers)) result.parameters.push_back(buffer);
  return result;
}

// XLA rounds products and sums within one loop once (fused multiply-add), so cuts move last bits unless the
// processor's instructions for it are left out: the test's entry sets XLA_FLAGS=--xla_cpu_max_isa=AVX. Sums
// over windows are still ordered by what they are fused with.
double cut_tolerance(const std::string& task) {
  const char* flags = std::getenv("XLA_FLAGS");
  bool exact = flags != nullptr && std::string(flags).find("max_isa=AVX") != std::string::npos;
  return exact && task != "cnn" ? 0 : 2e-5;
}

class CutInvariance : public testing::TestWithParam<std::string> {};

TEST_P(CutInvariance, AnyCutsGiveTheSameBits) {
  auto make = GetParam() == "dropout" ? std::function<Training(torch::Device)>(dropout_mlp)
                                      : task_named(GetParam()).make;
  double tolerance = cut_tolerance(GetParam());
  Result steps = five_steps(make, {}, 0);
  DeviceOptions eager;
  eager.eager = true;
  Result each = five_steps(make, eager, 0);
  Result some = five_steps(make, {}, 7);
  Result every = five_steps(make, {}, 1);
  restart();
  for (const auto& [name, other] :
       {std::pair("eager", &each), {"random cuts", &some}, {"a cut after each op", &every}}) {
    expect_same(other->losses, steps.losses, tolerance, name);
    expect_same(other->parameters, steps.parameters, tolerance, name);
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, CutInvariance, testing::Values("dropout", "mlp", "cnn"),
                         [](const auto& info) { return info.param; });

// A training with random holders of its tensors: clones, an exponential average, logged losses, copies for a
// checkpoint. Everything that was held is returned.
std::vector<torch::Tensor> with_holders(DeviceOptions options, uint32_t seed) {
  restart(options);
  torch::manual_seed(3);
  std::mt19937 random(seed);
  Training training = dropout_mlp(test_device());
  std::vector<torch::Tensor> average, held, host;
  for (auto& p : training.parameters) average.push_back(p.detach().clone());
  for (int i = 0; i < 8; ++i) {
    torch::Tensor loss = training.step(i);
    torch::NoGradGuard no_grad;
    for (size_t p = 0; p < average.size(); ++p) average[p].mul_(0.9).add_(training.parameters[p], 0.1);
    size_t which = random() % training.parameters.size();
    const torch::Tensor& parameter = training.parameters[which];
    switch (random() % 6) {
      case 0:
        held.push_back(parameter.detach().clone());
        break;
      case 1:
        held.push_back(loss);
        break;
      case 2:
        held.push_back(average[which].clone());
        break;
      case 3:
        host.push_back(parameter.detach().cpu());
        break;
      case 4:
        held.push_back(parameter.detach() * 1);
        break;
      default:
        if (!held.empty()) held.erase(held.begin());
        held.push_back(torch::empty_like(parameter).copy_(parameter.detach()));
    }
    if (random() % 4 == 0) host.push_back(held.back().cpu());
    if (!on_cpu()) sync();
  }
  std::vector<torch::Tensor> all = on_host(training.parameters);
  for (const auto* group : {&average, &held, &host}) {
    for (const torch::Tensor& tensor : on_host(*group)) all.push_back(tensor);
  }
  return all;
}

TEST(Donation, DoesNotChangeABitWhateverIsHeld) {
  DeviceOptions kept;
  kept.donate = false;
  for (int i = 0; i < rounds(1); ++i) {
    auto expected = with_holders(kept, 40 + static_cast<uint32_t>(i));
    auto found = with_holders({}, 40 + static_cast<uint32_t>(i));
    expect_same(found, expected, 0, c10::str("round ", i));
  }
  restart();
}

// A run as people write it: warm-up from 0, cosine to 0, logs, evaluation, checkpoints.
TEST(Recompile, NothingIsCompiledAfterTheSecondStep) {
  restart();
  torch::Device device = test_device();
  torch::manual_seed(1);
  torch::nn::Sequential model(torch::nn::Linear(6, 8), torch::nn::BatchNorm1d(8), torch::nn::ReLU(),
                              torch::nn::Dropout(0.2), torch::nn::Linear(8, 3));
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(),
                              torch::optim::SGDOptions(0.0).momentum(0.9).weight_decay(1e-3));
  torch::Tensor x = torch::randn({4, 6}), y = torch::randint(0, 3, {4});
  constexpr int kSteps = 40;
  std::vector<torch::Tensor> log;
  auto evaluate = [&] {
    torch::NoGradGuard no_grad;
    model->eval();
    torch::Tensor right = (model->forward(x.to(device)).argmax(1) == y.to(device)).sum();
    cut();
    model->train();
    return right.item<int64_t>();
  };
  int64_t programs = -1, compiles = -1;
  for (int i = 0; i < kSteps; ++i) {
    double rate = i < 5 ? 0.1 * i / 5 : 0.05 * (1 + std::cos(M_PI * (i - 5) / (kSteps - 6)));
    static_cast<torch::optim::SGDOptions&>(optimizer.param_groups()[0].options()).lr(rate);
    optimizer.zero_grad();
    torch::Tensor loss = torch::nn::functional::cross_entropy(model->forward(x.to(device)), y.to(device));
    loss.backward();
    optimizer.step();
    // The first two steps differ (momentum buffers are made), and each habit below compiles once, in the
    // first rounds.
    if (!on_cpu()) sync();
    if (i % 4 == 3) log.push_back(loss.detach());
    if (i % 8 == 3) evaluate();
    if (i % 10 == 3) {
      for (auto& parameter : model->parameters()) parameter.detach().cpu();
    }
    if (i == 4 && !on_cpu()) {
      programs = counters().programs;
      compiles = counters().compiles;
    }
  }
  for (torch::Tensor& loss : log) EXPECT_TRUE(std::isfinite(loss.item<float>()));
  if (on_cpu()) return;
  EXPECT_EQ(counters().programs, programs) << metrics_report();
  EXPECT_EQ(counters().compiles, compiles) << metrics_report();
}

double resident_mib() {
  std::ifstream status("/proc/self/statm");
  int64_t total = 0, resident = 0;
  status >> total >> resident;
  return static_cast<double>(resident) * 4096 / (1 << 20);
}

// Steps from `from` to `to` of a small MLP: what memory and buffers do meanwhile.
void expect_no_growth(int from, int to, double mib) {
  restart();
  Training training = task_named("mlp").make(test_device());
  auto step = [&](int i) {
    torch::Tensor loss = training.step(i);
    if (!on_cpu()) sync();
    if (i % 50 == 0) {
      EXPECT_TRUE(std::isfinite(loss.item<float>()));
    }
  };
  for (int i = 0; i < from; ++i) step(i);
  cut();
  int64_t buffers = on_cpu() ? 0 : counters().live_buffers;
  double before = resident_mib();
  for (int i = from; i < to; ++i) step(i);
  cut();
  if (!on_cpu()) {
    EXPECT_LE(counters().live_buffers, buffers);
  }
  EXPECT_LE(resident_mib() - before, mib);
}

TEST(Growth, NoneOver400Steps) { expect_no_growth(200, 600, 16); }

// A service that gets images of every size.
TEST(Growth, NoneOverManyShapes) {
  if (on_cpu()) GTEST_SKIP();
  DeviceOptions options;
  options.kept_operations = 1200;
  restart(options);
  const torch::Device device = test_device();
  const auto run = [&](int64_t size) {
    const torch::Tensor x = torch::ones({size, 3}).to(device);
    return (x * 2).sum().item<double>();
  };
  const auto right = [](int64_t size) { return 6.0 * static_cast<double>(size); };
  const int64_t kWarm = 30, kShapes = rounds(80);  // 3,040 with SLUICE_TEST_ROUNDS=38
  double before = 0;
  for (int64_t size = 1; size <= kShapes; ++size) {
    EXPECT_EQ(run(size), right(size));
    if (size == kWarm) before = resident_mib();
  }
  EXPECT_LE(resident_mib() - before, 16);
  EXPECT_LE(device::programs_kept(), 12u);
  EXPECT_LE(device::instances_alive(), 1200u);
  EXPECT_EQ(run(1), right(1));  // its program is made again
  const int64_t programs = counters().programs;
  run(kShapes);
  EXPECT_EQ(counters().programs, programs);  // this one is still there
  restart();
}

// What the host sends goes when its last holder does, without a cut.
TEST(Growth, NoneByUploadsThatNothingReads) {
  if (on_cpu()) GTEST_SKIP();
  restart();
  const torch::Device device = test_device();
  const torch::Tensor host = torch::ones({1 << 18});
  torch::Tensor x = host.to(device);
  torch::nn::Linear model(64, 64);
  model->to(device);
  const int64_t buffers = counters().live_buffers;
  for (int i = 0; i < 50; ++i) {
    x = host.to(device);
    x.copy_(host);
    EXPECT_EQ(x.cpu()[0].item<float>(), 1);
    model->to(torch::kCPU);
    model->to(device);
  }
  EXPECT_LE(counters().live_buffers, buffers + 1);
}

// Run by its own test entry, labelled slow.
TEST(SlowGrowth, NoneFromStep500To5000) { expect_no_growth(500, 5000, 4); }

}  // namespace
}  // namespace sluice::tests
