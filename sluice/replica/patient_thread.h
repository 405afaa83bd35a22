// Calls that may never return, made where somebody can give them up. Needs no LibTorch.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace sluice::replica {

// One thread that makes one call at a time. A call that was given up stays behind with its thread, so a call
// owns all that it uses. Threads: run() from one at a time.
class PatientThread {
 public:
  explicit PatientThread(const std::string& name);
  ~PatientThread();
  PatientThread(const PatientThread&) = delete;
  PatientThread& operator=(const PatientThread&) = delete;

  // Whether the call returned within `patience` (0: however long it takes). After one that did not, nothing
  // is called any more. The call must not throw. Time for which this process itself was stopped does not
  // count.
  bool run(std::function<void()> call, std::chrono::milliseconds patience);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace sluice::replica
