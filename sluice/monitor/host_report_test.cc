#include "sluice/monitor/host_report.h"

#include <gtest/gtest.h>

namespace sluice::monitor {
namespace {

HostReport example() {
  HostReport report;
  report.host = "v4-0";
  report.tpu_chips = 2;
  report.tpu = "2 chips of TPU v4";
  report.tpu_files = {"/dev/accel0", "/dev/accel1"};
  report.holders = {{7, "python3", "ada", 5, {"/dev/accel1"}}};
  report.metrics = {
      true, {{0, 93.5, 10, 16}, {1, std::nullopt, std::nullopt, std::nullopt}}, {"port 8432: …"}};
  SeenProcess seen;
  seen.status.identity.run = "r";
  seen.status.step = 12;
  seen.state = SeenProcess::State::kGone;
  seen.age = 3;
  report.processes = {seen};
  report.time = 1e9;
  return report;
}

TEST(HostReport, ComesBackAsItWas) {
  const std::string text = text_of({example()}, -1);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto back = parse_report(text);
  ASSERT_TRUE(back) << back.error().what();
  EXPECT_EQ(text_of({*back}, -1), text);
  EXPECT_EQ(back->processes.at(0).state, SeenProcess::State::kGone);
  for (const char* wrong : {"", "{}", "{\"hosts\":[]}", "{\"hosts\":[{}]}", "sluice: unknown verb"})
    EXPECT_FALSE(parse_report(wrong)) << wrong;
}

TEST(HostReport, NamesMayBeAnyBytes) {
  HostReport report = example();
  report.tpu_files = {"/dev/\xff", R"(/dev/\xff)"};
  report.processes[0].status.identity.program = "caf\xe9";
  report.processes[0].status.identity.run = R"(\xe9)";
  const auto back = parse_report(text_of({report}, -1));
  ASSERT_TRUE(back) << back.error().what();
  EXPECT_EQ(back->tpu_files, report.tpu_files);
  EXPECT_EQ(back->processes[0].status.identity.program, "caf\xe9");
  EXPECT_EQ(back->processes[0].status.identity.run, R"(\xe9)");
}

// A host may send anything.
TEST(HostReport, DeepLinesAndControlCharacters) {
  std::string text = text_of({example()}, -1);
  const size_t at = text.find("\"program\"");
  ASSERT_NE(at, std::string::npos);
  const auto with_depth = [&](size_t depth) {
    const std::string deep = std::string(depth, '[') + std::string(depth, ']');
    return parse_report(text.substr(0, at) + "\"x\":" + deep + "," + text.substr(at)).has_value();
  };
  EXPECT_TRUE(with_depth(32));
  EXPECT_FALSE(with_depth(300'000));
  HostReport report = example();
  report.trouble =
      "\x1b]0;title\x07\xC2\x9b"
      "2J";
  const std::string shown = text_of({report}, -1);
  EXPECT_EQ(shown.find("\xC2\x9b"), std::string::npos);
  EXPECT_EQ(shown.find('\x1b'), std::string::npos);
  EXPECT_EQ(parse_report(shown)->trouble, report.trouble);
}

TEST(HostReport, WhoHoldsAChip) {
  HostReport report = example();
  EXPECT_EQ(holder_of_chip(report, 0), nullptr);
  ASSERT_NE(holder_of_chip(report, 1), nullptr);
  EXPECT_EQ(holder_of_chip(report, 1)->process, 7);
  EXPECT_EQ(holder_of_chip(report, 2), nullptr);
  report.holders = {{9, "other", "bob", 0, {}}};  // libtpu's lock
  EXPECT_EQ(holder_of_chip(report, 0)->process, 9);
}

}  // namespace
}  // namespace sluice::monitor
