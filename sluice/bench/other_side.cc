#include "sluice/bench/other_side.h"

#include <unistd.h>

#include <cerrno>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"

namespace sluice::bench {

base::Result<OtherSide> OtherSide::start(const std::string& command) {
  base::ProcessOptions options;
  options.input = base::ProcessOptions::Input::kPipe;
  options.output = base::ProcessOptions::Output::kPipe;
  SLUICE_TRY(base::Process process, base::Process::start({"/bin/sh", "-c", command}, options));
  return OtherSide(command, std::move(process));
}

base::Status OtherSide::wait_until_ready() {
  SLUICE_TRY(const std::string said, line());
  if (said == "ready") return {};
  const auto bytes =
      base::starts_with(said, "ready ") ? base::number_of<int64_t>(said.substr(6)) : std::nullopt;
  if (!bytes)
    return base::fail(Code::kFailedPrecondition, command_, ": expected \"ready\", found \"", said, "\"");
  bytes_ = *bytes;
  return {};
}

OtherSide::~OtherSide() {
  if (process_.in() < 0) return;  // moved from
  process_.close_in();
  process_.wait();
}

base::Result<double> OtherSide::run(int steps) {
  const std::string order = base::str(steps, '\n');
  [[maybe_unused]] const auto written = process_.write_in(order.data(), order.size());
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

OtherSides::OtherSides(const std::vector<std::string>& commands, bool keep_going) : keep_going_(keep_going) {
  for (const std::string& command : commands) {
    auto side = OtherSide::start(command);
    if (accept(command, side ? nullptr : &side.error())) sides_.emplace(command, std::move(*side));
  }
  for (const std::string& command : names()) {
    const auto status = sides_.at(command).wait_until_ready();
    if (!accept(command, status ? nullptr : &status.error())) continue;
    if (const int64_t bytes = sides_.at(command).bytes(); bytes > 0) bytes_[command] = bytes;
  }
}

std::map<std::string, double> OtherSides::run(int steps) {
  std::map<std::string, double> seconds;
  for (const std::string& command : names()) {
    auto took = sides_.at(command).run(steps);
    if (took) took = sides_.at(command).run(steps);
    if (accept(command, took ? nullptr : &took.error())) seconds[command] = *took;
  }
  return seconds;
}

std::vector<std::string> OtherSides::names() const {
  std::vector<std::string> all;
  for (const auto& [command, side] : sides_) all.push_back(command);
  return all;
}

bool OtherSides::accept(const std::string& command, const Error* error) {
  if (error == nullptr) return true;
  if (!keep_going_) throw_error(*error);
  errors_[command] = error->what();
  sides_.erase(command);
  return false;
}

}  // namespace sluice::bench
