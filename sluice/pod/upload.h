// A file on its way to a host.
#pragma once

#include <poll.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/pod/child.h"

namespace sluice::pod {

// A command (ssh.h) that is sent a script, and then a file, which the script reads from its standard input.
class Upload {
 public:
  static base::Result<Upload> start(const std::vector<std::string>& command, const std::string& script);
  Upload(Upload&& other) noexcept;
  Upload& operator=(Upload&&) = delete;
  ~Upload();

  // The file's bytes from `offset` on follow, and then the end of the input. Once.
  base::Status send_file(const std::string& path, uint64_t offset);
  // No file follows.
  void end_input() { child_.close_in(); }
  void add_to(std::vector<pollfd>& polled) const;
  // Reads and writes what is possible without waiting, at most some MB of it.
  void move();
  // All output has been read and the command has ended.
  bool has_ended();
  int status() {
    const auto ended = child_.poll();
    return ended ? ended->code() : 0;
  }

  // Of the file, sent so far: the offset counts as sent.
  uint64_t position() const { return position_ - block_.size(); }
  // The next whole line of its standard output; nothing when there is none yet.
  std::optional<std::string> take_line();
  const std::string& messages() const { return messages_; }  // its standard error

 private:
  explicit Upload(base::Process child) : child_(std::move(child)) {}
  void write_some();
  bool write_from(std::string& bytes);

  base::Process child_;
  std::string script_, block_;  // not yet sent: of the script, and what has been read of the file
  int file_ = -1;
  uint64_t position_ = 0;
  std::string output_;
  size_t taken_ = 0;  // bytes of the output whose lines were taken
  std::string messages_;
};

// What to do where tools have said that a disk is full ("tar: x: Cannot write: No space left on device");
// empty where they said something else. `place`: the folder that they wrote to, and where that is.
std::string advice_for_full_disk(const std::string& said, const std::string& place);

}  // namespace sluice::pod
