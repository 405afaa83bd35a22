// The heartbeat: a worker's sign of progress to its launcher (`sluice run`), which ends a run that hangs.
// Unlike the pulse (sluice/replica/pulse.h), it does not tell the other processes that this one lives.
#pragma once

#include <optional>
#include <string>

namespace sluice::sessions {

// Touches the file that SLUICE_HEARTBEAT_FILE names, at most once a second; does nothing without this
// variable.
class Heartbeat {
 public:
  Heartbeat();
  void beat();

 private:
  std::optional<std::string> file_;
  double last_ = 0;
};

}  // namespace sluice::sessions
