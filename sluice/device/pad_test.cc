#include "sluice/device/pad.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace sluice {
namespace {

using torch::Tensor;

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

TEST(PadTo, TheSmallestLengthThatFits) {
  const Tensor x = torch::arange(6).reshape({3, 2});
  for (const auto& [given, expected] : std::vector<std::pair<std::vector<int64_t>, int64_t>>{
           {{4, 8}, 4}, {{8, 4}, 4}, {{2, 3, 8}, 3}, {{2, 16}, 16}}) {
    const auto [values, mask] = pad_to(x, given, 7);
    ASSERT_EQ(values.sizes(), (std::vector<int64_t>{expected, 2}));
    EXPECT_EQ(values.scalar_type(), torch::kLong);
    EXPECT_TRUE(torch::equal(values.slice(0, 0, 3), x));
    EXPECT_TRUE(values.slice(0, 3).eq(7).all().item<bool>());
    EXPECT_TRUE(torch::equal(mask, torch::arange(expected) < 3));
  }
}

TEST(PadTo, AnyDimension) {
  const Tensor x = torch::randn({2, 3, 4});
  for (const int64_t dim : {0, 1, 2, -1, -3}) {
    const auto [values, mask] = pad_to(x, {5}, 0, dim);
    EXPECT_EQ(values.size(dim), 5);
    EXPECT_EQ(values.numel() / 5, x.numel() / x.size(dim));
    EXPECT_TRUE(torch::equal(values.slice(dim, 0, x.size(dim)), x));
    EXPECT_EQ(mask.sizes(), at::IntArrayRef{5});
    EXPECT_EQ(mask.sum().item<int64_t>(), x.size(dim));
  }
}

TEST(PadTo, GradientsAreThoseOfTheValues) {
  const Tensor x = torch::randn({3}, torch::requires_grad());
  pad_to(x, {8}, 1).values.pow(2).sum().backward();
  EXPECT_TRUE(torch::allclose(x.grad(), 2 * x));
}

TEST(PadTo, ABatchOfSequences) {
  const auto [values, mask] =
      pad_to({torch::ones({2, 3}), torch::ones({0, 3}), torch::ones({4, 3})}, {4, 8}, -1);
  ASSERT_EQ(values.sizes(), (std::vector<int64_t>{3, 4, 3}));
  const Tensor expected =
      torch::tensor({1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1}).reshape({3, 4}).to(torch::kBool);
  EXPECT_TRUE(torch::equal(mask, expected));
  EXPECT_TRUE(torch::equal(values.select(2, 0), torch::where(expected, 1.0f, -1.0f)));
}

TEST(PadTo, Errors) {
  using testing::HasSubstr;
  const Tensor x = torch::ones({70, 2});
  EXPECT_THAT(error_of([&] {
                pad_to(x, {16, 64});
              }),
              HasSubstr("dimension 0 is 70, and the largest of the given lengths is 64"));
  EXPECT_THAT(error_of([&] { pad_to(x, {}); }), HasSubstr("no length was given"));
  EXPECT_THAT(error_of([&] { pad_to(x, {0, 80}); }), HasSubstr("expected lengths above 0, found 0"));
  EXPECT_THAT(error_of([&] { pad_to(x, {80}, 0, 2); }), HasSubstr("Dimension out of range"));
  EXPECT_THAT(error_of([&] { pad_to(torch::ones({}), {80}); }), HasSubstr("a single number"));
  EXPECT_THAT(error_of([&] { pad_to(at::TensorList(), {80}); }), HasSubstr("found none"));
  EXPECT_THAT(error_of([&] { pad_to({x, x.to(torch::kDouble)}, {80}); }), HasSubstr("CPUDoubleType[70, 2]"));
  EXPECT_THAT(error_of([&] { pad_to({x, torch::ones({70, 3})}, {80}); }), HasSubstr("[70, 3]"));
}

}  // namespace
}  // namespace sluice
