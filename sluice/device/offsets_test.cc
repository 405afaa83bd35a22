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

TEST(Offsets, MoveAgainUnlessTwoTracesHadThem) {
  const TypeRef type = intern(DType::kF32, {10, 3});
  Offsets offsets;
  Trace::get().clear();
  offsets.place(7);
  offsets.place(8);
  offsets.place(7);
  EXPECT_TRUE(offsets.stays(7));  // within one trace an offset is one thing
  EXPECT_FALSE(offsets.stays(9));
  Trace::get().clear();
  EXPECT_FALSE(offsets.stays(7));
  EXPECT_FALSE(offsets.moves("sluice::view", type, {3, 1}, /*known=*/true));
  offsets.place(7);
  for (int trace = 0; trace < Offsets::kConstant; ++trace) {
    EXPECT_FALSE(offsets.moves("sluice::view", type, {3, 1}));
    Trace::get().clear();
  }
  EXPECT_TRUE(offsets.stays(7));
  EXPECT_FALSE(offsets.stays(8));
  EXPECT_TRUE(offsets.moves("sluice::view", type, {3, 1}, /*known=*/true));
  offsets.forget();
  EXPECT_FALSE(offsets.stays(7));
}

}  // namespace
}  // namespace sluice::device::testing
