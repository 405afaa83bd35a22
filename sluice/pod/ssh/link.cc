#include "sluice/pod/ssh/link.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <sstream>

#include "sluice/base/clock.h"
#include "sluice/pod/ssh/ssh.h"

namespace sluice::pod {
namespace {

constexpr size_t kMaxMessages = 16 << 10;
constexpr size_t kLongestLine = 64 << 10;           // a host may send anything, even a line without end
constexpr size_t kMaxNotes = 100;                   // waiting notes
constexpr uint64_t kLastPlace = uint64_t{1} << 60;  // in a worker's output
constexpr double kClockTolerance = 0.25;            // seconds: closer clocks are synchronized

// Appends the bytes that can be read; returns false at the end of the stream.
bool read_some(int descriptor, std::string& text, size_t most) {
  char block[16 << 10];
  while (most > 0) {
    const ssize_t count = ::read(descriptor, block, std::min(sizeof block, most));
    if (count > 0) {
      text.append(block, static_cast<size_t>(count));
      most -= static_cast<size_t>(count);
    } else if (count == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
  return true;
}

}  // namespace

base::Result<Link> Link::open(const std::vector<std::string>& command, const std::string& script) {
  SLUICE_TRY(base::Process child, start_child(command));
  Link link(std::move(child));
  link.to_send_ = framed(script);
  return link;
}

bool Link::reads(bool read_output) const {
  return child_.out() >= 0 && ((up_ && read_output) || child_.error() < 0);
}

void Link::add_to(std::vector<pollfd>& polled, bool read_output) const {
  if (child_.in() >= 0 && !to_send_.empty()) polled.push_back({child_.in(), POLLOUT, 0});
  if (reads(read_output)) polled.push_back({child_.out(), POLLIN, 0});
  if (child_.error() >= 0) polled.push_back({child_.error(), POLLIN, 0});
}

void Link::move(std::string& output, bool read_output) {
  while (child_.in() >= 0 && !to_send_.empty()) {
    const ssize_t count = child_.write_in(to_send_.data(), to_send_.size());
    if (count > 0) to_send_.erase(0, static_cast<size_t>(count));
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0 && errno != EINTR) child_.close_in();
  }
  if (child_.error() >= 0) {
    if (!read_some(child_.error(), error_text_, 1 << 20)) child_.close_error();
    take_lines();
  }
  if (reads(read_output) && !read_some(child_.out(), output, 256 << 10)) child_.close_out();
}

// Longer lines are cut, and their rest counts as the next line.
void Link::take_lines() {
  size_t at = 0;
  while (at < error_text_.size()) {
    const size_t end = error_text_.find('\n', at);
    const size_t length = (end == std::string::npos ? error_text_.size() : end) - at;
    if (end == std::string::npos && length < kLongestLine) break;
    take_line(error_text_.substr(at, std::min(length, kLongestLine)));
    at += length > kLongestLine || end == std::string::npos ? std::min(length, kLongestLine) : length + 1;
  }
  error_text_.erase(0, at);
}

void Link::take_line(const std::string& line) {
  std::istringstream words(line);
  std::string mark, word;
  words >> mark >> word;
  if (mark != "sluice-worker") {
    if (messages_.size() < kMaxMessages) messages_ += line.substr(0, kMaxMessages) + "\n";
    return;
  }
  double host_time = 0;
  if (word == "up") {
    up_ = true;
    if (words >> host_time) take_clock(host_time);
  }
  if (uint64_t from = 0; word == "from" && !up_ && words >> from && from <= kLastPlace) output_from_ = from;
  if (word == "exit") {
    Ending ending;
    words >> ending.status >> ending.time >> ending.reason;
    if (words >> host_time) take_clock(host_time);
    if (std::abs(clock_ahead_.value_or(0)) > kClockTolerance) ending.time -= *clock_ahead_;
    ending_ = ending;
  }
  if (word == "note" || word == "lost") {
    std::string text;
    std::getline(words >> std::ws, text);
    if (word == "note") {
      if (notes_.size() < kMaxNotes) notes_.push_back(text);
    } else {
      ending_ = Ending{1, base::wall_seconds(), "lost", text};
    }
  }
}

// Of two readings of the same clock the larger one counts: its line arrived faster.
void Link::take_clock(double host_time) {
  const double ahead = host_time - base::wall_seconds();
  clock_ahead_ = std::max(ahead, clock_ahead_.value_or(ahead));
}

}  // namespace sluice::pod
