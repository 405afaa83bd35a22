#include "sluice/cli/monitor/top_screen.h"

#include <curses.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <csignal>
#include <cstdio>

#include "sluice/base/clock.h"
#include "sluice/cli/monitor/top_table.h"
#include "sluice/cli/verb.h"

namespace sluice::cli {
namespace {

volatile std::sig_atomic_t g_ends = 0;

// Restores the terminal however the screen ends.
class Screen {
 public:
  Screen() {
    std::setlocale(LC_ALL, "");  // so that ncurses shows UTF-8
    screen_ = newterm(nullptr, stdout, stdin);
    if (screen_ == nullptr) throw Usage("sluice top: this terminal ($TERM) has no description; use --once");
    cbreak();
    noecho();
    curs_set(0);
    keypad(stdscr, TRUE);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, [](int) { g_ends = 1; });
  }
  ~Screen() {
    endwin();
    delscreen(screen_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void draw(const std::string& title, const std::vector<std::string>& lines, int& first) const {
    const int height = LINES - 1;
    first = std::clamp(first, 0, std::max(0, static_cast<int>(lines.size()) - height));
    erase();
    attron(A_BOLD);
    mvaddnstr(0, 0, title.c_str(), COLS);
    attroff(A_BOLD);
    for (int row = 0; row < height && first + row < static_cast<int>(lines.size()); ++row) {
      const std::string& line = lines[static_cast<size_t>(first + row)];
      const bool heading = !line.empty() && line[0] == kHeading;
      if (heading) attron(A_REVERSE);
      mvaddnstr(row + 1, 0, line.c_str() + (heading ? 1 : 0), -1);
      if (heading) attroff(A_REVERSE);
    }
    refresh();
  }

 private:
  SCREEN* screen_;
};

// Handles keys until the next second; returns false to end.
bool take_keys(int& first, double until) {
  while (g_ends == 0) {
    const double left = until - base::monotonic_seconds();
    if (left <= 0) return true;
    timeout(std::max(1, static_cast<int>(left * 1000)));
    const int key = getch();
    if (key == 'q' || key == 'Q') return false;
    if (key == KEY_DOWN) ++first;
    if (key == KEY_UP) --first;
    if (key == KEY_NPAGE) first += LINES - 1;
    if (key == KEY_PPAGE) first -= LINES - 1;
    if (key != ERR) return true;  // KEY_RESIZE, too
  }
  return false;
}

}  // namespace

void show_screen(const std::function<std::string()>& title,
                 const std::function<std::vector<std::string>()>& lines) {
  if (::isatty(STDOUT_FILENO) == 0 || ::isatty(STDIN_FILENO) == 0)
    throw Usage("sluice top needs a terminal, and input or output is not one: use --once or --json");
  const Screen screen;
  int first = 0;
  while (g_ends == 0) {
    const double until = base::monotonic_seconds() + 1;
    const auto now = lines();
    do {
      screen.draw(title(), now, first);
      if (!take_keys(first, until)) return;
    } while (base::monotonic_seconds() < until && g_ends == 0);
  }
}

}  // namespace sluice::cli
