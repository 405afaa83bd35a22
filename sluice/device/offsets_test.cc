#include "sluice/device/offsets.h"

#include "sluice/device/testing/recording.h"

namespace sluice::device::testing {
namespace {

TEST(Offsets, MoveOnceFourTracesHaveBroughtNewOnes) {
  const TypeRef type = intern(DType::kF32, {10, 3});
  Offsets offsets;
  for (int trace = 0; trace < Offsets::kConstant; ++trace) {
    Trace::get().clear();
    EXPECT_FALSE(offsets.moves("sluice::view", type, {3, 1}));
    EXPECT_FALSE(offsets.moves("sluice::view", type, {3, 1}));  // a second one of this trace
  }
  EXPECT_FALSE(offsets.moves("sluice::view", type, {3, 1}));
  Trace::get().clear();
  EXPECT_TRUE(offsets.moves("sluice::view", type, {3, 1}));
  EXPECT_FALSE(offsets.moves("sluice::view", type, {3, 2}));
  EXPECT_FALSE(offsets.moves("sluice::view_write", type, {3, 1}));
  EXPECT_FALSE(offsets.moves("sluice::view", intern(DType::kF32, {9, 3}), {3, 1}));
}

}  // namespace
}  // namespace sluice::device::testing
