// What `sluice doctor` has found out, one thing each.
#pragma once

#include <functional>
#include <string>

namespace sluice::monitor {

struct Finding {
  enum class Level { kOk, kNote, kProblem };
  Level level = Level::kOk;
  std::string check;   // "chips", "ports", "disk": what was looked at
  std::string found;   // what there is
  std::string advice;  // what to do; of what is not ok
};
// "ok", "note", "problem"
inline const char* word_of(Finding::Level level) {
  if (level == Finding::Level::kOk) return "ok";
  return level == Finding::Level::kNote ? "note" : "problem";
}

// Hears of each finding as soon as it is there.
using Report = std::function<void(const Finding&)>;

}  // namespace sluice::monitor
