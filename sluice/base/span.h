// Named spans of the host's time: what each thread of the process did when, for a profile.
//
//   base::Span span("decode");        // until the end of the scope
//   span.batch(index).bytes(size);    // numbers that a profile shows with it
//
// While no profile is taken, a span costs one load of a flag. While one is taken, each thread writes to
// memory of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::base {

// Numbers that a span may have besides its name; below 0: not given.
struct SpanNumbers {
  int64_t step = -1, batch = -1, bytes = -1;
};

struct SpanRecord {
  const char* name;            // lives as long as the process
  int64_t begin = 0, end = 0;  // nanoseconds of span_clock()
  SpanNumbers numbers;
};

// All spans of one thread, or of a track, in the order of their ends.
struct SpanLine {
  std::string name;  // the thread's own, or the track's
  int64_t id = 0;    // the system's number of the thread; of a track a small number
  bool is_thread = true;
  std::vector<SpanRecord> spans;
};

// The spans recorded between start_spans() and stop_spans().
struct SpanRecording {
  int64_t begin = 0, end = 0;  // nanoseconds of span_clock()
  int64_t epoch = 0;           // to be added to these: nanoseconds since 1970 (UTC)
  int64_t main_thread = 0;     // the id of the thread that started it
  int64_t dropped = 0;         // spans for which there was no room
  std::vector<SpanLine> lines;
};

// Nanoseconds on a clock that never goes back.
int64_t span_clock();

namespace span_detail {
inline std::atomic<bool> recording{false};
}
inline bool spans_are_recorded() { return span_detail::recording.load(std::memory_order_relaxed); }

// Starts a recording that keeps at most `max_spans` spans a thread. Returns false if one is already running:
// a process has one at a time.
bool start_spans(size_t max_spans = size_t{1} << 18);
// Ends the recording. Spans that are still open are not in it.
SpanRecording stop_spans();

// Adds a span with a known begin and end to the calling thread's line.
void record_span(const char* name, int64_t begin, int64_t end, const SpanNumbers& numbers = {});
// Adds a span of something that is no thread, such as a device: `track` names its line. A span that began
// before the recording is cut to it. Threads: any.
void record_span_of(const char* track, const char* name, int64_t begin, int64_t end,
                    const SpanNumbers& numbers = {});
// Returns a copy of the text that lasts as long as the process, for a name that is no literal. Keeps at most
// 65,536 different ones; further names become "…".
const char* span_name(std::string_view name);

// Threads: only the one that made it.
class Span {
 public:
  explicit Span(const char* name) : name_(spans_are_recorded() ? name : nullptr) {
    if (name_ != nullptr) [[unlikely]]
      begin_ = span_clock();
  }
  ~Span() {
    if (name_ != nullptr) [[unlikely]]
      record_span(name_, begin_, span_clock(), numbers_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  Span& step(int64_t number) {
    numbers_.step = number;
    return *this;
  }
  Span& batch(int64_t number) {
    numbers_.batch = number;
    return *this;
  }
  Span& bytes(int64_t number) {
    numbers_.bytes = number;
    return *this;
  }

 private:
  const char* name_;
  int64_t begin_ = 0;
  SpanNumbers numbers_;
};

}  // namespace sluice::base
