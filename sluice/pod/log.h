// Logs of the workers: one file each, and a merged view of whole lines, each with the prefix
// "<address> [<worker>] ".
#pragma once

#include <string>
#include <string_view>

namespace sluice::pod {

// Makes lines from the pieces of a stream.
class LineMerger {
 public:
  // Breaks lines that grow past `longest` bytes.
  explicit LineMerger(std::string prefix, size_t longest = 64 << 10)
      : prefix_(std::move(prefix)), longest_(longest) {}

  // Returns the lines that these bytes complete, each with the prefix and a newline. If a line was rewritten
  // with carriage returns, as progress bars do, its last state remains.
  std::string add(std::string_view bytes);
  // Returns the unfinished line, completed.
  std::string finish();

 private:
  std::string take(std::string_view line) const;
  std::string prefix_, pending_;
  size_t longest_;
};

// Returns the last `lines` lines of a file (from at most its last 64 KiB); "" if it cannot be read.
std::string last_lines(const std::string& path, int lines);

}  // namespace sluice::pod
