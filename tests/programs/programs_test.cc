#include "tests/programs/programs.h"

#include "tests/device/support.h"

namespace sluice::tests {

void Curve::add(const torch::Tensor& loss) {
  losses_.push_back(loss.item<double>());
  programs_.push_back(is_initialized() ? counters().programs : 0);
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

INSTANTIATE_TEST_SUITE_P(All, Tutorial, testing::ValuesIn(all_programs()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice::tests
