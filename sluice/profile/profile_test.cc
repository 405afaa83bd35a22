#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sluice/base/files/file.h"
#include "sluice/profile/capture.h"
#include "sluice/profile/chrome_trace.h"
#include "sluice/profile/host_lines.h"
#include "sluice/profile/words.h"
#include "sluice/profile/xspace.h"

namespace sluice::profile {
namespace {

constexpr int64_t kMs = 1'000'000;

base::SpanRecord span(const char* name, int64_t begin_ms, int64_t end_ms, base::SpanNumbers numbers = {}) {
  return {name, begin_ms * kMs, end_ms * kMs, numbers};
}

// Two steps of 10 ms: in each 6 ms of waiting, of which 2 ms copy; 1 ms has no name.
base::SpanRecording two_steps() {
  base::SpanRecording recording;
  recording.begin = 100 * kMs;
  recording.end = 120 * kMs;
  recording.epoch = int64_t{1'764'000'000'000'000'000};
  recording.main_thread = 7;
  base::SpanLine main{"main", 7, true, {}};
  for (int64_t step : {0, 1}) {
    const int64_t t = 100 + 10 * step;
    main.spans.push_back(span("copy", t + 2, t + 4, {.bytes = 1024}));
    main.spans.push_back(span("wait", t + 1, t + 7));
    main.spans.push_back(span("record", t + 7, t + 10));
    main.spans.push_back(span(kStepSpan, t, t + 10, {.step = 41 + step}));
  }
  recording.lines = {main,
                     {"xla:0", 1, false, {span("program", 99, 105), span("program", 112, 118)}},
                     {"sluice \"read\"", 8, true, {span("read", 101, 103, {.batch = 5, .bytes = 10})}}};
  return recording;
}

TEST(SelfTimes, LeaveOutWhatLiesWithin) {
  auto spans = two_steps().lines[0].spans;
  sort_spans(spans);
  const auto totals = self_times(spans, 100 * kMs, 120 * kMs);
  ASSERT_EQ(totals.size(), 3u) << "the steps do not count";
  EXPECT_EQ(totals.at("wait").self, 8 * kMs);
  EXPECT_EQ(totals.at("wait").count, 2);
  EXPECT_EQ(totals.at("copy").self, 4 * kMs);
  EXPECT_EQ(totals.at("copy").bytes, 2048);
  EXPECT_EQ(totals.at("record").self, 6 * kMs);
  EXPECT_EQ(self_times(spans, 103 * kMs, 105 * kMs).at("wait").self, 1 * kMs) << "cut to the window";
}

TEST(SelfTimes, OfSpansThatReachOutOfTheirParentAddUp) {
  std::vector<base::SpanRecord> spans = {span("a", 0, 10), span("b", 5, 15), span("c", 15, 20)};
  sort_spans(spans);
  const auto totals = self_times(spans, 0, 20 * kMs);
  EXPECT_EQ(totals.at("a").self, 5 * kMs);
  EXPECT_EQ(totals.at("b").self, 5 * kMs);
  EXPECT_EQ(totals.at("c").self, 5 * kMs);
}

TEST(InWords, SaysWhatAStepsTimeWentInto) {
  const std::string text = in_words(two_steps(), {.host = "worker", .device = "plugin cpu"});
  EXPECT_NE(text.find("Steps 41 to 42: 10.000 ms each (10.000, 10.000)"), std::string::npos) << text;
  EXPECT_NE(text.find("The thread that trains, a step: 90.0 % of its time has a name"), std::string::npos)
      << text;
  EXPECT_NE(text.find("     4.000   40.00      1.0             wait\n"), std::string::npos) << text;
  EXPECT_NE(text.find("     2.000   20.00      1.0      1 KiB  copy\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nxla:0, a step: 55.0 %"), std::string::npos) << text;
  EXPECT_NE(text.find("The plugin has no profiler"), std::string::npos) << text;
}

TEST(InWords, WithoutAStepSaysSo) {
  base::SpanRecording recording = two_steps();
  std::erase_if(recording.lines[0].spans, [](const auto& s) { return std::string(s.name) == kStepSpan; });
  EXPECT_NE(in_words(recording, {}).find("No whole step is in it."), std::string::npos);
}

TEST(ChromeTrace, IsJsonWithTimesOfTheDay) {
  const auto trace = nlohmann::json::parse(chrome_trace_of(two_steps(), "host", 3));
  int64_t spans = 0;
  bool named = false;
  for (const auto& event : trace.at("traceEvents")) {
    EXPECT_EQ(event.at("pid"), 3);
    if (event.at("ph") == "M") named = named || event.at("args").at("name") == "sluice \"read\"";
    if (event.at("ph") != "X") continue;
    ++spans;
    if (event.at("name") != "read") continue;
    EXPECT_EQ(event.at("ts").get<double>(), 57'600'101'000.0);
    EXPECT_EQ(event.at("dur").get<double>(), 2000.0);
    EXPECT_EQ(event.at("args").at("batch"), 5);
  }
  EXPECT_EQ(spans, 11);
  EXPECT_TRUE(named);
}

TEST(Xspace, IsAMessageThatJoinsWithAnother) {
  const std::string bytes = xspace_of(two_steps(), "host");
  EXPECT_TRUE(pjrt::is_message(bytes));
  EXPECT_TRUE(pjrt::is_message(bytes + bytes));
  EXPECT_FALSE(pjrt::is_message(bytes.substr(0, bytes.size() - 1)));
}

TEST(Capture, OneAtATimeAndItsFilesAreWhole) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  auto capture = base::value_or_throw(Capture::start(nullptr));
  EXPECT_EQ(Capture::start(nullptr).error().code(), Code::kUnavailable);
  { const base::Span one("one"); }
  const Captured captured = capture.stop();
  const About about{.host = "h", .process = 1, .processes = 4};
  const std::string path = base::value_or_throw(write(captured, about, folder.path(), run_name(0)));
  EXPECT_EQ(path, folder.path("plugins/profile/1970_01_01_00_00_00"));
  for (const char* name : {"h-1.xplane.pb", "h-1.trace.json.gz", "h-1.txt"})
    EXPECT_FALSE(base::value_or_throw(base::read_file(base::join_path(path, name))).empty()) << name;
  EXPECT_FALSE(base::read_file(base::join_path(path, "h-1.layers.json"))) << "nothing is known of layers";
  EXPECT_TRUE(Capture::start(nullptr)) << "and let go of";
  EXPECT_TRUE(Capture::start(nullptr));
  EXPECT_FALSE(write(captured, about, "/proc/none", "run"));
}

}  // namespace
}  // namespace sluice::profile
