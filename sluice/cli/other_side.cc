#include "sluice/cli/other_side.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "sluice/base/number.h"
#include "sluice/base/strings.h"

namespace sluice::cli {

base::Result<OtherSide> OtherSide::start(const std::string& command) {
  base::ProcessOptions options;
  options.input = base::ProcessOptions::Input::kPipe;
  options.output = base::ProcessOptions::Output::kPipe;
  SLUICE_TRY(base::Process process, base::Process::start({"/bin/sh", "-c", command}, options));
  OtherSide side(command, std::move(process));
  // Whether it has ended is seen by what it no longer writes.
  std::signal(SIGPIPE, SIG_IGN);
  SLUICE_TRY(const std::string said, side.line());
  if (said != "ready")
    return base::fail(Code::kFailedPrecondition, command, ": expected \"ready\", found \"", said, "\"");
  return side;
}

OtherSide::~OtherSide() {
  if (process_.in() < 0) return;  // moved from
  process_.close_in();
  process_.wait();
}

base::Result<double> OtherSide::run(int steps) {
  const std::string order = base::str(steps, '\n');
  [[maybe_unused]] const auto written = ::write(process_.in(), order.data(), order.size());
  SLUICE_TRY(const std::string said, line());
  const auto seconds = base::number_of<double>(said);
  if (!seconds || !(*seconds > 0)) {
    return base::fail(Code::kFailedPrecondition, command_, ": expected the seconds of a step, found \"", said,
                      "\"");
  }
  return *seconds;
}

base::Result<std::string> OtherSide::line() {
  std::string text;
  char byte = 0;
  while (byte != '\n') {
    const ssize_t count = ::read(process_.out(), &byte, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count > 0) text += byte;
    if (count <= 0 && !text.empty()) break;
    if (count <= 0)
      return base::fail(
          Code::kFailedPrecondition, command_,
          " ended: expected \"ready\", and the seconds of a step for each line that it is sent");
  }
  return std::string(base::trim(text));
}

}  // namespace sluice::cli
