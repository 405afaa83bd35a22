#include "sluice/pod/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <iterator>

#include "sluice/base/check.h"

namespace sluice::pod {
namespace {

constexpr int kCaught[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
// Programs that end others often signal both the process and its group: such signals count as one.
constexpr double kOneOccasion = 0.05;
// The end of a terminal or of a session brings several signals, and output that cannot be written.
constexpr double kOneHangup = 1;
volatile sig_atomic_t signal_count = 0, first_signal = 0, last_signal = 0;
volatile double last_time = 0, hangup_time = 0;  // monotonic; 0: never
int wake_pipe[2] = {-1, -1};
std::array<struct sigaction, std::size(kCaught)> previous;

double now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Counts a signal unless it belongs to an earlier one. A hangup counts only as the first: it does not hasten
// an end that was already requested.
void count(int signal, double time) {
  const bool is_repeated = signal == last_signal && time - last_time < kOneOccasion;
  const bool is_of_hangup = hangup_time > 0 && time - hangup_time < kOneHangup;
  last_signal = signal;
  last_time = time;
  if (signal == SIGHUP && hangup_time == 0) hangup_time = time;
  if (first_signal == 0) first_signal = signal;
  if (signal_count > 0 && (signal == SIGHUP || is_repeated || is_of_hangup)) return;
  signal_count = signal_count + 1;
}

void on_signal(int signal) {
  const int kept = errno;
  count(signal, now());
  [[maybe_unused]] const ssize_t ignored = ::write(wake_pipe[1], "x", 1);
  errno = kept;
}

}  // namespace

Signals::Signals(bool background) {
  SLUICE_CHECK(wake_pipe[0] < 0, "one Signals at a time");
  SLUICE_CHECK(::pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) == 0);
  signal_count = 0;
  first_signal = 0;
  last_signal = 0;
  hangup_time = 0;
  for (size_t i = 0; i < std::size(kCaught); ++i) {
    struct sigaction action {};
    const bool ignored = kCaught[i] == SIGPIPE || (background && kCaught[i] == SIGHUP);
    action.sa_handler = ignored ? SIG_IGN : on_signal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    ::sigaction(kCaught[i], &action, &previous[i]);
    // nohup: a process that ignored the end of its terminal continues to ignore it.
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

void Signals::add_hangup() {
  if (hangup_time > 0) return;
  sigset_t caught, before;
  sigemptyset(&caught);
  for (const int signal : kCaught) sigaddset(&caught, signal);
  ::pthread_sigmask(SIG_BLOCK, &caught, &before);
  pod::count(SIGHUP, now());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

int Signals::count() const { return signal_count; }
int Signals::first() const { return first_signal; }

}  // namespace sluice::pod
