#include "sluice/profile/host_lines.h"

#include <algorithm>
#include <cstring>

namespace sluice::profile {

void sort_spans(std::vector<base::SpanRecord>& spans) {
  std::stable_sort(spans.begin(), spans.end(), [](const base::SpanRecord& a, const base::SpanRecord& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
}

Steps find_steps(const base::SpanRecording& recording) {
  Steps steps;
  for (const base::SpanLine& line : recording.lines)
    for (const base::SpanRecord& span : line.spans)
      if (std::strcmp(span.name, kStepSpan) == 0) steps.spans.push_back(span);
  sort_spans(steps.spans);
  return steps;
}

std::vector<base::SpanRecord> find_programs(const base::SpanRecording& recording) {
  std::vector<base::SpanRecord> programs;
  for (const base::SpanLine& line : recording.lines)
    if (!line.is_thread && line.name == kProgramsTrack)
      programs.insert(programs.end(), line.spans.begin(), line.spans.end());
  sort_spans(programs);
  return programs;
}

std::map<std::string, Total> self_times(const std::vector<base::SpanRecord>& sorted, int64_t begin,
                                        int64_t end) {
  std::map<std::string, Total> totals;
  std::vector<std::pair<Total*, int64_t>> open;  // a span's total, and its end
  for (const base::SpanRecord& span : sorted) {
    const int64_t from = std::max(span.begin, begin), to = std::min(span.end, end);
    if (from >= to || std::strcmp(span.name, kStepSpan) == 0) continue;
    while (!open.empty() && open.back().second <= from) open.pop_back();
    Total& total = totals[span.name];
    // A span is cut at its parent's end: only clocks that are read at different moments make it longer.
    const int64_t stop = open.empty() ? to : std::min(to, open.back().second);
    total.self += stop - from;
    total.bytes += std::max<int64_t>(span.numbers.bytes, 0);
    ++total.count;
    if (!open.empty()) open.back().first->self -= stop - from;
    open.emplace_back(&total, stop);
  }
  return totals;
}

}  // namespace sluice::profile
