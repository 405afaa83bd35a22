// Ctrl-C and SIGTERM, turned into a flag that the training loop checks after each step.
#pragma once

namespace sluice::train {

// While a SignalGuard lives: the first SIGINT or SIGTERM sets the flag; a second SIGINT ends the process at
// once with status 130; 25 s after a SIGTERM the process ends with status 143, saved or not. One instance at
// a time.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  // The signal that came, or 0.
  static int pending();
};

}  // namespace sluice::train
