// The connection to one worker's supervisor.
#pragma once

#include <poll.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/pod/record.h"
#include "sluice/pod/ssh/child.h"

namespace sluice::pod {

class Link {
 public:
  // Starts `command` (a shell that evaluates its input, ssh.h) and sends the supervisor's script.
  static base::Result<Link> open(const std::vector<std::string>& command, const std::string& script);

  // Queues "beat", "stop INT" or "stop KILL", which are sent when there is room.
  void order(const std::string& text) { to_send_ += text + "\n"; }
  // Adds what to poll; the output only if `read_output`, so that a slow reader does not fill the memory. The
  // rest of a connection that has ended is read in any case, so that another one can take its place.
  void add_to(std::vector<pollfd>& polled, bool read_output) const;
  // Reads and writes as much as possible without blocking. Appends new output of the worker to `output`.
  void move(std::string& output, bool read_output);
  void kill() { child_.kill(); }

  // Returns the place in the worker's output from which the host has it, if the supervisor has said that it
  // is past the offset that it was asked for. Said before any output is read.
  const std::optional<uint64_t>& output_from() const { return output_from_; }
  // Returns whether the supervisor has answered.
  bool is_up() const { return up_; }
  // The worker's ending as the supervisor reported it; the output may be incomplete until is_closed(). The
  // time is by this machine's clock if the host reported its own time.
  const std::optional<Ending>& ending() const { return ending_; }
  // To call once the worker has ended: dismiss() lets the supervisor remove its folder, leave() keeps it.
  void dismiss() { order("done"); }
  void leave() { child_.close_in(); }
  // How far the host's clock is ahead of this machine's, in seconds; includes the time that a line takes.
  const std::optional<double>& clock_ahead() const { return clock_ahead_; }
  // Returns the supervisor's notes since the last call, in its own words (supervisor.sh).
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }
  // Returns whether all output has been read and the process has ended.
  bool is_closed() { return child_.out() < 0 && child_.error() < 0 && child_.poll().has_value(); }
  // Returns whether it will end without another event.
  bool is_about_to_close() const { return child_.out() < 0 && child_.error() < 0; }
  int status() {
    const auto ended = child_.poll();
    return ended ? ended->code() : 0;
  }
  // Other output of ssh and the shell.
  const std::string& messages() const { return messages_; }

 private:
  explicit Link(base::Process child) : child_(std::move(child)) {}
  void take_lines();
  void take_line(const std::string& line);
  void take_clock(double host_time);
  bool reads(bool read_output) const;

  base::Process child_;
  std::string to_send_, error_text_, messages_;
  bool up_ = false;
  std::optional<Ending> ending_;
  std::optional<uint64_t> output_from_;
  std::optional<double> clock_ahead_;
  std::vector<std::string> notes_;
};

}  // namespace sluice::pod
