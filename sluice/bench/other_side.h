// A program in another language that `sluice bench step` times in turns with its own step.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sluice/base/process.h"
#include "sluice/base/result.h"

namespace sluice::bench {

// The program is a command of /bin/sh. It writes "ready" when it has warmed up, or "ready N" if it knows that
// its steps need N bytes of the device. Then, for each line with a number n on its standard input, it runs n
// steps and writes the seconds that one step took. It ends when its input ends. Its standard error is shown.
class OtherSide {
 public:
  // Starts the command without waiting for it. Errors: the command does not start.
  static base::Result<OtherSide> start(const std::string& command);
  OtherSide(OtherSide&& other) noexcept = default;
  OtherSide& operator=(OtherSide&&) = delete;
  // Closes the command's input and waits for its end.
  ~OtherSide();

  // Waits until the command has warmed up. Errors: it ends before, or writes something else.
  base::Status wait_until_ready();
  // The bytes of the device's memory that the command reported; 0: it reported none.
  int64_t bytes() const { return bytes_; }
  // Runs the steps; returns the seconds of one step.
  base::Result<double> run(int steps);

 private:
  OtherSide(const std::string& command, base::Process process)
      : command_(command), process_(std::move(process)) {}
  base::Result<std::string> line();

  std::string command_;
  base::Process process_;
  int64_t bytes_ = 0;
};

// Several commands, which warm up together. With `keep_going`, a command that fails is left out from then on;
// else its sluice::Error is thrown.
class OtherSides {
 public:
  OtherSides(const std::vector<std::string>& commands, bool keep_going);

  // Returns the seconds of one step of each command, run in turn; each first runs once untimed.
  std::map<std::string, double> run(int steps);
  // By command: the device memory of the commands that reported it, and the errors of those left out.
  const std::map<std::string, int64_t>& bytes() const { return bytes_; }
  const std::map<std::string, std::string>& errors() const { return errors_; }

 private:
  std::vector<std::string> names() const;
  // Whether it went well; with keep_going, a command that failed is left out.
  bool accept(const std::string& command, const Error* error);

  bool keep_going_;
  std::map<std::string, OtherSide> sides_;
  std::map<std::string, int64_t> bytes_;
  std::map<std::string, std::string> errors_;
};

}  // namespace sluice::bench
