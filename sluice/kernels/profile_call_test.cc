// Calls of kernels in profiles.
#include "sluice/kernels/profile_call.h"

#include <gtest/gtest.h>

#include "sluice/base/span.h"
#include "sluice/kernels/test_call.h"
#include "sluice/profile/kernel_calls.h"

namespace sluice::kernels {
namespace {

const TestCall kProduct = {
    "sluice_product",
    {{{6, 8}}, {{6, 12}}},
    {{{8, 12}}},
    {{"transposed_a", int64_t{1}}, {"transposed_b", int64_t{0}}, {"recorded", int64_t{77}}}};

TEST(ProfileCall, KnowsWhatWasRecordedAndItsWork) {
  profile::name_recorded(77, {"fc.weight/backward/aten::mm"});
  ASSERT_TRUE(base::start_spans());
  ASSERT_TRUE(answer(kProduct));
  TestCall unnamed = kProduct;
  unnamed.attributes.erase("recorded");
  ASSERT_TRUE(answer(unnamed));
  const base::SpanRecording recording = base::stop_spans();
  const auto calls = profile::take_kernel_calls(recording.begin).calls;
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].layer, "fc");
  EXPECT_EQ(calls[0].pass, "backward");
  EXPECT_EQ(calls[0].call.flops, 2.0 * 8 * 6 * 12);
  EXPECT_EQ(calls[0].call.bytes, 4.0 * (6 * 8 + 6 * 12 + 8 * 12));
  EXPECT_GE(calls[0].call.begin, recording.begin);
  EXPECT_GT(calls[0].call.end, calls[0].call.begin);
  EXPECT_LE(calls[0].call.end, calls[1].call.begin);
  EXPECT_EQ(calls[1].layer, "sluice_product") << "nobody named it";
  EXPECT_EQ(calls[1].pass, "");
}

TEST(ProfileCall, WithoutAProfileNothingIsKept) {
  ASSERT_TRUE(answer(kProduct));
  EXPECT_TRUE(profile::take_kernel_calls(0).calls.empty());
}

TEST(ProfileCall, OneThatIsRefusedIsNone) {
  TestCall wrong = kProduct;
  wrong.operands.pop_back();
  ASSERT_TRUE(base::start_spans());
  EXPECT_FALSE(answer(wrong));
  base::stop_spans();
  EXPECT_TRUE(profile::take_kernel_calls(0).calls.empty());
}

}  // namespace
}  // namespace sluice::kernels
