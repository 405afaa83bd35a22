// How verbs name a TPU, and what they do to get at its workers.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/provision/remote/reach.h"

namespace sluice::cli {

struct TpuFlags {
  std::string name, zone, project, worker, user, key;
  std::vector<std::string> options;  // of ssh, as its -o takes them
};

// --zone and --project, in this group of the help.
void add_place_flags(CLI::App& app, TpuFlags& flags, const std::string& group = "Where");
// --worker; `fallback`: "all" or "0".
void add_worker_flag(CLI::App& app, TpuFlags& flags, const std::string& fallback,
                     const std::string& group = "Where");
// --ssh-user, --ssh-key and --ssh-option.
void add_ssh_flags(CLI::App& app, TpuFlags& flags, const std::string& group = "Where");

// The project that a flag says; "": the default one. Throws Usage for what is no project's id, and Error
// where none is known.
std::string project_or_default(const std::string& given);

// Why a dry run has asked nobody.
inline constexpr char kNoCredentials[] =
    "there are no credentials of Google's here (gcloud auth application-default login makes some, "
    "GOOGLE_APPLICATION_CREDENTIALS names a key file)";

// The requests of one verb, with the environment's credentials; progress goes to standard error.
class WorkerSession {
 public:
  // `verb`: stands before the lines of progress. Throws as project_or_default(), and Error for what the
  // environment's settings have wrong.
  WorkerSession(const std::string& verb, const std::string& project, bool dry_run = false);
  provision::Cloud& cloud() { return *cloud_; }

 private:
  std::unique_ptr<google::Api> api_;
  std::optional<provision::Cloud> cloud_;
};

// Workers that can be connected to: reach_slice() and --worker. Throws Error and Usage.
struct ChosenWorkers {
  provision::ReachedSlice reached;
  std::vector<int> numbers;
};
ChosenWorkers reach_workers(provision::Cloud& cloud, const TpuFlags& flags);

// A job that stands for these workers' hosts, to connect to.
pod::Job job_of(const ChosenWorkers& chosen, const TpuFlags& flags);

}  // namespace sluice::cli
