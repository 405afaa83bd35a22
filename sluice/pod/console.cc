#include "sluice/pod/console.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"

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

bool write_all(int descriptor, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::write(descriptor, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) done += static_cast<size_t>(count);
  }
  return true;
}

base::Result<Console> Console::open(const std::string& merged_log, bool quiet, bool raw) {
  const int file = ::open(merged_log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return base::fail_errno(errno, "write", merged_log);
  return Console(file, quiet, !raw);
}

Console::Console(Console&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      quiet_(other.quiet_),
      filtered_(other.filtered_),
      cut_off_(other.cut_off_),
      is_incomplete_(other.is_incomplete_),
      to_show_(std::move(other.to_show_)) {}

Console::~Console() {
  if (file_ >= 0) ::close(file_);
}

void Console::add(const std::string& lines) {
  if (lines.empty()) return;
  const std::string shown = filtered_ ? harmless(lines) : lines;
  if (file_ >= 0 && !write_all(file_, shown)) {
    say("cannot write merged.log any longer: " + std::string(std::generic_category().message(errno)));
    ::close(std::exchange(file_, -1));
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
