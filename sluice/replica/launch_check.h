// Processes that train together must launch the same programs with the same numbers in the same order, else
// they wait for each other forever.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "sluice/base/error.h"
#include "sluice/device/runtime.h"
#include "sluice/replica/processes.h"

namespace sluice::replica {

// Compares the launches of the processes, including the numbers that they take:
// - a program that is new here is compared before its first launch, together with all earlier launches;
// - launches of known programs are compared by a separate thread, some twenty times a second and each
//   process with its neighbour, so that they cost the training nothing; the next launch throws what it finds.
// Throws kFailedPrecondition with the first operation that differs. Called under the trace's lock.
class LaunchCheck {
 public:
  explicit LaunchCheck(std::shared_ptr<Processes> processes);
  ~LaunchCheck();
  LaunchCheck(const LaunchCheck&) = delete;
  LaunchCheck& operator=(const LaunchCheck&) = delete;

  void operator()(const device::LaunchRecord& launch);

 private:
  struct Launched {
    int64_t number = 0;
    uint64_t hash = 0;     // of all launches up to this one
    bool fresh = false;    // its program was new
    std::string boundary;  // the call that cut the graph, by name
  };
  static std::string text(const Launched& launched);
  static std::optional<Launched> parse(const std::optional<std::string>& text);

  // Compares with the processes that come here at this launch: all of them, or some did something else.
  void compare(const Launched& launched, const std::string& operations);
  // Returns an error if another process has passed this launch without coming here: it waits for this one in
  // a collective.
  base::Status look_at_others(const Launched& launched);
  void watch();
  base::Status watch_once(std::optional<Launched>& said);

  const std::shared_ptr<Processes> processes_;
  int64_t compared_ = 0;  // the latest launch that all compared

  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::map<int64_t, Launched> recent_;  // by number
  int64_t asked_ = 0;                   // the latest launch at which a process has a new program
  std::optional<Error> refused_;
  std::thread watcher_;
};

}  // namespace sluice::replica
