// The heartbeat: a worker's sign to its launcher (`sluice run`), which ends a run that hangs, that it makes
// progress. Not the pulse (sluice/replica/pulse.h), by which the processes tell each other that they live.
#pragma once

#include <optional>
#include <string>

namespace sluice::sessions {

// Touches the file that SLUICE_HEARTBEAT_FILE names, at most once a second; does nothing without it.
class Heartbeat {
 public:
  Heartbeat();
  void beat();

 private:
  std::optional<std::string> file_;
  double last_ = 0;
};

}  // namespace sluice::sessions
