#include "sluice/base/span.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "sluice/base/thread.h"

namespace sluice::base {
namespace {

std::vector<std::string> names_of(const SpanLine& line) {
  std::vector<std::string> names;
  for (const SpanRecord& span : line.spans) names.emplace_back(span.name);
  return names;
}

TEST(Span, IsRecordedOnlyWhileARecordingGoesOn) {
  { const Span before("before"); }
  ASSERT_TRUE(start_spans());
  EXPECT_FALSE(start_spans()) << "there is one at a time";
  {
    Span outer("outer");
    outer.step(3).batch(4).bytes(5);
    const Span inner("inner");
  }
  const SpanRecording recording = stop_spans();
  { const Span after("after"); }
  ASSERT_EQ(recording.lines.size(), 1u);
  EXPECT_EQ(names_of(recording.lines[0]), (std::vector<std::string>{"inner", "outer"}));
  EXPECT_EQ(recording.lines[0].id, recording.main_thread);
  const SpanRecord& inner = recording.lines[0].spans[0];
  const SpanRecord& outer = recording.lines[0].spans[1];
  EXPECT_LE(recording.begin, outer.begin);
  EXPECT_LE(outer.begin, inner.begin);
  EXPECT_LE(inner.end, outer.end);
  EXPECT_LE(outer.end, recording.end);
  EXPECT_EQ(outer.numbers.step, 3);
  EXPECT_EQ(outer.numbers.batch, 4);
  EXPECT_EQ(outer.numbers.bytes, 5);
  EXPECT_EQ(inner.numbers.bytes, -1);
  EXPECT_TRUE(stop_spans().lines.empty());
}

TEST(Span, ThatBeganBeforeTheRecordingIsNotInIt) {
  ASSERT_TRUE(start_spans());
  const int64_t in_the_first = span_clock();
  stop_spans();
  ASSERT_TRUE(start_spans());
  record_span("old", in_the_first, span_clock());
  const int64_t now = span_clock();
  record_span("new", now, now);
  record_span_of("device", "cut", in_the_first, now);
  const SpanRecording recording = stop_spans();
  ASSERT_EQ(recording.lines.size(), 2u);
  EXPECT_EQ(names_of(recording.lines[0]), std::vector<std::string>{"new"});
  ASSERT_EQ(names_of(recording.lines[1]), std::vector<std::string>{"cut"});
  EXPECT_EQ(recording.lines[1].spans[0].begin, recording.begin);
}

TEST(Span, EachThreadAndTrackHasALine) {
  ASSERT_TRUE(start_spans());
  std::thread([] {
    name_thread("reader");
    const Span span("read");
  }).join();
  const int64_t now = span_clock();
  record_span_of("device 0", "program", now, now + 5);
  const SpanRecording recording = stop_spans();
  ASSERT_EQ(recording.lines.size(), 2u);
  EXPECT_EQ(recording.lines[0].name, "reader");
  EXPECT_TRUE(recording.lines[0].is_thread);
  EXPECT_EQ(recording.lines[1].name, "device 0");
  EXPECT_FALSE(recording.lines[1].is_thread);
  EXPECT_EQ(recording.lines[1].spans[0].end, now + 5);
}

TEST(Span, WhatDoesNotFitIsCounted) {
  ASSERT_TRUE(start_spans(/*max_spans=*/2));
  for (int i = 0; i < 5; ++i) const Span span("one");
  const SpanRecording recording = stop_spans();
  ASSERT_EQ(recording.lines.size(), 1u);
  EXPECT_EQ(recording.lines[0].spans.size(), 2u);
  EXPECT_EQ(recording.dropped, 3);
}

// For TSan: threads that record while recordings start and stop.
TEST(Span, ThreadsGoOnWhileRecordingsStartAndStop) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&stop] {
      while (!stop) {
        const Span span("busy");
        record_span_of("track", "also", span_clock(), span_clock());
      }
    });
  int64_t spans = 0;
  for (int i = 0; i < 20 || spans == 0; ++i) {
    ASSERT_TRUE(start_spans());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const SpanRecording recording = stop_spans();
    for (const SpanLine& line : recording.lines) {
      spans += static_cast<int64_t>(line.spans.size());
      for (const SpanRecord& span : line.spans) EXPECT_GE(span.begin, recording.begin);
    }
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(SpanName, IsOnePlaceForEachText) {
  const std::string text = "a user's name";
  EXPECT_EQ(span_name(text), span_name(std::string("a user's ") + "name"));
  EXPECT_STREQ(span_name(text), "a user's name");
}

}  // namespace
}  // namespace sluice::base
