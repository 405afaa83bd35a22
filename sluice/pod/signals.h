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
  // How many asked for an end, and the first of them (0: none).
  int count() const;
  int first() const;
};

}  // namespace sluice::pod
