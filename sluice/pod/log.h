// Logs of the workers: one file each, and a merged view of whole lines with "<address> [<worker>] " before
// them.
#pragma once

#include <string>
#include <string_view>

namespace sluice::pod {

// Makes lines of the pieces in which a stream arrives.
class LineMerger {
 public:
  // Lines that grow past `longest` bytes are broken.
  explicit LineMerger(std::string prefix, size_t longest = 64 << 10)
      : prefix_(std::move(prefix)), longest_(longest) {}

  // The lines that these bytes complete, each with the prefix and a newline. Of a line that was rewritten
  // with carriage returns, as progress bars do, the last state stays.
  std::string add(std::string_view bytes);
  // The unfinished line, completed.
  std::string finish();

 private:
  std::string take(std::string_view line) const;
  std::string prefix_, pending_;
  size_t longest_;
};

// The last `lines` lines of a file's end (at most 64 KiB of it); "" when it cannot be read.
std::string last_lines(const std::string& path, int lines);

}  // namespace sluice::pod
