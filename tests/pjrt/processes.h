// Starts the processes of an emulated pod.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace emulated_pod::testing {

using Environment = std::map<std::string, std::string>;

// How a process ended: its exit status (128 + the signal's number where one ended it) and what it wrote.
struct Outcome {
  int status = 0;
  std::string output;
};

// A folder of its own under the system's temporary one, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string path() const { return path_.string(); }
  // Names of what is in it.
  std::vector<std::string> names() const;

 private:
  std::filesystem::path path_;
};

// Variables of this process, put back at the end.
class ScopedEnvironment {
 public:
  explicit ScopedEnvironment(const Environment& variables);
  ~ScopedEnvironment();
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;

 private:
  std::map<std::string, const char*> before_;
  std::map<std::string, std::string> kept_;
};

// Runs the worker's scenario in as many processes, on so many devices each, and waits for all of them.
// Variables that are given replace those that say what a process is; an empty one is not set. `of_process` is
// for one of them.
std::vector<Outcome> run_pod(const std::string& scenario, int processes, int devices,
                             const Environment& variables = {},
                             const std::map<int, Environment>& of_process = {});

}  // namespace emulated_pod::testing
