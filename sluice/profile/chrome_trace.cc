#include "sluice/profile/chrome_trace.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace sluice::profile {
namespace {

using nlohmann::json;

// Returns microseconds with all digits.
std::string microseconds(int64_t nanoseconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(nanoseconds / 1000),
                static_cast<long long>(nanoseconds % 1000));
  return text;
}

std::string quoted(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string about(const char* what, int process, int64_t thread, const std::string& name) {
  return R"({"ph":"M","name":")" + std::string(what) + R"(","pid":)" + std::to_string(process) +
         R"(,"tid":)" + std::to_string(thread) + R"(,"args":{"name":)" + quoted(name) + "}}";
}

std::string arguments(const base::SpanNumbers& numbers) {
  json args = json::object();
  if (numbers.step >= 0) args["step"] = numbers.step;
  if (numbers.batch >= 0) args["batch"] = numbers.batch;
  if (numbers.bytes >= 0) args["bytes"] = numbers.bytes;
  return args.empty() ? "" : R"(,"args":)" + args.dump();
}

}  // namespace

std::string chrome_trace_of(const base::SpanRecording& recording, const std::string& host, int process) {
  constexpr int64_t kDay = 86'400'000'000'000;  // in nanoseconds
  const int64_t origin = recording.epoch - (recording.begin + recording.epoch) / kDay * kDay;
  std::string out = R"({"displayTimeUnit":"ms","traceEvents":[)" +
                    about("process_name", process, 0, host + " process " + std::to_string(process));
  for (const base::SpanLine& line : recording.lines) {
    const int64_t id = line.is_thread ? line.id : -line.id;
    out += ",\n" + about("thread_name", process, id, line.name);
    const std::string where = R"(,"pid":)" + std::to_string(process) + R"(,"tid":)" + std::to_string(id);
    for (const base::SpanRecord& span : line.spans) {
      out += R"(,
{"ph":"X","name":)" +
             quoted(span.name) + R"(,"ts":)" + microseconds(span.begin + origin) + R"(,"dur":)" +
             microseconds(span.end - span.begin) + where + arguments(span.numbers) + "}";
    }
  }
  return out + "\n]}\n";
}

}  // namespace sluice::profile
