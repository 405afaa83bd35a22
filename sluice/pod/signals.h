// Ctrl-C and similar signals, in a form that a poll loop can wait for.
#pragma once

namespace sluice::pod {

// While an object exists, SIGINT, SIGTERM and SIGHUP are counted instead of ending the process, and SIGPIPE
// is ignored. One at a time.
class Signals {
 public:
  // Background: SIGHUP is ignored, as the end of the terminal does not concern the process.
  explicit Signals(bool background);
  ~Signals();
  Signals(const Signals&) = delete;

  // A descriptor that is readable after a signal, until drain().
  int descriptor() const;
  void drain();
  // Call this if the output can no longer be written, which may also mean the end of the terminal.
  void add_hangup();
  // count(): how many times an end was requested; first(): the first signal (0: none). Everything that the
  // end of a terminal brings (SIGHUP, more signals within a second, add_hangup) counts once, and only if it
  // comes first.
  int count() const;
  int first() const;
};

}  // namespace sluice::pod
