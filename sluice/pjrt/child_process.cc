#include "sluice/pjrt/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>

#include "sluice/base/clock.h"
#include "sluice/base/file.h"

extern char** environ;  // NOLINT: POSIX has no header for it

namespace sluice::pjrt {
namespace {

constexpr size_t kKeptOutput = 16384;

using Changes = std::vector<std::pair<std::string, std::optional<std::string>>>;

std::vector<std::string> changed_environment(const Changes& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    const bool changed =
        std::any_of(changes.begin(), changes.end(), [&](const auto& change) { return change.first == name; });
    if (!changed) result.emplace_back(text);
  }
  for (const auto& [name, value] : changes) {
    if (value) result.push_back(name + "=" + *value);
  }
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Starts the child with its output in the pipe's write end.
int spawn(pid_t& child, std::vector<std::string> command, const Changes& changes, int output) {
  std::vector<std::string> environment = changed_environment(changes);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  const int error = ::posix_spawnp(&child, command[0].c_str(), &actions, nullptr, pointers(command).data(),
                                   pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

// Reads until the child and whatever it started have closed the pipe; false when the deadline came first.
bool read_output(int input, double deadline, std::string& output) {
  char block[4096];
  while (true) {
    const double left = deadline - base::monotonic_seconds();
    if (left <= 0) return false;
    pollfd wait{input, POLLIN, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::min(std::ceil(left * 1e3), 1e9)));
    if (ready < 0 && errno != EINTR) return true;
    if (ready <= 0) continue;
    const ssize_t count = ::read(input, block, sizeof block);
    if (count == 0) return true;
    if (count < 0 && errno != EINTR) return true;
    if (count > 0) output.append(block, static_cast<size_t>(count));
    if (output.size() > 2 * kKeptOutput) output.erase(0, output.size() - kKeptOutput);
  }
}

}  // namespace

std::string ChildEnd::how() const {
  if (WIFSIGNALED(status))
    return base::str("signal ", WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")");
  return base::str("status ", WEXITSTATUS(status));
}

std::string ChildEnd::last_words() const {
  const std::string_view text = base::trim(output);
  if (text.empty()) return "it wrote nothing";
  // The line that says why stands before a stack trace.
  constexpr size_t kShown = 1500;
  const size_t check = std::min(text.find("Check fail"), text.find("ERROR:"));
  if (check != std::string_view::npos) return std::string(text.substr(check, kShown));
  return std::string(text.size() > kShown ? text.substr(text.size() - kShown) : text);
}

base::Result<ChildEnd> run_child(const std::vector<std::string>& command, const Changes& environment,
                                 double deadline_seconds) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::fail_errno(errno, "make a pipe for", command[0]);
  pid_t child = 0;
  const int error = spawn(child, command, environment, ends[1]);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    return base::fail_errno(error, "start", command[0]);
  }
  ChildEnd end;
  end.timed_out = !read_output(ends[0], base::monotonic_seconds() + deadline_seconds, end.output);
  ::close(ends[0]);
  if (end.timed_out) ::kill(child, SIGKILL);
  while (::waitpid(child, &end.status, 0) < 0) {
    if (errno != EINTR) return base::fail_errno(errno, "wait for", command[0]);
  }
  return end;
}

}  // namespace sluice::pjrt
