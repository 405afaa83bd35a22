#include "sluice/device/agree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::device {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Process p of `count`, with devices 2p and 2p + 1, and this number to the plugin.
Opened process(int number, int count) {
  return {"tpu 1.2", number, count, {2 * number, 2 * number + 1}, true};
}

std::string refusal(const std::vector<Opened>& all) {
  const auto agreed = agree(all, 0, "sluice run");
  return agreed ? "" : agreed.error().what();
}

TEST(Agree, ReplicasAreInTheProcessesOrder) {
  const auto agreed = agree({process(0, 3), process(1, 3), process(2, 3)}, 1, "sluice run");
  ASSERT_TRUE(agreed);
  EXPECT_EQ(agreed->process_index, 1);
  EXPECT_THAT(agreed->devices, ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Agree, ThePluginsNumbersDecide) {
  const auto agreed = agree({process(1, 2), process(0, 2)}, 0, "sluice run");
  ASSERT_TRUE(agreed);
  EXPECT_EQ(agreed->process_index, 1);
  EXPECT_THAT(agreed->devices, ElementsAre(0, 1, 2, 3));
}

TEST(Agree, WhereProgramsDoNotSpanProcessesTheLauncherDecides) {
  const Opened one{"cpu", 0, 1, {0, 1}, false};
  const auto agreed = agree({one, one, one}, 2, "sluice run");
  ASSERT_TRUE(agreed);
  EXPECT_EQ(agreed->process_index, 2);
  EXPECT_THAT(agreed->devices, ElementsAre(0, 1));
}

TEST(Agree, RefusesAnotherCount) {
  EXPECT_THAT(refusal({process(0, 1), process(0, 1), process(0, 1), process(0, 1)}),
              AllOf(HasSubstr("sluice run started 4 processes"), HasSubstr("knows the devices of 1")));
}

TEST(Agree, RefusesOneNumberTwice) {
  EXPECT_THAT(refusal({process(0, 2), process(0, 2)}),
              HasSubstr("processes 0 and 1 of sluice run are both number 0 to the plugin"));
  EXPECT_THAT(refusal({process(0, 2), process(2, 2)}), HasSubstr("its number 2 of 2"));
}

TEST(Agree, RefusesOtherPlugins) {
  Opened other = process(1, 2);
  other.plugin = "tpu 1.3";
  EXPECT_THAT(refusal({process(0, 2), other}),
              AllOf(HasSubstr("process 0 has tpu 1.2"), HasSubstr("process 1 has tpu 1.3")));
}

TEST(Agree, RefusesUnequalNumbersOfDevices) {
  Opened other = process(1, 2);
  other.devices.pop_back();
  EXPECT_THAT(refusal({process(0, 2), other}), HasSubstr("process 0 drives 2 devices, process 1 drives 1"));
}

TEST(Agree, RefusesADeviceTwice) {
  Opened other = process(1, 2);
  other.devices = {1, 2};
  EXPECT_THAT(refusal({process(0, 2), other}), HasSubstr("device 1 is driven by two replicas"));
}

// A process of two slices.
Opened in_slice(int number, int count, int slice) {
  Opened one = process(number, count);
  one.devices = {100'000 * slice + 2 * number, 100'000 * slice + 2 * number + 1};
  one.slice = one.told_slice = slice;
  one.told_slices = 2;
  one.kind = "TPU v5p";
  return one;
}

// Whatever numbers the plugin gives to processes: slice 0's devices come first.
TEST(Agree, DevicesOfSlicesInTheirOrder) {
  const auto agreed =
      agree({in_slice(1, 4, 0), in_slice(3, 4, 0), in_slice(0, 4, 1), in_slice(2, 4, 1)}, 2, "sluice run");
  ASSERT_TRUE(agreed) << agreed.error().what();
  EXPECT_THAT(agreed->devices, ElementsAre(2, 3, 6, 7, 100'000, 100'001, 100'004, 100'005));
  EXPECT_THAT(agreed->slice_of, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(agreed->process_of, ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
  EXPECT_EQ(agreed->process_index, 2);
}

TEST(Agree, RefusesSlicesThatDoNotFit) {
  std::vector<Opened> all = {in_slice(0, 4, 0), in_slice(1, 4, 0), in_slice(2, 4, 1), in_slice(3, 4, 1)};
  EXPECT_EQ(refusal(all), "");
  auto others = all;
  for (Opened& one : others) one.told_slices = 4;
  EXPECT_THAT(refusal(others), AllOf(HasSubstr("sluice run started processes for 4 slices"),
                                     HasSubstr("knows the devices of 2")));
  others = all;
  std::swap(others[1].told_slice, others[2].told_slice);
  EXPECT_THAT(refusal(others),
              HasSubstr("process 1 of sluice run is in slice 0 by its plugin, but in slice 1"));
  others = all;
  others[2].slice = others[2].told_slice = 0;
  EXPECT_THAT(refusal(others),
              AllOf(HasSubstr("slice 0 has 3 processes, slice 1 has 1"), HasSubstr("topology")));
  others = all;
  others[3].kind = "TPU v4";
  EXPECT_THAT(refusal(others), HasSubstr("process 0 has devices of TPU v5p, process 3 of TPU v4"));
}

TEST(Agree, WhatIsToldIsRead) {
  const Opened told{"tpu\nwith lines", 3, 4, {24, 25}, true};
  const auto read = opened_from(to_text(told));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->plugin, told.plugin);
  EXPECT_EQ(read->process_index, 3);
  EXPECT_EQ(read->processes, 4);
  EXPECT_THAT(read->devices, ElementsAre(24, 25));
  EXPECT_TRUE(read->spans_processes);
  EXPECT_EQ(read->slice, -1);
  const auto second = opened_from(to_text(in_slice(3, 4, 1)));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->slice, 1);
  EXPECT_EQ(second->told_slice, 1);
  EXPECT_EQ(second->told_slices, 2);
  EXPECT_EQ(second->kind, "TPU v5p");
  EXPECT_FALSE(opened_from("nonsense"));
  EXPECT_FALSE(opened_from("1 2\n3 x\n"));
}

TEST(ChooseDevices, TakesTheFirstOrThoseOfTheseNumbers) {
  EXPECT_THAT(*choose_devices({8, 9, 10}, {}, 2, true), ElementsAre(8, 9));
  EXPECT_THAT(*choose_devices({8, 9, 10}, {2, 0}, 2, true), ElementsAre(10, 8));
  EXPECT_THAT(*choose_devices({0, 1, 2, 3, 4, 5}, {5}, 1, false), ElementsAre(5));
}

TEST(ChooseDevices, RefusesWhatIsNotThere) {
  EXPECT_THAT(choose_devices({8, 9}, {}, 3, true).error().what(), HasSubstr("at most 2 devices"));
  EXPECT_THAT(choose_devices({8, 9}, {8}, 1, true).error().what(),
              HasSubstr("counts within each, from 0 to 1"));
  EXPECT_THAT(choose_devices({0, 1}, {7}, 1, false).error().what(),
              AllOf(HasSubstr("no device 7"), HasSubstr("0, 1")));
  EXPECT_THAT(choose_devices({0, 1}, {1, 1}, 2, false).error().what(), HasSubstr("given twice"));
}

TEST(Agree, DamagedWordsAreErrorsThatCanBeShown) {
  const std::string sound = to_text(process(0, 2));
  ASSERT_TRUE(opened_from(sound));
  for (size_t size = 0; size < sound.rfind('\n'); ++size) (void)opened_from(sound.substr(0, size));
  for (const std::string& text :
       {std::string(), std::string("1 2 1"), std::string("1 2\n3\ntpu"),
        std::string("1 2 99999999999\n0\ntpu"), "\x1b[2J\n\n" + std::string(100'000, 'x')}) {
    const auto read = opened_from(text);
    ASSERT_FALSE(read);
    const std::string message = read.error().what();
    EXPECT_LT(message.size(), 1000u);
    EXPECT_EQ(message.find('\x1b'), std::string::npos);
  }
  EXPECT_EQ(opened_from("0 1 1 -1 0 1\n0\nTPU\n\x1b[2J")->plugin, "\\x1b[2J");
}

}  // namespace
}  // namespace sluice::device
