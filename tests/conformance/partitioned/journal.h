// What a run has done so far, in a file that outlives a crash: the process that compares appends to it, and
// the one that started it reads it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace sluice::conformance {

struct Progress {
  std::map<std::string, int64_t> ran;    // compared cases, by operation
  std::set<int> met, differed;           // lines of known.txt whose cases ran; those that differ
  std::optional<size_t> first, last;     // the samples that are begun and not finished
  std::string last_case;                 // the case that was begun last, with --alone
  int64_t failures = 0, known = 0;       // cases
  int64_t alike = 0;                     // cases that differ from LibTorch, and so does the whole call
  int64_t refused = 0;                   // samples that LibTorch's CPU refuses in the first type
  std::optional<size_t> out_of_time_at;  // the first sample that was not begun
};

class Journal {
 public:
  explicit Journal(std::string path) : path_(std::move(path)) {}
  // Adds a line and writes it through.
  void add(const std::string& word, const std::string& rest = "") const;
  Progress read() const;
  // Returns the number of bytes written: it grows while a run is alive.
  int64_t size() const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace sluice::conformance
