#include "sluice/cli/monitor/top_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/text/join.h"

namespace sluice::cli {
namespace {

using monitor::HostReport;
using monitor::SeenProcess;
using ::testing::HasSubstr;
using ::testing::Not;

SeenProcess process(int index, SeenProcess::State state) {
  SeenProcess seen;
  seen.status.identity.process = 100 + index;
  seen.status.identity.index = index;
  seen.status.identity.count = 3;
  seen.status.identity.program = "train";
  seen.status.step = 1200;
  seen.status.step_ms = 41.25;
  seen.status.rate = 3100;
  seen.status.shares = {0.71, 0.04, 0.25};
  seen.state = state;
  seen.age = 312;
  return seen;
}

std::string text_of(const HostReport& report) {
  std::string text = base::join(top_lines({report}), "\n");
  std::erase(text, kHeading);
  return text;
}

TEST(TopTable, ProcessesAndChips) {
  HostReport report;
  report.host = "v4-0";
  report.tpu_chips = 2;
  report.tpu_files = {"/dev/accel0", "/dev/accel1"};
  report.holders = {{7, "python3", "ada", 0, {"/dev/accel1"}}};
  report.metrics.running = true;
  report.metrics.chips = {{0, 93.5, uint64_t{10} << 30, uint64_t{32} << 30}, {1, {}, {}, {}}};
  report.processes = {process(0, SeenProcess::State::kRunning), process(1, SeenProcess::State::kSilent),
                      process(2, SeenProcess::State::kGone)};
  const auto lines = top_lines({report});
  ASSERT_EQ(lines.size(), 8u) << text_of(report);
  EXPECT_EQ(lines[0][0], kHeading);
  EXPECT_THAT(lines[1], HasSubstr("running  "));
  EXPECT_THAT(lines[1], HasSubstr("1200     41.2  3100.0  -     71 %    4 %    25 %"));
  EXPECT_THAT(lines[2], HasSubstr("silent 312 s"));
  EXPECT_THAT(lines[2], Not(HasSubstr("41.2")));  // that was before
  EXPECT_THAT(lines[3], HasSubstr("killed"));
  EXPECT_THAT(lines[6], HasSubstr("93.5 %  10.0 of 32.0 GiB  -"));
  EXPECT_THAT(lines[7], HasSubstr("process 7 (python3) of user ada"));
  EXPECT_THAT(text_of(report), Not(HasSubstr("no TPU program")));
}

TEST(TopTable, TheSliceOfAProcessOfSeveral) {
  HostReport report;
  report.host = "v4-0";
  report.processes = {process(2, SeenProcess::State::kRunning)};
  EXPECT_THAT(text_of(report), Not(HasSubstr("slice")));
  report.processes[0].status.identity.slice = 1;
  EXPECT_THAT(text_of(report), HasSubstr("2/3 slice 1"));
}

TEST(TopTable, CoresOfAChipHaveOneHolder) {
  HostReport report;
  report.tpu_files = {"/dev/accel0", "/dev/accel1"};
  report.holders = {{7, "a", "", 0, {"/dev/accel0"}}, {8, "b", "", 0, {"/dev/accel1"}}};
  report.metrics.running = true;
  for (int core = 0; core < 4; ++core) report.metrics.chips.push_back({core, 50.0, {}, {}});
  const auto lines = top_lines({report});
  for (size_t core = 0; core < 4; ++core)
    EXPECT_THAT(lines.at(lines.size() - 4 + core), HasSubstr(core < 2 ? "process 7" : "process 8"));
}

TEST(TopTable, WhatIsMissingIsSaid) {
  HostReport report;
  report.host = "h";
  report.tpu = "no TPU";
  EXPECT_EQ(text_of(report),
            "no training process of Sluice is known here\n\nh: no TPU, and no TPU program is running");
  report.tpu = "4 chips of TPU v4";
  report.tpu_chips = 4;
  EXPECT_THAT(text_of(report), HasSubstr("h: 4 chips of TPU v4; no TPU program is running"));
  report.trouble = "cannot reach h";
  EXPECT_THAT(text_of(report), HasSubstr("h: cannot reach h"));
  EXPECT_THAT(text_of(report), Not(HasSubstr("no TPU program")));
}

TEST(TopTable, NothingMovesTheCursor) {
  HostReport report;
  report.host = "h\x1b[2J\r\n";
  report.processes = {process(0, SeenProcess::State::kRunning)};
  report.processes[0].status.identity.program = "a\x1b]0;title\x07";
  for (const std::string& line : top_lines({report}))
    for (const char c : line) EXPECT_TRUE(c == kHeading || static_cast<unsigned char>(c) >= ' ') << line;
}

}  // namespace
}  // namespace sluice::cli
