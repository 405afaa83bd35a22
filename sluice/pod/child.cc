#include "sluice/pod/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "sluice/base/file.h"

extern char** environ;

namespace sluice::pod {
namespace {

void close_descriptor(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

// Three pipes; both ends are closed in other children.
struct Pipes {
  int ends[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
  ~Pipes() {
    for (auto& pipe : ends)
      for (int& end : pipe) close_descriptor(end);
  }
  bool open() {
    for (auto& pipe : ends)
      if (::pipe2(pipe, O_CLOEXEC) != 0) return false;
    return true;
  }
};

// A session of its own, and no signal ignored or blocked.
int spawn(pid_t* process, const std::vector<std::string>& command, const Pipes& pipes) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipes.ends[0][0], 0);
  ::posix_spawn_file_actions_adddup2(&actions, pipes.ends[1][1], 1);
  ::posix_spawn_file_actions_adddup2(&actions, pipes.ends[2][1], 2);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int error = ::posix_spawnp(process, arguments[0], &actions, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

int shell_status(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

}  // namespace

base::Result<Child> Child::start(const std::vector<std::string>& command) {
  Pipes pipes;
  if (!pipes.open()) return base::fail_errno(errno, "make a pipe for", command.front());
  Child child;
  if (const int error = spawn(&child.process_, command, pipes); error != 0)
    return base::fail_errno(error, "start", command.front());
  child.in_ = std::exchange(pipes.ends[0][1], -1);
  child.out_ = std::exchange(pipes.ends[1][0], -1);
  child.error_ = std::exchange(pipes.ends[2][0], -1);
  for (const int descriptor : {child.in_, child.out_, child.error_})
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  return child;
}

Child::Child(Child&& other) noexcept { *this = std::move(other); }

Child& Child::operator=(Child&& other) noexcept {
  std::swap(process_, other.process_);
  std::swap(in_, other.in_);
  std::swap(out_, other.out_);
  std::swap(error_, other.error_);
  std::swap(status_, other.status_);
  return *this;
}

Child::~Child() {
  close_in();
  close_out();
  close_error();
  if (process_ > 0 && !status_) {
    kill();
    wait();
  }
}

void Child::close_in() { close_descriptor(in_); }
void Child::close_out() { close_descriptor(out_); }
void Child::close_error() { close_descriptor(error_); }

void Child::kill() {
  if (process_ > 0 && !status_) ::kill(process_, SIGKILL);
}

std::optional<int> Child::poll() {
  int status = 0;
  if (!status_ && process_ > 0 && ::waitpid(process_, &status, WNOHANG) == process_)
    status_ = shell_status(status);
  return status_;
}

int Child::wait() {
  int status = 0;
  while (!status_) {
    const pid_t ended = ::waitpid(process_, &status, 0);
    if (ended == process_) status_ = shell_status(status);
    if (ended < 0 && errno != EINTR) status_ = 127;
  }
  return *status_;
}

}  // namespace sluice::pod
