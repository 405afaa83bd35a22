#include "sluice/train/choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "sluice/base/error.h"

namespace sluice::train {
namespace {

template <typename Choice>
void expect_that_names_and_values_agree() {
  EXPECT_GE(kChoices<Choice>.size(), 2u);
  for (const auto& choice : kChoices<Choice>) {
    EXPECT_EQ(parse_choice<Choice>("it", choice.name), choice.value) << choice.name;
    EXPECT_EQ(name_of(choice.value), choice.name);
  }
}

TEST(Choices, NamesAndValuesAgree) {
  expect_that_names_and_values_agree<DeviceKind>();
  expect_that_names_and_values_agree<OnError>();
  expect_that_names_and_values_agree<Remainder>();
  expect_that_names_and_values_agree<OptimizerKind>();
  expect_that_names_and_values_agree<LrSchedule>();
  expect_that_names_and_values_agree<Precision>();
  expect_that_names_and_values_agree<LogWorkers>();
}

std::string message(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(Choices, AnUnknownNameIsAnErrorWithTheKnownOnes) {
  EXPECT_EQ(message([] { parse_choice<Precision>("--precision", "bf61"); }),
            "--precision is f32 or bf16, not \"bf61\"; did you mean \"bf16\"?");
  EXPECT_EQ(message([] { parse_choice<LrSchedule>("lr_schedule", "cosin"); }),
            "lr_schedule is constant, step, cosine, linear, inverse-sqrt, wsd, one-cycle or "
            "WarmupAndExponentialDecay, not \"cosin\"; did you mean \"cosine\"?");
  EXPECT_EQ(message([] { parse_choice<Remainder>("--remainder", "keep"); }),
            "--remainder is drop, carry or pad, not \"keep\"");
}

TEST(Choices, AValueWithoutANameIsAnError) {
  EXPECT_EQ(message([] { check_choice("--remainder", Remainder::kPad); }), "");
  EXPECT_THAT(message([] { check_choice("--remainder", Remainder::kKeep); }),
              testing::HasSubstr("--remainder is drop, carry or pad"));
}

}  // namespace
}  // namespace sluice::train
