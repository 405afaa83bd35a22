// Runs a program and waits for it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::pjrt {

// How a child ended.
struct ChildEnd {
  int status = 0;  // as wait() gives it
  bool timed_out = false;
  std::string output;  // the end of what it wrote to standard output and standard error

  // "status 1", "signal 6 (Aborted)"
  std::string how() const;
  // The last lines of its output, or "it wrote nothing".
  std::string last_words() const;
};

// Runs `command` (its first element a path, or a name on $PATH) with this process's environment changed by
// `environment` (no value: unset) and without input; kills it after `deadline_seconds`. kNotFound when it
// cannot be started.
base::Result<ChildEnd> run_child(
    const std::vector<std::string>& command,
    const std::vector<std::pair<std::string, std::optional<std::string>>>& environment,
    double deadline_seconds);

}  // namespace sluice::pjrt
