// The pulse: signs of life between the processes of a run. Needs no LibTorch. It differs from the heartbeat
// (sluice/session/heartbeat.h), with which a worker shows its launcher that it makes progress.
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

// A thread that increases this process's counter on a board that all see, whatever the process's other
// threads do, and watches the counter of the next process in the ring. A counter that stands still means that
// its process was killed or stopped. This is written to the board, and so is the reason of a process that
// fails; all know it one beat later. Time for which this process itself was stopped does not count against
// the others.
class Pulse {
 public:
  // The board: short texts under keys. Only the pulse's thread calls it; an error means that the board is
  // gone, and so is the process that keeps it.
  struct Board {
    std::function<base::Status(const std::string& key, const std::string& value)> put;
    std::function<base::Result<std::optional<std::string>>(const std::string& key)> try_get;
    // Keeps an existing value, and returns it.
    std::function<base::Result<std::string>(const std::string& key, const std::string& value)> put_first;
  };
  struct Times {
    std::chrono::milliseconds beat{250};
    std::chrono::milliseconds patience{20'000};  // without a beat; 0: never report a process as lost
  };
  // The keys of the reason why the run ended (loss.h) and of a process's counter.
  static constexpr const char* kEnded = "ended";
  static std::string beat_key(int process);

  // Starts the thread of process `index` of `count`.
  Pulse(int index, int count, Board board, const Times& times);
  // Reports that this process leaves in good order.
  ~Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

  // Returns an error with the reason once the run has ended for a process that did not leave. Threads: any.
  base::Status status() const;

 private:
  void work();
  base::Status beat();

  const int index_, count_;
  const Board board_;
  const Times times_;
  // Only for the thread:
  int64_t beats_ = 0;
  int watched_;
  std::optional<std::string> seen_;  // value of the watched process
  std::chrono::milliseconds still_{0};

  mutable std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::optional<Error> ended_;
  std::thread thread_;
};

// Returns SLUICE_LOST_AFTER in seconds, or 20: the time that a process may show no sign of life; 0: no limit.
std::chrono::milliseconds lost_after();

}  // namespace sluice::replica
