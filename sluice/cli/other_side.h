// A program of another language that `sluice bench step` times in turns with its own step.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sluice/base/process.h"
#include "sluice/base/result.h"

namespace sluice::cli {

// The program is a command of /bin/sh. It writes "ready" when it has warmed up, or "ready N" where it knows
// that the device needs N bytes for its steps; then, for each line with a number n on its standard input, it
// runs n steps and writes the seconds that one of them took. It ends when its input ends. What it writes to
// standard error is shown.
class OtherSide {
 public:
  // Starts the command and does not wait for it. Errors: it does not start.
  static base::Result<OtherSide> start(const std::string& command);
  OtherSide(OtherSide&& other) noexcept = default;
  OtherSide& operator=(OtherSide&&) = delete;
  // Closes its input and waits for its end.
  ~OtherSide();

  // Waits until it has warmed up. Errors: it ends before, or says something else.
  base::Status wait_until_ready();
  // What it said of the device's memory; 0: nothing.
  int64_t bytes() const { return bytes_; }
  // Seconds of one step.
  base::Result<double> run(int steps);

 private:
  OtherSide(const std::string& command, base::Process process)
      : command_(command), process_(std::move(process)) {}
  base::Result<std::string> line();

  std::string command_;
  base::Process process_;
  int64_t bytes_ = 0;
};

// Several of them, which warm up together. Where `keep_going`, one that fails is left out from then on; else
// its sluice::Error is thrown.
class OtherSides {
 public:
  OtherSides(const std::vector<std::string>& commands, bool keep_going);

  // Seconds of a step of each command, in turn; each runs once untimed before.
  std::map<std::string, double> run(int steps);
  // By command: what those said of the device's memory that know it, and why others were left out.
  const std::map<std::string, int64_t>& bytes() const { return bytes_; }
  const std::map<std::string, std::string>& errors() const { return errors_; }

 private:
  std::vector<std::string> names() const;
  // Whether it went well; else the command is left out.
  bool accept(const std::string& command, const Error* error);

  bool keep_going_;
  std::map<std::string, OtherSide> sides_;
  std::map<std::string, int64_t> bytes_;
  std::map<std::string, std::string> errors_;
};

}  // namespace sluice::cli
