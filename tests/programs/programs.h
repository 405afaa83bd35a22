// Small programs in the style of public tutorials: written for any device, which is their only argument.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <string>
#include <vector>

namespace sluice::tests {

// What a program prints step by step: the losses, as a tutorial reads them, how many programs the device had
// compiled by then, and when.
class Curve {
 public:
  void add(const torch::Tensor& loss);
  const std::vector<double>& losses() const { return losses_; }
  // Compiled after the third step: what follows a step's last read is cut with the next one.
  int64_t later_programs() const;
  // Returns the median time of the steps after the third one, in milliseconds.
  double step_ms() const;

 private:
  std::vector<double> losses_;
  std::vector<int64_t> programs_;
  std::vector<std::chrono::steady_clock::time_point> times_;
};

struct TutorialProgram {
  std::string name;
  void (*run)(torch::Device device, Curve& curve);
  double tolerance = 2e-3;    // of the losses, relative
  int64_t more_programs = 0;  // that the device may compile after the third step
  bool host_shapes = false;   // whether what depends on values runs on the host, where fallbacks count it
};

std::vector<TutorialProgram> image_programs();
std::vector<TutorialProgram> generative_programs();
std::vector<TutorialProgram> sequence_programs();
std::vector<TutorialProgram> other_programs();
std::vector<TutorialProgram> varying_programs();
std::vector<TutorialProgram> detection_programs();

inline constexpr int kSteps = 6;

// Made on the CPU, so that every device gets the same numbers.
inline torch::Tensor images(int64_t count, int64_t channels, int64_t size, torch::Device device) {
  return torch::rand({count, channels, size, size}).to(device);
}
inline torch::Tensor labels(int64_t count, int64_t classes, torch::Device device) {
  return torch::randint(classes, {count}, torch::kLong).to(device);
}

}  // namespace sluice::tests
