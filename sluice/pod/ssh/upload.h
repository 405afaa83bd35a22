// The transfer of a file to a host.
#pragma once

#include <poll.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/pod/ssh/child.h"

namespace sluice::pod {

// A command (ssh.h) that receives a script and then a file, which the script reads from its standard input.
class Upload {
 public:
  static base::Result<Upload> start(const std::vector<std::string>& command, const std::string& script);
  Upload(Upload&& other) noexcept;
  Upload& operator=(Upload&&) = delete;
  ~Upload();

  // Sends the file's bytes from `offset` on, then the end of the input. Once.
  base::Status send_file(const std::string& path, uint64_t offset);
  // Ends the input without a file.
  void end_input() { child_.close_in(); }
  void add_to(std::vector<pollfd>& polled) const;
  // Reads and writes what is possible without blocking, at most some MB.
  void move();
  // Returns whether all output has been read and the command has ended.
  bool has_ended();
  int status() {
    const auto ended = child_.poll();
    return ended ? ended->code() : 0;
  }

  // The position in the file up to which bytes were sent, including `offset`.
  uint64_t position() const { return position_ - block_.size(); }
  // Returns the next whole line of its standard output; nothing if there is no whole line yet.
  std::optional<std::string> take_line();
  const std::string& messages() const { return messages_; }  // its standard error

 private:
  explicit Upload(base::Process child) : child_(std::move(child)) {}
  void write_some();
  bool write_from(std::string& bytes);

  base::Process child_;
  std::string script_, block_;  // not yet sent: the rest of the script, and bytes already read from the file
  int file_ = -1;
  uint64_t position_ = 0;
  std::string output_;
  size_t taken_ = 0;  // bytes of the output whose lines were taken
  std::string messages_;
};

// Returns what to do if tools reported a full disk ("tar: x: Cannot write: No space left on device"); empty
// for other messages. `place`: the folder that they wrote to, and where that is.
std::string advice_for_full_disk(const std::string& said, const std::string& place);

}  // namespace sluice::pod
