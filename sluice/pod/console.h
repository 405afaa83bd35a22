// The client's output: the merged lines of the workers on standard output and in merged.log, its own messages
// on standard error.
#pragma once

#include <poll.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/pod/log.h"
#include "sluice/pod/terminal.h"

namespace sluice::pod {

// Writes "sluice run: TEXT" to standard error, without terminal control sequences (terminal.h).
void say(const std::string& text);

class Console {
 public:
  // Appends to the log, which takes at most `most` bytes (0: no limit). `quiet`: shows nothing. `raw`: writes
  // the workers' bytes unchanged, else without terminal control sequences, also to files and pipes: their
  // content is shown on a terminal some day.
  static base::Result<Console> open(const std::string& merged_log, uint64_t most, bool quiet, bool raw);

  // Adds whole lines.
  void add(const std::string& lines);
  // Shows what standard output takes without blocking.
  void move();
  void add_to(std::vector<pollfd>& polled) const;
  // Returns whether more than 1 MiB waits for a slow reader, so that no more should be added.
  bool is_full() const { return to_show_.size() > (1 << 20); }
  // Returns whether standard output was closed by its reader.
  bool is_cut_off() const { return cut_off_; }
  // Returns whether standard output lacks a part, for example because its disk is full.
  bool is_incomplete() const { return is_incomplete_; }
  // Shows the rest, for at most `seconds`.
  void finish(double seconds);

 private:
  Console(LogFile log, bool quiet, bool filtered)
      : log_(std::move(log)), quiet_(quiet), filtered_(filtered) {}
  void lose_output(int error);
  std::optional<LogFile> log_;  // nothing: it cannot be written any longer
  bool quiet_, filtered_, cut_off_ = false, is_incomplete_ = false;
  std::string to_show_;
};

// Appends all bytes; returns false on an error, for example a full disk.
bool write_all(int descriptor, std::string_view bytes);

}  // namespace sluice::pod
