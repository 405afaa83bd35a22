// Ctrl-C and its like, as something that a poll loop can wait for.
#pragma once

namespace sluice::pod {

// While one exists, SIGINT, SIGTERM and SIGHUP are counted instead of ending the process, and SIGPIPE is
// ignored. One at a time.
class Signals {
 public:
  // Background: SIGHUP is ignored, the terminal is none of its business.
  explicit Signals(bool background);
  ~Signals();
  Signals(const Signals&) = delete;

  // Readable after a signal, until drain().
  int descriptor() const;
  void drain();
  // To be called when the output can no longer be written, which the end of a terminal is, too.
  void add_hangup();
  // How many times somebody asked for an end, and the first signal (0: none). All that the end of a terminal
  // brings (SIGHUP, more signals within a second, add_hangup) counts once, and only if it comes first.
  int count() const;
  int first() const;
};

}  // namespace sluice::pod
