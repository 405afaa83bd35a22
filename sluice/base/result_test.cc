#include "sluice/base/result.h"

#include <gtest/gtest.h>

#include <memory>

#include "sluice/base/check.h"

namespace sluice::base {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0) return fail(Code::kInvalidArgument, "expected an even number, found ", x);
  return x / 2;
}

Result<int> quarter(int x) {
  SLUICE_TRY(const int h, half(x));
  SLUICE_TRY(int q, half(h));
  return q;
}

Status check_even(int x) {
  SLUICE_OK(half(x).map([](int) {}));
  return {};
}

TEST(Error, IsThrownAsAStandardException) {
  EXPECT_THROW(throw_error(Code::kNotFound, "no such file"), Error);
  try {
    throw_error(Code::kNotFound, "no such file");
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "no such file");
    const auto* own = dynamic_cast<const Error*>(&error);
    ASSERT_NE(own, nullptr);
    EXPECT_EQ(own->code(), Code::kNotFound);
  }
}

TEST(Error, IsThrownAsTheProgramChooses) {
  set_error_thrower([](const Error& error) { throw static_cast<int>(error.code()); });
  EXPECT_THROW(throw_error(Code::kNotFound, "no such file"), int);
  set_error_thrower(nullptr);
  EXPECT_THROW(throw_error(Code::kNotFound, "no such file"), std::exception);
}

TEST(Result, ValueOrError) {
  EXPECT_EQ(*quarter(12), 3);
  auto failed = quarter(6);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::kInvalidArgument);
  EXPECT_STREQ(failed.error().what(), "expected an even number, found 3");
}

TEST(Result, StatusPassesTheErrorOn) {
  EXPECT_TRUE(check_even(2));
  EXPECT_EQ(check_even(3).error().code(), Code::kInvalidArgument);
}

TEST(Result, FailAtPutsThePlaceFirst) {
  Result<int> failed = fail_at(half(3), "shard ", 7);
  EXPECT_STREQ(failed.error().what(), "shard 7: expected an even number, found 3");
  EXPECT_EQ(failed.error().code(), Code::kInvalidArgument);
}

TEST(Result, HoldsMoveOnlyValues) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(4);
  EXPECT_EQ(*value_or_throw(std::move(result)), 4);
}

TEST(Result, ThrowsAtTheBorder) {
  EXPECT_THROW(value_or_throw(half(3)), Error);
  EXPECT_EQ(value_or_throw(half(4)), 2);
  EXPECT_THROW(value_or_throw(check_even(3)), Error);
}

TEST(Error, NamesOfCodes) {
  EXPECT_STREQ(code_name(Code::kInvalidArgument), "INVALID_ARGUMENT");
  EXPECT_STREQ(code_name(Code::kDataLoss), "DATA_LOSS");
}

TEST(CheckDeathTest, SaysWhereAndWhy) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(SLUICE_CHECK(1 + 1 == 3, "sum of ", 2),
               "result_test.cc:[0-9]+: broken invariant: 1 \\+ 1 == 3: sum of 2");
  SLUICE_CHECK(true, "never said");
}

}  // namespace
}  // namespace sluice::base
