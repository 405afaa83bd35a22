// A program of another language that `sluice bench step` times in turns with its own step.
#pragma once

#include <string>

#include "sluice/base/process.h"
#include "sluice/base/result.h"

namespace sluice::cli {

// The program is a command of /bin/sh. It writes "ready" when it has warmed up; then, for each line with a
// number n on its standard input, it runs n steps and writes the seconds that one of them took. It ends when
// its input ends. What it writes to standard error is shown.
class OtherSide {
 public:
  // Waits for "ready". Errors: the command does not start, or ends before.
  static base::Result<OtherSide> start(const std::string& command);
  OtherSide(OtherSide&& other) noexcept = default;
  OtherSide& operator=(OtherSide&&) = delete;
  // Closes its input and waits for its end.
  ~OtherSide();

  // Seconds of one step.
  base::Result<double> run(int steps);

 private:
  OtherSide(const std::string& command, base::Process process)
      : command_(command), process_(std::move(process)) {}
  base::Result<std::string> line();

  std::string command_;
  base::Process process_;
};

}  // namespace sluice::cli
