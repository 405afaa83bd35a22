// Logs of the workers: one each, and a merged view of whole lines, each with the prefix
// "<address> [<worker>] ".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

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

// A file with the bytes of a stream from the byte `from` on.
struct LogPart {
  uint64_t from = 0;
  std::string path;
};

// Returns the files of the log `path`, DIR/NAME.log, which exist, in the order of the stream. The first one
// has this name, and the others are DIR/NAME.from-P.log, where P are the digits of `from`.
std::vector<LogPart> log_parts(const std::string& path);

// A stream that is kept in files (log_parts). Only the first one and the latest three remain, so that they
// take a bounded amount of space. Every name has its place in the stream: the position is known
// without a file that says it, also after a crash. A file is never renamed, truncated or written again.
class LogFile {
 public:
  // Continues the log if it exists. `most`: bytes of all its files together, at least 4; 0: no limit.
  static base::Result<LogFile> open(const std::string& path, uint64_t most);
  LogFile(LogFile&& other) noexcept;
  LogFile& operator=(LogFile&&) = delete;
  ~LogFile();

  // Returns the stream's bytes so far, including skipped bytes and removed files.
  uint64_t position() const;
  // Appends bytes; returns false on an error, for example a full disk, with its number in errno.
  bool add(std::string_view bytes);
  // Says that the stream's bytes up to `position` are lost: a new file begins there, if that is ahead. Fails
  // as add().
  bool skip_to(uint64_t position);

 private:
  LogFile(std::string path, uint64_t most) : path_(std::move(path)), part_size_(most / 4) {}
  bool begin_part(LogPart part);
  size_t count_for_this_part(std::string_view bytes) const;

  std::string path_;
  uint64_t part_size_;
  std::vector<LogPart> parts_;
  int file_ = -1;               // of the last part
  bool is_at_line_end_ = true;  // as far as it is known
};

// Returns the last `lines` lines of a log (from at most the last 64 KiB of its last two files); "" if it
// cannot be read.
std::string last_lines(const std::string& path, int lines);

}  // namespace sluice::pod
