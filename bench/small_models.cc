// Training steps for which what the host does decides: a regression, multilayer perceptrons, a long chain of
// element-wise operations, and ResNet-50 and a Transformer on next to no data. Each is recorded, captured
// (sluice::capture) and run by LibTorch eager on the same cores, in turns. Prints JSON: microseconds a step;
// what the host's thread works for it; of recording; and how many operations a step records.
//   bench_small_models [ROUNDS [NAME …]]
#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "bench/against_eager.h"
#include "bench/thread_time.h"
#include "sluice/device/capture/capture.h"
#include "sluice/models/models.h"

namespace {

using sluice::base::Stopwatch;
using sluice::bench::median;
using sluice::bench::thread_microseconds;
using torch::Tensor;
namespace nn = torch::nn;

// A training on one device.
struct Training {
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::function<Tensor(Tensor input)> loss;
  Tensor input;
};

std::unique_ptr<torch::optim::Optimizer> sgd(const std::vector<Tensor>& parameters, double momentum = 0) {
  return std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(0.01).momentum(momentum));
}

std::vector<Tensor> parameters_on(torch::Device device, std::vector<Tensor> values) {
  for (Tensor& value : values) value = value.to(device).requires_grad_();
  return values;
}

Training regression(torch::Device device) {
  const auto p = parameters_on(device, {torch::zeros({1, 1}), torch::zeros({1})});
  return {sgd(p), [p](const Tensor& x) { return (x * p[0] + p[1] - 1).pow(2).mean(); },
          torch::ones({4, 1}, device)};
}

Training perceptron(torch::Device device) {
  const auto p = parameters_on(
      device, {torch::randn({8, 16}), torch::randn({8}), torch::randn({2, 8}), torch::randn({2})});
  return {sgd(p),
          [p](const Tensor& x) {
            return torch::linear(torch::relu(torch::linear(x, p[0], p[1])), p[2], p[3]).pow(2).mean();
          },
          torch::ones({4, 16}, device)};
}

Training chain(torch::Device device) {
  const auto p = parameters_on(device, {torch::ones({8})});
  return {sgd(p),
          [p](const Tensor& factor) {
            Tensor x = p[0] * factor;
            for (int i = 0; i < 200; ++i) x = torch::sin(x);
            return x.sum();
          },
          torch::ones({8}, device)};
}

Training with_model(sluice::models::ModelPtr model, const Tensor& input, bool adam, torch::Device device) {
  model->to(device);
  Training training;
  if (adam)
    training.optimizer =
        std::make_unique<torch::optim::Adam>(model->parameters(), torch::optim::AdamOptions(1e-3));
  else
    training.optimizer = sgd(model->parameters(), 0.9);
  const Tensor label = torch::zeros({input.size(0)}, torch::kLong).to(device);
  training.loss = [model, label](const Tensor& x) {
    return nn::functional::cross_entropy(model->forward(x), label);
  };
  training.input = input.to(device);
  return training;
}

// As `sluice bench step` has them.
Training mlp(torch::Device device) {
  auto model = sluice::models::create("mlp", {.classes = 10, .channels = 1, .image_size = 28});
  return with_model(model, torch::randn({128, 784}), false, device);
}
Training resnet50(torch::Device device) {
  return with_model(sluice::models::resnet50(1000), torch::randn({2, 3, 32, 32}), false, device);
}
Training transformer6(torch::Device device) {
  auto model = sluice::models::transformer({.classes = 10,
                                            .layers = 6,
                                            .width = 256,
                                            .heads = 8,
                                            .feedforward = 1024,
                                            .dropout = 0,
                                            .vocabulary = 1000,
                                            .max_length = 16});
  return with_model(model, torch::randint(0, 1000, {1, 16}), true, device);
}

class Side {
 public:
  using Make = Training (*)(torch::Device);
  Side(Make make, torch::Device device, bool capture, int steps) : device_(device), steps_(steps) {
    torch::manual_seed(0);
    training_ = make(device);
    if (capture) captured_.emplace([this](Tensor input) { return step(input); }, sluice::CaptureOptions());
    for (int i = 0; i < 10; ++i) run();
    finish();
  }
  Side(const Side&) = delete;
  // Of a step: in all, and of this thread.
  void measure() {
    const Stopwatch watch;
    const double before = thread_microseconds();
    for (int i = 0; i < steps_; ++i) run();
    host.push_back((thread_microseconds() - before) / steps_);
    finish();
    all.push_back(watch.seconds() * 1e6 / steps_);
  }
  std::vector<double> all, host;
  int64_t replays() const { return captured_ ? captured_->captured().replays() : 0; }

 private:
  Tensor step(const Tensor& input) {
    Tensor loss = training_.loss(input);
    loss.backward();
    sluice::step(*training_.optimizer);
    training_.optimizer->zero_grad();
    return loss;
  }
  void run() {
    if (captured_)
      (*captured_)(training_.input);
    else
      step(training_.input);
    if (!device_.is_cpu()) sluice::sync("step");
  }
  void finish() const {
    if (!device_.is_cpu()) sluice::wait();
  }

  torch::Device device_;
  int steps_;  // of a round, with one wait at their end
  Training training_;
  std::optional<sluice::CapturedFunction<std::function<Tensor(Tensor)>>> captured_;
};

nlohmann::json measure(Side::Make make, int steps, int rounds) {
  const torch::Device there(torch::kXLA, 0);
  Side recorded(make, there, false, steps), captured(make, there, true, steps),
      eager(make, torch::kCPU, false, steps);
  std::vector<double> recording;
  double operations = 0;
  for (int i = 0; i < rounds; ++i) {
    const auto before = sluice::counters();
    recorded.measure();
    const auto after = sluice::counters();
    recording.push_back((after.trace_seconds - before.trace_seconds) * 1e6 / steps);
    operations = static_cast<double>(after.recorded - before.recorded) / steps;
    captured.measure();
    eager.measure();
  }
  return {{"operations", operations},
          {"recorded",
           {{"step_us", median(recorded.all)},
            {"host_us", median(recorded.host)},
            {"recording_us", median(recording)}}},
          {"captured",
           {{"step_us", median(captured.all)},
            {"host_us", median(captured.host)},
            {"replays", captured.replays()}}},
          {"eager", {{"step_us", median(eager.all)}, {"host_us", median(eager.host)}}}};
}

struct Named {
  const char* name;
  Side::Make make;
  int steps;
};
constexpr Named kAll[] = {
    {"regression", regression, 200}, {"perceptron", perceptron, 200},  {"chain", chain, 50}, {"mlp", mlp, 20},
    {"resnet50", resnet50, 5},       {"transformer6", transformer6, 5}};

}  // namespace

int main(int argc, char** argv) {
  sluice::init();
  const int rounds = std::max(3, argc > 1 ? std::atoi(argv[1]) : 9);  // the first ones warm up
  const std::vector<std::string> wanted(argv + std::min(argc, 2), argv + argc);
  nlohmann::json result;
  for (const Named& named : kAll)
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), named.name) != wanted.end())
      result[named.name] = measure(named.make, named.steps, rounds);
  std::printf("%s\n", result.dump(2).c_str());
  return 0;
}
