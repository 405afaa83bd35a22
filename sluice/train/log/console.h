// A run's standard output: lines, and on a terminal a progress bar below them.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::train {

enum class ConsoleMode { kText, kJson, kSilent };

// Threads: one at a time.
class Console {
 public:
  // In kJson mode text lines go to standard error and only json() writes to standard output. kSilent is for
  // all processes except the first.
  explicit Console(ConsoleMode mode);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void line(const std::string& text);
  // Writes one JSON object; text mode drops it.
  void json(const std::string& object);
  // Redraws the bar, at most ten times per second; does nothing if standard output is not a terminal. `total`
  // 0: unknown.
  void progress(const std::string& what, int64_t done, int64_t total, const std::string& note);
  void end_progress();

 private:
  void clear();
  ConsoleMode mode_;
  bool terminal_;
  bool drawn_ = false;
  double last_ = 0;
};

// Returns "[######------] 12/40": a bar of `width` characters.
std::string bar_text(int64_t done, int64_t total, int width);

}  // namespace sluice::train
