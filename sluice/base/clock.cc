#include "sluice/base/clock.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <regex>

#include "sluice/base/text/number.h"

#include "sluice/base/text/quantity.h"

namespace sluice::base {
namespace {

std::string duration_of_microseconds(int64_t total) {
  constexpr int64_t kSecond = 1'000'000, kDay = 24 * 3600 * kSecond;
  // Python's timedelta does the same: the days carry the sign, the rest is positive.
  int64_t days = total / kDay, rest = total % kDay;
  if (rest < 0) {
    rest += kDay;
    days -= 1;
  }
  char text[96];
  const auto hours = static_cast<int>(rest / (3600 * kSecond));
  const auto minutes = static_cast<int>(rest / (60 * kSecond) % 60);
  const auto seconds = static_cast<int>(rest / kSecond % 60);
  const auto micros = static_cast<int>(rest % kSecond);
  int length = 0;
  if (days != 0) {
    length = std::snprintf(text, sizeof text, "%lld %s, ", static_cast<long long>(days),
                           plural(days == -1 ? 1 : days, "day").c_str());
  }
  length += std::snprintf(text + length, sizeof text - static_cast<size_t>(length), "%d:%02d:%02d", hours,
                          minutes, seconds);
  if (micros != 0) std::snprintf(text + length, sizeof text - static_cast<size_t>(length), ".%06d", micros);
  return text;
}

}  // namespace

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string local_time(double wall) {
  const auto time = static_cast<std::time_t>(std::floor(wall));
  std::tm parts{};
  ::localtime_r(&time, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%H:%M:%S", &parts);
  return text;
}

std::string utc_time(double wall, const char* format) {
  const auto time = static_cast<std::time_t>(std::floor(wall));
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[64];
  std::strftime(text, sizeof text, format, &parts);
  return text;
}

std::string duration_text(double seconds) {
  return duration_of_microseconds(static_cast<int64_t>(std::nearbyint(seconds * 1e6)));
}

std::string duration_text_whole(double seconds) {
  return duration_of_microseconds(static_cast<int64_t>(std::floor(seconds)) * 1'000'000);
}

Result<double> parse_span(const std::string& text, const std::string& flag) {
  static const std::regex piece("([0-9]+(?:\\.[0-9]+)?)([smhdw]?)");
  double seconds = 0;
  auto at = text.cbegin();
  std::smatch match;
  while (at != text.cend() &&
         std::regex_search(at, text.cend(), match, piece, std::regex_constants::match_continuous)) {
    const std::string unit = match[2];
    const double scale = unit == "m"   ? 60
                         : unit == "h" ? 3600
                         : unit == "d" ? 86400
                         : unit == "w" ? 604800
                                       : 1;
    seconds += number_of<double>(match[1].str()).value_or(0) * scale;
    at = match[0].second;
  }
  if (at != text.cend() || seconds <= 0)
    return fail(Code::kInvalidArgument, flag, " ", text,
                ": expected a time span above 0 such as 90m, 2h30m, 3d or 3600 (seconds)");
  return seconds;
}

double Stopwatch::restart() {
  const double now = monotonic_seconds();
  const double elapsed = now - start_;
  start_ = now;
  return elapsed;
}

}  // namespace sluice::base
