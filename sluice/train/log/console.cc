#include "sluice/train/log/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "sluice/base/clock.h"
#include "sluice/base/text/join.h"

namespace sluice::train {

std::string bar_text(int64_t done, int64_t total, int width) {
  if (total <= 0) return base::str(done);
  const auto filled = static_cast<size_t>(std::clamp<int64_t>(done * width / total, 0, width));
  return base::str("[", std::string(filled, '#'), std::string(static_cast<size_t>(width) - filled, '-'), "] ",
                   done, "/", total);
}

Console::Console(ConsoleMode mode)
    : mode_(mode), terminal_(mode == ConsoleMode::kText && isatty(STDOUT_FILENO) == 1) {}

Console::~Console() { end_progress(); }

void Console::line(const std::string& text) {
  if (mode_ == ConsoleMode::kSilent) return;
  clear();
  FILE* out = mode_ == ConsoleMode::kJson ? stderr : stdout;
  std::fprintf(out, "%s\n", text.c_str());
  std::fflush(out);
}

void Console::json(const std::string& object) {
  if (mode_ != ConsoleMode::kJson) return;
  std::printf("%s\n", object.c_str());
  std::fflush(stdout);
}

void Console::progress(const std::string& what, int64_t done, int64_t total, const std::string& note) {
  if (!terminal_) return;
  const double now = base::monotonic_seconds();
  if (now - last_ < 0.1 && done != total) return;
  last_ = now;
  winsize size{};
  size_t columns = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  std::string text = base::str(what, " ", bar_text(done, total, 30), " ", note);
  if (text.size() >= columns) text.resize(columns - 1);
  std::printf("\r\033[K%s", text.c_str());
  std::fflush(stdout);
  drawn_ = true;
}

void Console::end_progress() { clear(); }

void Console::clear() {
  if (!drawn_) return;
  std::printf("\r\033[K");
  std::fflush(stdout);
  drawn_ = false;
}

}  // namespace sluice::train
