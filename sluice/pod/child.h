// A process with pipes to its standard streams.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::pod {

// Runs in a session of its own, so that a terminal's Ctrl-C does not reach it. The pipes' ends here do not
// block. The destructor closes them, kills the process if it still runs, and waits for it.
class Child {
 public:
  static base::Result<Child> start(const std::vector<std::string>& command);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  int in() const { return in_; }    // to write to; -1 when closed
  int out() const { return out_; }  // to read its output from; -1 when closed
  int error() const { return error_; }
  void close_in();
  void close_out();
  void close_error();
  void kill();
  // The exit status once it has ended (128 + n for signal n); does not wait.
  std::optional<int> poll();
  // Waits for its end.
  int wait();

 private:
  Child() = default;
  pid_t process_ = -1;
  int in_ = -1, out_ = -1, error_ = -1;
  std::optional<int> status_;
};

}  // namespace sluice::pod
