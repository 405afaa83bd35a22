// Programs that this process starts: their environment, pipes and deadline, and a description of how they
// ended. Also facts that the machine reports about any process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::base {

// How a process ended.
class ExitStatus {
 public:
  explicit ExitStatus(int wait_status) : wait_status_(wait_status) {}  // as waitpid() gives it
  // Returns its exit status; 128 + n for signal n, as a shell does.
  int code() const;
  bool by_signal() const;
  // "status 1", "signal 6 (Aborted)"
  std::string text() const;

 private:
  int wait_status_;
};

// Variables of the environment with their new values; a variable without a value is unset.
using EnvironmentChanges = std::vector<std::pair<std::string, std::optional<std::string>>>;

// How a process is started.
struct ProcessOptions {
  EnvironmentChanges environment;
  enum class Input { kNothing, kPipe } input = Input::kNothing;
  enum class Output { kInherited, kPipe, kWithOutput };  // kWithOutput: errors go where the output goes
  Output output = Output::kInherited, error = Output::kInherited;
  // Whether reading and writing at this end of the pipes return at once with EAGAIN instead of waiting.
  bool nonblocking = false;
  // Whether the process gets a session of its own: a terminal's Ctrl-C does not reach it, no signal is
  // ignored or blocked, and kill() also ends the processes it started that have stayed in its process group.
  bool own_session = false;
};

// A process with pipes to its standard streams; both ends of a pipe are closed in all other children. The
// destructor closes them, kills the process if it still runs, and waits for it. Threads: one at a time.
class Process {
 public:
  // Starts `command`: a path or a name on $PATH, and its arguments. kNotFound when there is no such program.
  static Result<Process> start(const std::vector<std::string>& command, const ProcessOptions& options);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  int in() const { return in_; }    // the descriptor for write_in(); -1 when closed, or when there is no pipe
  int out() const { return out_; }  // the descriptor to read its output from
  int error() const { return error_; }
  // Writes to the process's input as write(2) does, with one difference: if nobody reads the input any more,
  // the call fails with EPIPE, and this program gets no SIGPIPE, however it handles that signal.
  ssize_t write_in(const void* bytes, size_t size);
  void close_in();
  void close_out();
  void close_error();
  void kill();
  // Sends a signal to this process only, not to its group.
  void signal(int number);
  // Returns how it ended, or nothing while it runs; does not wait.
  std::optional<ExitStatus> poll();
  // Waits for its end.
  ExitStatus wait();

 private:
  Process() = default;
  pid_t id_ = -1;
  bool leads_group_ = false;
  int in_ = -1, out_ = -1, error_ = -1;
  std::optional<ExitStatus> status_;
};

// The result of a program that has run to its end.
struct Finished {
  ExitStatus status;
  bool timed_out = false;
  std::string output;  // the end of what it wrote to standard output and standard error

  // Returns the last lines of its output, or "it wrote nothing".
  std::string last_words() const;
};

// Runs `command` without input, with this process's environment changed; kills it after `deadline_seconds`.
// kNotFound when there is no such program.
Result<Finished> run_process(const std::vector<std::string>& command, const EnvironmentChanges& environment,
                             double deadline_seconds);

// The facts that /proc/PID/stat reports about a process (proc(5)).
struct ProcessFacts {
  std::string state;  // "R", "S", "T" (stopped), "Z" (only its parent has not yet heard of its end) …
  int session = 0;    // its session's leader
  int64_t began = 0;  // clock ticks since the machine started
};
// Returns nothing when there is no such process.
std::optional<ProcessFacts> look_at_process(int process);

// Returns this machine's own name; "localhost" if it has none.
std::string host_name();

}  // namespace sluice::base
