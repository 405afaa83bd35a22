// Logging: lines on stderr, from any thread.
#pragma once

#include <string>

#include "sluice/base/text/join.h"

namespace sluice::base {

enum class Level { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3 };

// Lines below this level are dropped (default kInfo, or SLUICE_LOG=debug|info|warning|error).
void set_log_level(Level level);
void log(Level level, const std::string& message);
// Returns whether a line of this level would be written, to skip the work of making one.
bool log_enabled(Level level);

template <typename... Pieces>
void debug(const Pieces&... pieces) {
  if (log_enabled(Level::kDebug)) log(Level::kDebug, base::str(pieces...));
}
template <typename... Pieces>
void info(const Pieces&... pieces) {
  log(Level::kInfo, base::str(pieces...));
}
template <typename... Pieces>
void warn(const Pieces&... pieces) {
  log(Level::kWarning, base::str(pieces...));
}
template <typename... Pieces>
void error(const Pieces&... pieces) {
  log(Level::kError, base::str(pieces...));
}

}  // namespace sluice::base
