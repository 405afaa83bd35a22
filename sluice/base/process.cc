#include "sluice/base/process.h"

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
#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"

extern char** environ;  // NOLINT: POSIX has no header for it

namespace sluice::base {
namespace {

// The number of bytes at the end of a program's output that are kept at least.
constexpr size_t kKeptOutput = 16384;

void close_descriptor(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

// The two ends of a pipe; a child inherits neither by itself.
struct Pipe {
  int read = -1, write = -1;
  ~Pipe() {
    close_descriptor(read);
    close_descriptor(write);
  }
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
};

struct Pipes {
  Pipe in, out, error;
  bool open(const ProcessOptions& options) {
    using Output = ProcessOptions::Output;
    return (options.input != ProcessOptions::Input::kPipe || in.open()) &&
           (options.output != Output::kPipe || out.open()) &&
           (options.error != Output::kPipe || error.open());
  }
};

std::vector<std::string> changed_environment(const EnvironmentChanges& changes) {
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

// The settings of posix_spawn for files, signals and groups; freed at the end.
struct SpawnSettings {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;

  SpawnSettings(const ProcessOptions& options, const Pipes& pipes) {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
    if (pipes.in.read >= 0)
      ::posix_spawn_file_actions_adddup2(&files, pipes.in.read, STDIN_FILENO);
    else
      ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (pipes.out.write >= 0) ::posix_spawn_file_actions_adddup2(&files, pipes.out.write, STDOUT_FILENO);
    if (pipes.error.write >= 0) ::posix_spawn_file_actions_adddup2(&files, pipes.error.write, STDERR_FILENO);
    if (options.error == ProcessOptions::Output::kWithOutput)
      ::posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    if (options.own_session) make_session();
  }
  ~SpawnSettings() {
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
  }
  SpawnSettings(const SpawnSettings&) = delete;

  void make_session() {
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setflags(&attributes,
                               POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
};

// Reads until the process and all that it started have closed the pipe; false if the deadline came first.
bool read_output(int input, double deadline, std::string& output) {
  char block[4096];
  while (true) {
    const double left = deadline - monotonic_seconds();
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

int ExitStatus::code() const {
  return by_signal() ? 128 + WTERMSIG(wait_status_) : WEXITSTATUS(wait_status_);
}

bool ExitStatus::by_signal() const { return WIFSIGNALED(wait_status_); }

std::string ExitStatus::text() const {
  if (!by_signal()) return str("status ", WEXITSTATUS(wait_status_));
  return str("signal ", WTERMSIG(wait_status_), " (", ::strsignal(WTERMSIG(wait_status_)), ")");
}

Result<Process> Process::start(const std::vector<std::string>& command, const ProcessOptions& options) {
  Pipes pipes;
  if (!pipes.open(options)) return fail_errno(errno, "make a pipe for", command.front());
  const SpawnSettings settings(options, pipes);
  std::vector<std::string> words = command, variables = changed_environment(options.environment);
  Process process;
  const int error = ::posix_spawnp(&process.id_, words.front().c_str(), &settings.files, &settings.attributes,
                                   pointers(words).data(), pointers(variables).data());
  if (error != 0) {
    process.id_ = -1;
    return fail_errno(error, "start", command.front());
  }
  process.leads_group_ = options.own_session;
  process.in_ = std::exchange(pipes.in.write, -1);
  process.out_ = std::exchange(pipes.out.read, -1);
  process.error_ = std::exchange(pipes.error.read, -1);
  for (const int descriptor : {process.in_, process.out_, process.error_}) {
    if (options.nonblocking && descriptor >= 0)
      ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  }
  return process;
}

Process::Process(Process&& other) noexcept { *this = std::move(other); }

Process& Process::operator=(Process&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(leads_group_, other.leads_group_);
  std::swap(in_, other.in_);
  std::swap(out_, other.out_);
  std::swap(error_, other.error_);
  std::swap(status_, other.status_);
  return *this;
}

Process::~Process() {
  close_in();
  close_out();
  close_error();
  if (id_ > 0 && !status_) {
    kill();
    wait();
  }
}

ssize_t Process::write_in(const void* bytes, size_t size) {
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigset_t pending;
  sigpending(&pending);
  const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  const ssize_t written = ::write(in_, bytes, size);
  const int error = errno;
  if (written < 0 && error == EPIPE && !was_pending) {
    const timespec no_time{};
    sigtimedwait(&pipe, nullptr, &no_time);  // removes the signal of this write
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return written;
}

void Process::close_in() { close_descriptor(in_); }
void Process::close_out() { close_descriptor(out_); }
void Process::close_error() { close_descriptor(error_); }

void Process::kill() {
  if (id_ > 0 && !status_) ::kill(leads_group_ ? -id_ : id_, SIGKILL);
}

void Process::signal(int number) {
  if (id_ > 0 && !status_) ::kill(id_, number);
}

std::optional<ExitStatus> Process::poll() {
  int status = 0;
  if (!status_ && id_ > 0 && ::waitpid(id_, &status, WNOHANG) == id_) status_ = ExitStatus(status);
  return status_;
}

ExitStatus Process::wait() {
  int status = 0;
  while (!status_) {
    const pid_t ended = ::waitpid(id_, &status, 0);
    if (ended == id_) status_ = ExitStatus(status);
    if (ended < 0 && errno != EINTR) status_ = ExitStatus(127 << 8);  // someone else has waited for it
  }
  return *status_;
}

std::string Finished::last_words() const {
  const std::string_view text = trim(output);
  if (text.empty()) return "it wrote nothing";
  // The line with the reason comes before a stack trace.
  constexpr size_t kShown = 1500;
  const size_t check = std::min(text.find("Check fail"), text.find("ERROR:"));
  if (check != std::string_view::npos) return std::string(text.substr(check, kShown));
  return std::string(text.size() > kShown ? text.substr(text.size() - kShown) : text);
}

Result<Finished> run_process(const std::vector<std::string>& command, const EnvironmentChanges& environment,
                             double deadline_seconds) {
  ProcessOptions options;
  options.environment = environment;
  options.output = ProcessOptions::Output::kPipe;
  options.error = ProcessOptions::Output::kWithOutput;
  SLUICE_TRY(Process process, Process::start(command, options));
  std::string output;
  const bool ended = read_output(process.out(), monotonic_seconds() + deadline_seconds, output);
  process.close_out();
  if (!ended) process.kill();
  return Finished{process.wait(), !ended, std::move(output)};
}

std::optional<ProcessFacts> look_at_process(int process) {
  const auto text = read_file(str("/proc/", process, "/stat"));
  // The command in parentheses may contain anything; the words are counted after it.
  const size_t behind = text ? text->rfind(')') : std::string::npos;
  if (behind == std::string::npos) return std::nullopt;
  const auto words = split(trim(std::string_view(*text).substr(behind + 1)), ' ');
  if (words.size() < 20) return std::nullopt;
  return ProcessFacts{words[0], number_of<int>(words[3]).value_or(0),
                      number_of<int64_t>(words[19]).value_or(0)};
}

std::string host_name() {
  char name[256] = "localhost";
  ::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace sluice::base
