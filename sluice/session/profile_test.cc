// Profiles of a session's steps.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>

#include "sluice/base/files/file.h"
#include "sluice/base/span.h"
#include "sluice/session/session.h"

namespace sluice {
namespace {

// The text of the only profile in this folder; "" without one.
std::string page_in(const std::string& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".txt") return base::value_or_throw(base::read_file(entry.path()));
  return "";
}

void train(Session& session, int steps) {
  torch::nn::Linear model(4, 2);
  model->to(session.device());
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const torch::Tensor x = torch::ones({8, 4}).to(session.device());
  for (int i = 0; i < steps; ++i) {
    const Span span("my part");
    model->forward(x).sum().backward();
    session.step(optimizer);
  }
}

void expect_profile_of_steps_3_and_4(const std::string& device) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  Options options;
  options.device = device;
  Session session = start(options);
  session.profile(3, 5, folder.path());
  train(session, 6);
  const std::string page = page_in(folder.path());
  EXPECT_NE(page.find("\nSteps 3 to 4: "), std::string::npos) << page;
  EXPECT_NE(page.find("my part\n"), std::string::npos) << page;
  EXPECT_FALSE(base::spans_are_recorded());
}

TEST(Profile, OfSteps) { expect_profile_of_steps_3_and_4("cpu"); }

TEST(Profile, OfNoneOfTheStepsSaysSo) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  testing::internal::CaptureStderr();
  {
    Options options;
    options.device = "cpu";
    Session session = start(options);
    session.profile(3, 5, folder.path());
    train(session, 2);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("no step was profiled: the steps 3:5 were asked for, and 2 steps were made"),
            std::string::npos)
      << said;
  EXPECT_EQ(page_in(folder.path()), "");
}

TEST(Profile, ThatTheSessionsEndCutsShortIsWritten) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  {
    Options options;
    options.device = "cpu";
    Session session = start(options);
    session.profile(2, 100, folder.path());
    train(session, 4);
  }
  EXPECT_NE(page_in(folder.path()).find("\nSteps 2 to 4: "), std::string::npos) << page_in(folder.path());
}

TEST(Profile, RefusesStepsThatAreNone) {
  Options options;
  options.device = "cpu";
  Session session = start(options);
  for (const auto& [first, end] : {std::pair{13, 10}, {0, 5}, {5, 5}})
    EXPECT_THROW(session.profile(first, end, "anywhere"), Error) << first << ":" << end;
}

// A folder that cannot be made is a warning; the training goes on.
TEST(Profile, ThatCannotBeWrittenStopsNothing) {
  Options options;
  options.device = "cpu";
  Session session = start(options);
  session.profile(1, 3, "/proc/none");
  testing::internal::CaptureStderr();
  train(session, 4);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("the profile of the steps 1:3 is lost: "),
            std::string::npos);
  EXPECT_EQ(session.steps(), 4);
}

}  // namespace
}  // namespace sluice
