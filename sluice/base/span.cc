#include "sluice/base/span.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_set>

namespace sluice::base {
namespace {

// The spans of a thread. Other threads take its mutex only in the moment in which a recording starts or
// stops.
struct Line {
  std::mutex mutex;
  SpanLine line;
  int64_t dropped = 0;
};

struct Recorder {
  std::mutex mutex;
  std::vector<std::shared_ptr<Line>> lines;  // of threads
  std::map<std::string, std::shared_ptr<Line>, std::less<>> tracks;
  std::unordered_set<std::string> names;
  std::atomic<int64_t> begin{0};  // of the recording; spans before it belong to no recording
  std::atomic<size_t> max_spans{0};
  int64_t main_thread = 0;

  // Never destroyed: threads may record while the process ends.
  static Recorder& get() {
    static auto* recorder = new Recorder();
    return *recorder;
  }
};

int64_t this_thread() { return ::syscall(SYS_gettid); }

std::shared_ptr<Line> make_thread_line() {
  auto line = std::make_shared<Line>();
  line->line.id = this_thread();
  Recorder& recorder = Recorder::get();
  std::scoped_lock lock(recorder.mutex);
  // The lines of threads that have ended are needed only if they have spans.
  std::erase_if(recorder.lines,
                [](const auto& old) { return old.use_count() == 1 && old->line.spans.empty(); });
  recorder.lines.push_back(line);
  return line;
}

void add(Line& line, SpanRecord span) {
  Recorder& recorder = Recorder::get();
  std::scoped_lock lock(line.mutex);
  const int64_t begin = recorder.begin.load(std::memory_order_relaxed);
  if (!spans_are_recorded() || span.end < begin) return;
  // A thread's span that began before the recording is incomplete and left out; a device was busy all the
  // same.
  if (span.begin < begin && line.line.is_thread) return;
  span.begin = std::max(span.begin, begin);
  if (line.line.spans.size() >= recorder.max_spans.load(std::memory_order_relaxed)) {
    ++line.dropped;
    return;
  }
  if (line.line.is_thread && line.line.spans.empty()) {
    char name[16] = "";
    ::pthread_getname_np(::pthread_self(), name, sizeof name);
    line.line.name = name;
  }
  line.line.spans.push_back(span);
}

}  // namespace

int64_t span_clock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool start_spans(size_t max_spans) {
  Recorder& recorder = Recorder::get();
  std::scoped_lock lock(recorder.mutex);
  if (spans_are_recorded()) return false;
  recorder.begin = span_clock();
  recorder.max_spans = max_spans;
  recorder.main_thread = this_thread();
  span_detail::recording = true;
  return true;
}

SpanRecording stop_spans() {
  Recorder& recorder = Recorder::get();
  std::scoped_lock lock(recorder.mutex);
  SpanRecording result;
  if (!spans_are_recorded()) return result;
  span_detail::recording = false;
  result.begin = recorder.begin;
  result.end = span_clock();
  result.epoch = std::chrono::duration_cast<std::chrono::nanoseconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count() -
                 result.end;
  result.main_thread = recorder.main_thread;
  const auto take = [&result](Line& line) {
    std::scoped_lock own(line.mutex);
    result.dropped += line.dropped;
    line.dropped = 0;
    if (line.line.spans.empty()) return;
    result.lines.push_back({line.line.name, line.line.id, line.line.is_thread, {}});
    result.lines.back().spans.swap(line.line.spans);
  };
  for (const auto& line : recorder.lines) take(*line);
  for (const auto& [name, line] : recorder.tracks) take(*line);
  return result;
}

void record_span(const char* name, int64_t begin, int64_t end, const SpanNumbers& numbers) {
  if (!spans_are_recorded()) return;
  thread_local const std::shared_ptr<Line> line = make_thread_line();
  add(*line, {name, begin, end, numbers});
}

void record_span_of(const char* track, const char* name, int64_t begin, int64_t end,
                    const SpanNumbers& numbers) {
  if (!spans_are_recorded()) return;
  Recorder& recorder = Recorder::get();
  std::shared_ptr<Line> line;
  {
    std::scoped_lock lock(recorder.mutex);
    auto& found = recorder.tracks[track];
    if (!found) {
      found = std::make_shared<Line>();
      found->line.name = track;
      found->line.id = static_cast<int64_t>(recorder.tracks.size());
      found->line.is_thread = false;
    }
    line = found;
  }
  add(*line, {name, begin, end, numbers});
}

const char* span_name(std::string_view name) {
  constexpr size_t kMaxNames = size_t{1} << 16;
  Recorder& recorder = Recorder::get();
  std::scoped_lock lock(recorder.mutex);
  if (recorder.names.size() >= kMaxNames && !recorder.names.contains(std::string(name))) return "…";
  return recorder.names.emplace(name).first->c_str();
}

}  // namespace sluice::base
