// One finding of `sluice doctor`.
#pragma once

#include <functional>
#include <string>

namespace sluice::monitor {

struct Finding {
  enum class Level { kOk, kNote, kProblem };
  Level level = Level::kOk;
  std::string check;   // the subject: "chips", "ports", "disk"
  std::string found;   // the facts
  std::string advice;  // what to do; empty if all is well
};
// Returns "ok", "note" or "problem".
inline const char* word_of(Finding::Level level) {
  if (level == Finding::Level::kOk) return "ok";
  return level == Finding::Level::kNote ? "note" : "problem";
}

// Gets each finding as soon as it is made.
using Report = std::function<void(const Finding&)>;

}  // namespace sluice::monitor
