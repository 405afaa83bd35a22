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

// By their begin, those that hold others before what they hold.
void sort_spans(std::vector<base::SpanRecord>& spans);

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
