// What a recording of spans says, put in order for those who write it down.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sluice/base/span.h"

namespace sluice::profile {

// The span of a whole step, on the thread that trains. Its number is that of the step.
inline constexpr const char* kStepSpan = "step";

// The line of what is on the devices, and the span of a program there. They do not overlap.
inline constexpr const char* kProgramsTrack = "xla:0, programs from launch to end";
inline constexpr const char* kProgramSpan = "program";

// By their begin, those that hold others before what they hold.
void sort_spans(std::vector<base::SpanRecord>& spans);

// The whole steps of a recording, in their order; there may be none.
struct Steps {
  std::vector<base::SpanRecord> spans;
  int64_t begin() const { return spans.front().begin; }
  int64_t end() const { return spans.back().end; }
  double count() const { return static_cast<double>(spans.size()); }
  double nanoseconds() const { return static_cast<double>(end() - begin()); }
};
Steps find_steps(const base::SpanRecording& recording);
// What was on the devices, by the begin.
std::vector<base::SpanRecord> find_programs(const base::SpanRecording& recording);

struct Total {
  int64_t self = 0;  // nanoseconds, without what lies within
  int64_t bytes = 0;
  int64_t count = 0;
};

// Of sorted spans of one thread: the time that each name has for itself, within [begin, end). Steps are left
// out, so that what no other span covers is missing in the sum.
std::map<std::string, Total> self_times(const std::vector<base::SpanRecord>& sorted, int64_t begin,
                                        int64_t end);

}  // namespace sluice::profile
