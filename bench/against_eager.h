// Measures an operation and its gradient on the device beside LibTorch eager on the same cores.
#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/device/device.h"

namespace sluice::bench {

using torch::Tensor;

inline constexpr int kWarmUp = 3;
inline constexpr double kWarmSeconds = 0.1;
inline constexpr int kThreads = 2;

struct Rounds {
  int count = 15;
  int together = 4;     // times that a side does the operation in a round
  double seconds = 60;  // no round is begun after these
  // By what the process' threads have worked, instead of the clock: for a machine that is not quiet.
  bool processor_time = false;
};

inline double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// One operation on one device. The inputs whose gradients are wanted are parameters.
struct Case {
  std::vector<Tensor> parameters;
  std::function<Tensor()> operation;
};
using MakeCase = std::function<Case(torch::Device)>;

inline Tensor random_parameter(torch::IntArrayRef dims, torch::Device device) {
  return torch::randn(dims).to(device).requires_grad_();
}

// A side's inputs, and the gradient that its results are given.
class Side {
 public:
  Side(const MakeCase& make, torch::Device device, int together)
      : case_(make(device)), device_(device), together_(together) {
    torch::NoGradGuard no_grad;
    gradient_ = torch::randn(case_.operation().sizes()).to(device);
    const base::Stopwatch watch;
    run();
    first_seconds_ = watch.seconds();
    for (int i = 1; i < kWarmUp && watch.seconds() < kWarmSeconds; ++i) run();
  }

  // Of the first run, which compiles.
  double first_seconds() const { return first_seconds_; }

  // Of one operation. Untimed ones come first: the threads of the other side look for work for a while after
  // it and would share the cores.
  double milliseconds(bool processor_time) {
    const base::Stopwatch warming;
    do {
      run();
    } while (warming.seconds() < kWarmSeconds);
    const clockid_t clock = processor_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    const double begin = seconds_of(clock);
    run();
    return (seconds_of(clock) - begin) * 1000 / together_;
  }

 private:
  void run() {
    torch::AutoGradMode with_gradients(true);
    for (int i = 0; i < together_; ++i) {
      for (Tensor& parameter : case_.parameters) parameter.mutable_grad() = Tensor();
      result_ = case_.operation();
      result_.backward(gradient_);
      if (!device_.is_cpu()) sync();
    }
    if (!device_.is_cpu()) wait();
  }

  Case case_;
  torch::Device device_;
  int together_;
  double first_seconds_ = 0;
  Tensor gradient_, result_;
};

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Both medians in milliseconds, and eager's divided by the device's.
inline nlohmann::json compare(const MakeCase& make, const Rounds& rounds) {
  torch::manual_seed(1);
  Side device(make, torch::Device("xla:0"), rounds.together), eager(make, torch::kCPU, rounds.together);
  std::vector<double> device_ms, eager_ms;
  const base::Stopwatch watch;
  for (int i = 0; i < rounds.count && (i == 0 || watch.seconds() < rounds.seconds); ++i) {
    device_ms.push_back(device.milliseconds(rounds.processor_time));
    eager_ms.push_back(eager.milliseconds(rounds.processor_time));
  }
  const double of_device = median(device_ms), of_eager = median(eager_ms);
  return {{"device_ms", of_device},
          {"eager_ms", of_eager},
          {"eager_by_device", of_eager / of_device},
          {"first_s", device.first_seconds()}};
}

}  // namespace sluice::bench
