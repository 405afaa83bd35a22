#include "tests/programs/programs.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tests/device/support.h"

namespace sluice::tests {

void Curve::add(const torch::Tensor& loss) {
  losses_.push_back(loss.item<double>());
  programs_.push_back(is_initialized() ? counters().programs : 0);
  times_.push_back(std::chrono::steady_clock::now());
}

double Curve::step_ms() const {
  std::vector<double> steps;
  for (size_t i = 4; i < times_.size(); ++i)
    steps.push_back(std::chrono::duration<double, std::milli>(times_[i] - times_[i - 1]).count());
  std::nth_element(steps.begin(), steps.begin() + steps.size() / 2, steps.end());
  return steps.at(steps.size() / 2);
}

int64_t Curve::later_programs() const { return programs_.back() - programs_.at(2); }

namespace {

std::vector<TutorialProgram> all_programs() {
  std::vector<TutorialProgram> all;
  for (const auto& some : {image_programs(), generative_programs(), sequence_programs(), other_programs(),
                           varying_programs(), detection_programs()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

class Tutorial : public testing::TestWithParam<TutorialProgram> {};

TEST_P(Tutorial, HasTheCpusCurveWithoutFallbacksAndRecompiles) {
  const TutorialProgram& program = GetParam();
  const torch::Device device = test_device();
  Curve expected, found;
  torch::manual_seed(7);
  program.run(torch::kCPU, expected);
  const int64_t fallbacks = counters().fallbacks;
  torch::manual_seed(7);
  program.run(device, found);
  ASSERT_EQ(found.losses().size(), expected.losses().size());
  for (size_t i = 0; i < expected.losses().size(); ++i) {
    EXPECT_NEAR(found.losses()[i], expected.losses()[i],
                program.tolerance * (1e-2 + std::abs(expected.losses()[i])))
        << "step " << i;
  }
  EXPECT_GT(std::abs(expected.losses().front() - expected.losses().back()), 1e-4) << "it learns nothing";
  if (on_cpu()) return;
  if (!program.host_shapes) {
    EXPECT_EQ(counters().fallbacks, fallbacks) << metrics_report();
  }
  EXPECT_LE(found.later_programs(), program.more_programs) << metrics_report();
}

// Prints the time of a step on LibTorch's CPU device and on ours, in turns. It needs a release build and a
// machine that does nothing else.
TEST_P(Tutorial, DISABLED_TableOfTimes) {
  constexpr int kTurns = 3;
  std::vector<double> cpu, ours;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (auto& [device, times] : {std::pair{torch::Device(torch::kCPU), &cpu}, {test_device(), &ours}}) {
      Curve curve;
      torch::manual_seed(7);
      GetParam().run(device, curve);
      times->push_back(curve.step_ms());
    }
  }
  std::sort(cpu.begin(), cpu.end());
  std::sort(ours.begin(), ours.end());
  std::printf("%-28s CPU %9.3f ms, device %9.3f ms, ratio %.2f\n", GetParam().name.c_str(), cpu[kTurns / 2],
              ours[kTurns / 2], cpu[kTurns / 2] / ours[kTurns / 2]);
}

INSTANTIATE_TEST_SUITE_P(All, Tutorial, testing::ValuesIn(all_programs()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice::tests
