#include "sluice/pjrt/program/device_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sluice::pjrt {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A field of bytes with a number above 15, as in an HloInstructionProto.
std::string field(int number, const std::string& content) {
  const int tag = number << 3 | 2;
  return std::string{static_cast<char>((tag & 0x7f) | 0x80), static_cast<char>(tag >> 7),
                     static_cast<char>(content.size())} +
         content;
}
std::vector<int64_t> group_of(const std::string& instruction) {
  bool broken = false;
  const auto group = device_group(instruction, broken);
  EXPECT_FALSE(broken);
  return group;
}
bool is_broken(const std::string& instruction) {
  bool broken = false;
  EXPECT_THAT(device_group(instruction, broken), IsEmpty());
  return broken;
}

// The bytes of libtpu 0.0.51 for a step over fsdp=4, tensor=2 on a v3-8, with its text before them.
// replica_groups={{0,2,4,6},{1,3,5,7}}
const std::string kList("\x0a\x06\x0a\x04\x00\x02\x04\x06\x0a\x06\x0a\x04\x01\x03\x05\x07", 16);
// replica_groups=[2,4]<=[4,2]T(1,0)
const std::string kColumns("\x08\x02\x10\x04\x1a\x02\x04\x02\x22\x02\x01\x00", 12);
// replica_groups=[4,2]<=[8]
const std::string kRows("\x08\x04\x10\x02\x1a\x01\x08\x22\x01\x00", 10);
// replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_0'}
const std::string kAxis(
    "\x0a\x18\x0a\x0a\x0a\x06"
    "axis_0\x10\x04\x0a\x0a\x0a\x06"
    "axis_1\x10\x02\x12\x00",
    28);

TEST(DeviceGroup, TheFormsOfLibtpu) {
  EXPECT_THAT(group_of(field(87, kList)), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(group_of(field(92, kColumns)), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(group_of(field(92, kRows)), ElementsAre(0, 1));
  EXPECT_THAT(group_of(field(93, kAxis)), ElementsAre(0, 2, 4, 6));
}

TEST(DeviceGroup, OlderForms) {
  EXPECT_THAT(group_of(field(87, "\x12\x0c" + kColumns)), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(group_of(field(49, std::string("\x0a\x02\x00\x01", 4)) + field(49, "\x0a\x02\x02\x03")),
              ElementsAre(0, 1));
}

// Both axes, the second one first: all devices. The second half of the first axis: 4 = 2 × 2 devices, of
// which the inner two are 2 apart.
TEST(DeviceGroup, AxesAndTheirParts) {
  const std::string mesh = kAxis.substr(0, 26);
  EXPECT_THAT(group_of(field(93, mesh + std::string("\x12\x02\x08\x01\x12\x00", 6))),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(group_of(field(93, mesh + "\x12\x06\x12\x04\x08\x02\x10\x02")), ElementsAre(0, 2));
  EXPECT_THAT(group_of(field(93, mesh + "\x12\x06\x12\x04\x08\x01\x10\x02")), ElementsAre(0, 4));
}

// Rings 0 → 2 → 4 → 6 → 0 and 1 → 3 → 5 → 7 → 1.
TEST(DeviceGroup, PairsOfAPermutation) {
  std::string pairs;
  for (int device = 7; device >= 0; --device)
    pairs +=
        field(52, std::string{0x08, static_cast<char>(device), 0x10, static_cast<char>((device + 2) % 8)});
  EXPECT_THAT(group_of(pairs), ElementsAre(0, 2, 4, 6));
}

TEST(DeviceGroup, NoneAndBrokenBytes) {
  EXPECT_THAT(group_of(""), IsEmpty());
  EXPECT_TRUE(is_broken(field(92, kRows.substr(0, 8))));                        // no order
  EXPECT_TRUE(is_broken(field(92, "\x08\x03\x10\x02" + kRows.substr(4))));      // 3 × 2 of 8
  EXPECT_TRUE(is_broken(field(93, kAxis.substr(0, 26) + "\x12\x02\x08\x07")));  // an eighth axis
  EXPECT_TRUE(is_broken(field(93, kAxis.substr(0, 26) + "\x12\x06\x12\x04\x08\x03\x10\x02")));  // 3 of 4
}

}  // namespace
}  // namespace sluice::pjrt
