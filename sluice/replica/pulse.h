// The pulse: which processes of a run still live, as they tell each other. Needs no LibTorch. Not the
// heartbeat (sluice/session/heartbeat.h), a worker's sign to its launcher that it makes progress.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "sluice/base/error.h"
#include "sluice/base/result.h"

namespace sluice::replica {

// A thread that raises a counter of this process at a place that all see, whatever the others of its threads
// do, and watches that of the next process in the ring. One that stands still is a process that was killed or
// stopped, and it is written where all look, as is what a process says that fails; so all know it after one
// beat more. Time for which this process itself was stopped does not count against the others.
class Pulse {
 public:
  // The place: short texts under keys. Only the pulse's thread calls; an error means that the place is gone,
  // and with it the process that keeps it.
  struct Board {
    std::function<base::Status(const std::string& key, const std::string& value)> put;
    std::function<base::Result<std::optional<std::string>>(const std::string& key)> try_get;
    // Keeps the value that is there already, and returns it.
    std::function<base::Result<std::string>(const std::string& key, const std::string& value)> put_first;
  };
  struct Times {
    std::chrono::milliseconds beat{250};
    std::chrono::milliseconds patience{20'000};  // without a beat; 0: never give anybody up
  };
  // Keys: of why the run ended (loss.h), and of a process's counter.
  static constexpr const char* kEnded = "ended";
  static std::string beat_key(int process);

  // Process `index` of `count`.
  Pulse(int index, int count, Board board, const Times& times);
  // Tells the others that this process leaves in good order.
  ~Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

  // An error that says why, once the run has ended for any process but by leaving. Threads: any.
  base::Status status() const;

 private:
  void work();
  base::Status beat();

  const int index_, count_;
  const Board board_;
  const Times times_;
  // Of the thread:
  int64_t beats_ = 0;
  int watched_;
  std::optional<std::string> seen_;  // of the watched process
  std::chrono::milliseconds still_{0};

  mutable std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::optional<Error> ended_;
  std::thread thread_;
};

// SLUICE_LOST_AFTER in seconds, or 20: so long a process may show no sign of life; 0 for any time.
std::chrono::milliseconds lost_after();

}  // namespace sluice::replica
