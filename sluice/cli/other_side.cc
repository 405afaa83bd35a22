#include "sluice/cli/other_side.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "sluice/base/file.h"
#include "sluice/base/strings.h"

extern char** environ;

namespace sluice::cli {

base::Result<OtherSide> OtherSide::start(const std::string& command) {
  OtherSide side;
  side.command_ = command;
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0) return base::fail_errno(errno, "cannot make a pipe for", command);
  if (::pipe2(out, O_CLOEXEC) != 0) {
    ::close(in[0]);
    ::close(in[1]);
    return base::fail_errno(errno, "cannot make a pipe for", command);
  }
  side.to_ = ::fdopen(in[1], "w");
  side.from_ = ::fdopen(out[0], "r");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  const char* arguments[] = {"/bin/sh", "-c", command.c_str(), nullptr};
  const int failed = ::posix_spawn(&side.process_, "/bin/sh", &actions, nullptr,
                                   const_cast<char* const*>(arguments), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]);
  ::close(out[1]);
  if (failed != 0) {
    side.process_ = -1;
    return base::fail_errno(failed, "cannot start", command);
  }
  // Whether it has ended is seen by what it no longer writes.
  std::signal(SIGPIPE, SIG_IGN);
  SLUICE_TRY(const std::string said, side.line());
  if (said != "ready")
    return base::fail(Code::kFailedPrecondition, command, ": expected \"ready\", found \"", said, "\"");
  return side;
}

OtherSide::OtherSide(OtherSide&& other) noexcept
    : command_(std::move(other.command_)),
      process_(std::exchange(other.process_, -1)),
      to_(std::exchange(other.to_, nullptr)),
      from_(std::exchange(other.from_, nullptr)) {}

OtherSide::~OtherSide() {
  if (to_ != nullptr) std::fclose(to_);
  if (process_ > 0) ::waitpid(process_, nullptr, 0);
  if (from_ != nullptr) std::fclose(from_);
}

base::Result<double> OtherSide::run(int steps) {
  std::fprintf(to_, "%d\n", steps);
  std::fflush(to_);
  SLUICE_TRY(const std::string said, line());
  char* end = nullptr;
  const double seconds = std::strtod(said.c_str(), &end);
  if (end == said.c_str() || *end != '\0' || !(seconds > 0)) {
    return base::fail(Code::kFailedPrecondition, command_, ": expected the seconds of a step, found \"", said,
                      "\"");
  }
  return seconds;
}

base::Result<std::string> OtherSide::line() {
  char text[256];
  if (std::fgets(text, sizeof text, from_) == nullptr) {
    return base::fail(Code::kFailedPrecondition, command_,
                      " ended: expected \"ready\", and the seconds of a step for each line that it is sent");
  }
  return std::string(base::trim(text));
}

}  // namespace sluice::cli
