#include "sluice/pod/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <iterator>

#include "sluice/base/check.h"

namespace sluice::pod {
namespace {

constexpr int kCaught[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
volatile sig_atomic_t signal_count = 0, first_signal = 0;
int wake_pipe[2] = {-1, -1};
std::array<struct sigaction, std::size(kCaught)> previous;

void on_signal(int signal) {
  const int kept = errno;
  if (first_signal == 0) first_signal = signal;
  signal_count = signal_count + 1;
  [[maybe_unused]] const ssize_t ignored = ::write(wake_pipe[1], "x", 1);
  errno = kept;
}

}  // namespace

Signals::Signals(bool background) {
  SLUICE_CHECK(wake_pipe[0] < 0, "one Signals at a time");
  SLUICE_CHECK(::pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) == 0);
  signal_count = 0;
  first_signal = 0;
  for (size_t i = 0; i < std::size(kCaught); ++i) {
    struct sigaction action {};
    const bool ignored = kCaught[i] == SIGPIPE || (background && kCaught[i] == SIGHUP);
    action.sa_handler = ignored ? SIG_IGN : on_signal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    ::sigaction(kCaught[i], &action, &previous[i]);
    // nohup: what ignored the end of its terminal goes on doing so.
    if (kCaught[i] == SIGHUP && previous[i].sa_handler == SIG_IGN) ::sigaction(SIGHUP, &previous[i], nullptr);
  }
}

Signals::~Signals() {
  for (size_t i = 0; i < std::size(kCaught); ++i) ::sigaction(kCaught[i], &previous[i], nullptr);
  for (int& end : wake_pipe) {
    ::close(end);
    end = -1;
  }
}

int Signals::descriptor() const { return wake_pipe[0]; }

void Signals::drain() {
  char block[64];
  while (::read(wake_pipe[0], block, sizeof block) > 0) {
  }
}

int Signals::count() const { return signal_count; }
int Signals::first() const { return first_signal; }

}  // namespace sluice::pod
