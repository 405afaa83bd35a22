// Which launches of the workers belong together, and what happens when they do not.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "tests/pjrt/pod/launch.h"
#include "tests/pjrt/pod/layout.h"

namespace emulated_pod {

// The launches of all workers that take part in one run; with an error, of those that have come.
struct Turn {
  std::vector<Launch> launches;
  Status status;
};

// Each worker's launches run in its order. A launch runs once all workers with devices in its program have it
// at the head of their queues. It fails for all of them
// - when two of them have different programs at their heads and each waits for the other (kInternal);
// - when one of them has left or died (kUnavailable);
// - when one of them has not come within the time-out (kDeadlineExceeded).
// A worker that was not there when a launch of its own failed fails it when it comes. Threads: any; next()
// from one.
class Schedule {
 public:
  Schedule(Layout layout, double timeout_seconds);

  void add(Launch launch);
  // The worker is gone: what needs it fails, now and later.
  void lose(int worker, Status why);
  // next() gives nothing any more.
  void close();
  // Waits for the next launch to run, or to fail; nothing after close().
  std::optional<Turn> next();

 private:
  using Time = std::chrono::steady_clock::time_point;
  // A failure that a worker has yet to meet, in a launch together with these workers.
  struct Owed {
    Status status;
    std::vector<int> workers;
  };
  struct Worker {
    std::deque<Launch> launches;
    std::deque<Owed> owed;
    Status lost;
  };

  std::optional<Turn> look(Time now, Time idle_since, Time& wake);
  std::optional<Turn> look_at(int worker, Time now, Time idle_since, Time& wake);
  std::vector<int> participants(const Launch& launch) const;
  std::optional<Turn> settle_owed(int worker);
  std::optional<int> opponent(int worker);
  std::vector<int> absent(const Launch& launch);
  Turn fail_all(std::vector<int> workers, const std::vector<std::string>& keys, Status status);
  Turn alone(int worker, Status status);
  Turn together(const std::vector<int>& workers);
  const Launch* head(int worker) const;
  Launch pop(int worker);

  const Layout layout_;
  const std::chrono::duration<double> timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Worker> workers_;
  bool closed_ = false;
};

}  // namespace emulated_pod
