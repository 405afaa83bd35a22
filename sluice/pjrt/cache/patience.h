// How long a process waits for a program that another one compiles.
#pragma once

#include <functional>

namespace sluice::pjrt {

// All in seconds. A waiting process looks again after pauses that grow up to the longest one.
struct WaitTimes {
  double longest = 1800;    // then it compiles the program itself; 0: it never waits
  double pause = 0.2;       // for a lock of this machine
  double remote_pause = 2;  // for a lock in a bucket
  double beat = 10;         // the holder of a lock in a bucket writes it again after this time
  double silence = 45;      // a lock in a bucket that was not written for this time has lost its holder
  double unreported = 5;    // the wait is reported after this time
};

// What came of asking for a lock.
enum class LockState {
  kHeld,      // this process has it
  kReleased,  // another process had it and has given it back: what it made is there, unless it failed
  kGivenUp,   // another process has had it for too long
  kNone,      // there are no locks here, for example because nothing can be written
};

// One wait. Threads: one.
class Patience {
 public:
  // `report` is called once, when the wait has become long.
  Patience(const WaitTimes& times, std::function<void()> report);
  // Sleeps, at most for `longest` seconds and less at first. Returns false instead when the wait must end.
  bool pause(double longest);
  // Begins again with short pauses.
  void restart_pauses() { next_ = kFirst; }
  bool waited() const { return waited_; }

 private:
  static constexpr double kFirst = 0.002;

  WaitTimes times_;
  std::function<void()> report_;
  double start_;
  double next_ = kFirst;
  bool waited_ = false;
};

}  // namespace sluice::pjrt
