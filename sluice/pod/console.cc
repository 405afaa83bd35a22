#include "sluice/pod/console.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "sluice/base/clock.h"
#include "sluice/base/text/join.h"

namespace sluice::pod {
namespace {

// A pipe that is ready takes this number of bytes without blocking.
constexpr size_t kBlock = 4096;

bool is_ready(int descriptor) {
  pollfd ready{descriptor, POLLOUT, 0};
  return ::poll(&ready, 1, 0) == 1;
}

}  // namespace

void say(const std::string& text) {
  std::string shown = harmless(text);
  std::replace(shown.begin(), shown.end(), '\r', ' ');  // a line must keep its beginning
  std::fprintf(stderr, "sluice run: %s\n", shown.c_str());
}

bool write_all(int descriptor, std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::write(descriptor, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) done += static_cast<size_t>(count);
  }
  return true;
}

base::Result<Console> Console::open(const std::string& merged_log, uint64_t most, bool quiet, bool raw) {
  SLUICE_TRY(LogFile log, LogFile::open(merged_log, most));
  return Console(std::move(log), quiet, !raw);
}

void Console::add(const std::string& lines) {
  if (lines.empty()) return;
  const std::string shown = filtered_ ? harmless(lines) : lines;
  if (log_ && !log_->add(shown)) {
    say("cannot write merged.log any longer: " + std::string(std::generic_category().message(errno)));
    log_.reset();
  }
  if (!quiet_ && !cut_off_ && !is_incomplete_) to_show_ += shown;
}

void Console::move() {
  while (!to_show_.empty() && is_ready(STDOUT_FILENO)) {
    const ssize_t count = ::write(STDOUT_FILENO, to_show_.data(), std::min(kBlock, to_show_.size()));
    if (count > 0) to_show_.erase(0, static_cast<size_t>(count));
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0 && errno != EINTR) lose_output(errno);
  }
}

// Handles a pipe without a reader, a closed terminal, or a full disk.
void Console::lose_output(int error) {
  to_show_.clear();
  if (error == EPIPE || error == EIO) {
    cut_off_ = true;
    return;
  }
  is_incomplete_ = true;
  say(base::str("cannot write standard output any longer: ", std::generic_category().message(error),
                ". The workers continue; merged.log has what they write."));
}

void Console::add_to(std::vector<pollfd>& polled) const {
  if (!to_show_.empty()) polled.push_back({STDOUT_FILENO, POLLOUT, 0});
}

void Console::finish(double seconds) {
  const base::Stopwatch clock;
  move();
  while (!to_show_.empty() && clock.seconds() < seconds) {
    pollfd ready{STDOUT_FILENO, POLLOUT, 0};
    ::poll(&ready, 1, 100);
    move();
  }
}

}  // namespace sluice::pod
