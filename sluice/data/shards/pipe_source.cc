// The output of a command as a source.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "sluice/base/file.h"
#include "sluice/data/shards/remote_source.h"

namespace sluice::data {
namespace {

constexpr int kPipeBytes = 1 << 20;  // doubles the speed of the default of 64 KiB

class PipeSource : public Source {
 public:
  PipeSource(std::string name, int descriptor, pid_t child, const std::atomic<bool>* cancelled)
      : name_(std::move(name)), descriptor_(descriptor), child_(child), cancelled_(cancelled) {}
  ~PipeSource() override {
    ::close(descriptor_);
    if (child_ <= 0) return;
    ::kill(-child_, SIGKILL);  // its group: the shell and what it started
    while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  base::Result<std::size_t> read(void* bytes, std::size_t size) override {
    while (!ended_) {
      SLUICE_OK(wait_for_bytes());
      const ssize_t got = ::read(descriptor_, bytes, size);
      if (got > 0) return static_cast<std::size_t>(got);
      if (got < 0 && errno != EINTR && errno != EAGAIN) return base::fail_errno(errno, "cannot read", name_);
      if (got == 0) {
        SLUICE_OK(wait_for_exit());
        ended_ = true;
      }
    }
    return std::size_t{0};
  }

  const std::string& name() const override { return name_; }

 private:
  bool cancelled() const { return cancelled_ != nullptr && *cancelled_; }

  base::Status wait_for_bytes() const {
    while (!cancelled()) {
      pollfd wanted{descriptor_, POLLIN, 0};
      if (::poll(&wanted, 1, 100) > 0) return {};
    }
    return base::fail(Code::kCancelled, name_, ": reading was cancelled");
  }

  base::Status wait_for_exit() {
    int status = 0;
    pid_t ended = 0;
    while ((ended = ::waitpid(child_, &status, WNOHANG)) == 0) {
      if (cancelled()) return base::fail(Code::kCancelled, name_, ": waiting for its end was cancelled");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // its output is closed: it is about to end
    }
    child_ = -1;
    if (ended < 0) return base::fail_errno(errno, "cannot wait for", name_);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    if (WIFSIGNALED(status))
      return base::fail(Code::kDataLoss, name_, ": the command was killed by signal ", WTERMSIG(status), " (",
                        ::strsignal(WTERMSIG(status)), ")");
    return base::fail(Code::kDataLoss, name_, ": the command failed with status ", WEXITSTATUS(status),
                      WEXITSTATUS(status) == 127 ? " (not found)" : "",
                      ": what it wrote may not be the whole shard");
  }

  const std::string name_;
  const int descriptor_;
  pid_t child_;
  const std::atomic<bool>* cancelled_;
  bool ended_ = false;
};

// Starts the shell with its output in `output`, in a process group of its own; 0 or errno.
int spawn(const std::string& command, int output, pid_t& child) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const char* arguments[] = {"sh", "-c", command.c_str(), nullptr};
  const int status =
      ::posix_spawn(&child, "/bin/sh", &files, &attributes, const_cast<char* const*>(arguments), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return status;
}

}  // namespace

bool is_pipe(const std::string& url) { return base::starts_with(url, "pipe:"); }

base::Result<std::unique_ptr<Source>> open_pipe_source(const std::string& url, const SourceOptions& options) {
  if (options.begin > 0 || options.end)
    return base::fail(Code::kInvalidArgument, "cannot read a part of ", url,
                      ": expected a file or an object");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::fail_errno(errno, "cannot make a pipe for", url);
  ::fcntl(ends[0], F_SETPIPE_SZ, kPipeBytes);
  pid_t child = -1;
  const int status = spawn(url.substr(5), ends[1], child);
  ::close(ends[1]);
  if (status != 0) {
    ::close(ends[0]);
    return base::fail_errno(status, "cannot start", url);
  }
  return std::make_unique<PipeSource>(url, ends[0], child, options.cancelled);
}

}  // namespace sluice::data
