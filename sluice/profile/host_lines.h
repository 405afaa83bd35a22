// Sorts a recording of spans for the formats that are written from it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sluice/base/span.h"

namespace sluice::profile {

// The span of a whole step, on the training thread. Its number is the step's.
inline constexpr const char* kStepSpan = "step";

// The line of the programs on the devices, and the span of one program. These spans do not overlap.
inline constexpr const char* kProgramsTrack = "xla:0, programs from launch to end";
inline constexpr const char* kProgramSpan = "program";

// Sorts spans by their begin, outer spans before the ones inside them.
void sort_spans(std::vector<base::SpanRecord>& spans);

// The whole steps of a recording, in order; there may be none.
struct Steps {
  std::vector<base::SpanRecord> spans;
  int64_t begin() const { return spans.front().begin; }
  int64_t end() const { return spans.back().end; }
  double count() const { return static_cast<double>(spans.size()); }
  double nanoseconds() const { return static_cast<double>(end() - begin()); }
};
Steps find_steps(const base::SpanRecording& recording);
// Returns the spans of the programs on the devices, by their begin.
std::vector<base::SpanRecord> find_programs(const base::SpanRecording& recording);

struct Total {
  int64_t self = 0;  // nanoseconds, without the spans inside
  int64_t bytes = 0;
  int64_t count = 0;
};

// Returns the own time of each name within [begin, end), from sorted spans of one thread. Steps are left out,
// so the sum lacks the time that no other span covers.
std::map<std::string, Total> self_times(const std::vector<base::SpanRecord>& sorted, int64_t begin,
                                        int64_t end);

}  // namespace sluice::profile
