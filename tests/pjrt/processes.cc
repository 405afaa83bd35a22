#include "tests/pjrt/processes.h"

#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace emulated_pod::testing {
namespace fs = std::filesystem;
namespace {

struct Process {
  pid_t pid = -1;
  int output = -1;
};

std::vector<std::string> environment_with(const Environment& variables) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (variables.count(text.substr(0, text.find('='))) == 0) all.push_back(text);
  }
  for (const auto& [name, value] : variables) {
    if (!value.empty()) all.push_back(name + "=" + value);
  }
  return all;
}

Process start(const std::string& scenario, const Environment& variables) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("pipe");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  ::posix_spawn_file_actions_addclose(&actions, ends[0]);
  ::posix_spawn_file_actions_addclose(&actions, ends[1]);
  const std::vector<std::string> all = environment_with(variables);
  std::vector<char*> pointers;
  for (const std::string& entry : all) pointers.push_back(const_cast<char*>(entry.c_str()));
  pointers.push_back(nullptr);
  std::string program = SLUICE_POD_WORKER, argument = scenario;
  char* arguments[] = {program.data(), argument.data(), nullptr};
  Process process;
  const int error =
      ::posix_spawn(&process.pid, program.c_str(), &actions, nullptr, arguments, pointers.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) throw std::runtime_error("cannot start " + program);
  process.output = ends[0];
  return process;
}

// A process that does not end is ended, and counts as such.
Outcome wait_for(const Process& process, std::chrono::steady_clock::time_point until) {
  Outcome outcome;
  char piece[4096];
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd readable{process.output, POLLIN, 0};
    const int ready = left.count() > 0 ? ::poll(&readable, 1, static_cast<int>(left.count())) : 0;
    if (ready == 0) {
      ::kill(process.pid, SIGKILL);
      outcome.output += "[did not end]";
      break;
    }
    const ssize_t got = ready > 0 ? ::read(process.output, piece, sizeof piece) : -1;
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    outcome.output.append(piece, static_cast<size_t>(got));
  }
  ::close(process.output);
  int status = 0;
  while (::waitpid(process.pid, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "pod-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::vector<std::string> TemporaryFolder::names() const {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(path_)) found.push_back(entry.path().filename().string());
  return found;
}

ScopedEnvironment::ScopedEnvironment(const Environment& variables) {
  for (const auto& [name, value] : variables) {
    const char* before = std::getenv(name.c_str());
    if (before != nullptr) kept_[name] = before;
    before_[name] = before;
    ::setenv(name.c_str(), value.c_str(), 1);
  }
}

ScopedEnvironment::~ScopedEnvironment() {
  for (const auto& [name, before] : before_) {
    if (before == nullptr) {
      ::unsetenv(name.c_str());
    } else {
      ::setenv(name.c_str(), kept_[name].c_str(), 1);
    }
  }
}

std::vector<Outcome> run_pod(const std::string& scenario, int processes, int devices,
                             const Environment& variables, const std::map<int, Environment>& of_process) {
  const TemporaryFolder folder;
  std::string hosts;
  for (int p = 0; p < processes; ++p) hosts += (p == 0 ? "" : ",") + ("host" + std::to_string(p));
  std::vector<Process> started;
  for (int p = 0; p < processes; ++p) {
    Environment all = {{"EMULATED_POD_DIR", folder.path()},
                       {"EMULATED_POD_DEVICES", std::to_string(devices)},
                       {"SLUICE_POD_PLUGIN", SLUICE_POD_PLUGIN_PATH},
                       {"TPU_WORKER_HOSTNAMES", hosts},
                       {"TPU_WORKER_ID", std::to_string(p)}};
    for (const auto& [name, value] : variables) all[name] = value;
    if (const auto own = of_process.find(p); own != of_process.end()) {
      for (const auto& [name, value] : own->second) all[name] = value;
    }
    started.push_back(start(scenario, all));
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(240);
  std::vector<Outcome> outcomes;
  for (const Process& process : started) outcomes.push_back(wait_for(process, until));
  return outcomes;
}

}  // namespace emulated_pod::testing
