// Processes that train together must launch the same programs with the same numbers in the same order, else
// they wait for each other forever.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "sluice/device/runtime.h"
#include "sluice/replica/processes.h"

namespace sluice::replica {

// Compares the launches of the processes: each new program before its first launch, all launches up to then
// with it. A process that launches a known program while another one has a new one is noticed too, at its
// next launch. Throws kFailedPrecondition with the first operation that differs. Called under the trace's
// lock.
class LaunchCheck {
 public:
  explicit LaunchCheck(std::shared_ptr<Processes> processes) : processes_(std::move(processes)) {}
  void operator()(const device::LaunchRecord& launch);

 private:
  // With the processes that come here at this launch: all of them, or some did something else.
  void compare(int64_t number, const std::string& operations);

  std::shared_ptr<Processes> processes_;
  std::map<int64_t, std::string> recent_;  // hash and boundary of the latest launches
  int64_t compared_ = 0;                   // the latest launch that was
};

}  // namespace sluice::replica
