#include "sluice/train/run/signals.h"

#include <signal.h>
#include <unistd.h>

namespace sluice::train {
namespace signals_detail {

constexpr unsigned kSecondsToSave = 25;
volatile sig_atomic_t received = 0;
struct sigaction previous_interrupt, previous_terminate, previous_alarm;

void on_interrupt(int) {
  if (received == SIGINT) _exit(130);
  if (received == 0) received = SIGINT;
}

void on_terminate(int) {
  if (received == SIGTERM) return;
  received = SIGTERM;
  alarm(kSecondsToSave);
}

void on_alarm(int) { _exit(143); }

void install(int signal, void (*handler)(int), struct sigaction* previous) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, previous);
}

}  // namespace signals_detail

SignalGuard::SignalGuard() {
  signals_detail::received = 0;
  signals_detail::install(SIGINT, signals_detail::on_interrupt, &signals_detail::previous_interrupt);
  signals_detail::install(SIGTERM, signals_detail::on_terminate, &signals_detail::previous_terminate);
  signals_detail::install(SIGALRM, signals_detail::on_alarm, &signals_detail::previous_alarm);
}

SignalGuard::~SignalGuard() {
  alarm(0);
  sigaction(SIGINT, &signals_detail::previous_interrupt, nullptr);
  sigaction(SIGTERM, &signals_detail::previous_terminate, nullptr);
  sigaction(SIGALRM, &signals_detail::previous_alarm, nullptr);
}

int SignalGuard::pending() { return signals_detail::received; }

}  // namespace sluice::train
