// A sign of life for the launcher, which ends a run that hangs.
#pragma once

#include <optional>
#include <string>

namespace sluice::train {

// Touches the file that SLUICE_HEARTBEAT_FILE names, at most once a second; does nothing without it.
class Heartbeat {
 public:
  Heartbeat();
  void beat();

 private:
  std::optional<std::string> file_;
  double last_ = 0;
};

}  // namespace sluice::train
