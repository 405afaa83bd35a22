// What the client shows and keeps: the merged lines of the workers on standard output and in merged.log, its
// own messages on standard error.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/pod/terminal.h"

namespace sluice::pod {

// "sluice run: TEXT" on standard error, without what a terminal would obey (terminal.h).
void say(const std::string& text);

class Console {
 public:
  // Appends to the file; `quiet`: shows nothing; `raw`: the workers' bytes as they are, else without what a
  // terminal would obey: also what a file or a pipe takes is shown on one some day.
  static base::Result<Console> open(const std::string& merged_log, bool quiet, bool raw);
  Console(Console&& other) noexcept;
  Console& operator=(Console&&) = delete;
  ~Console();

  // Whole lines.
  void add(const std::string& lines);
  // Shows what standard output takes without waiting.
  void move();
  void add_to(std::vector<pollfd>& polled) const;
  // So much waits for a slow reader that no more should come.
  bool is_full() const { return to_show_.size() > (1 << 20); }
  // Standard output was closed by its reader.
  bool is_cut_off() const { return cut_off_; }
  // Standard output took not all of it, for example because its disk is full.
  bool is_incomplete() const { return is_incomplete_; }
  // Shows the rest, for at most so long.
  void finish(double seconds);

 private:
  Console(int file, bool quiet, bool filtered) : file_(file), quiet_(quiet), filtered_(filtered) {}
  void lose_output(int error);
  int file_;
  bool quiet_, filtered_, cut_off_ = false, is_incomplete_ = false;
  std::string to_show_;
};

// Appends all bytes; false when the disk is full or the like.
bool write_all(int descriptor, const std::string& bytes);

}  // namespace sluice::pod
