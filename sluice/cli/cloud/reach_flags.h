// The flags with which verbs name a TPU, and the session that connects to its workers.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/cli/flags/flag.h"
#include "sluice/provision/remote/reach.h"

namespace sluice::cli {

struct TpuFlags {
  std::string name,  // of several slices that run one program: a,b
      zone, project, worker, user, key;
  std::vector<std::string> options;  // for ssh, as its -o takes them
  std::string slices = {};           // of several: "0,2-3"; "": all
};

// The row of the argument NAME.
Flag tpu_row(TpuFlags& flags, const std::string& help = "The TPU");
// The rows of --zone and --project.
std::vector<Flag> place_rows(TpuFlags& flags);
// The row of --worker, and its default: "all" or "0".
Flag worker_row(TpuFlags& flags, const std::string& fallback);
// The rows of --ssh-user, --ssh-key and --ssh-option.
std::vector<Flag> ssh_rows(TpuFlags& flags);
// Adds NAME's flags for a worker, the place and ssh, in this order.
void add_reach_flags(CLI::App& app, TpuFlags& flags, const std::string& fallback);

// Returns the project of the flag, or the default one for "". Throws Usage for a text that cannot be a
// project's id, and Error if no project is known.
std::string project_or_default(const std::string& given);

// The reason why a dry run sent no request.
inline constexpr char kNoCredentials[] =
    "there are no credentials of Google's here (gcloud auth application-default login makes some, "
    "GOOGLE_APPLICATION_CREDENTIALS names a key file)";

// The requests of one verb with the environment's credentials. Progress goes to standard error.
class WorkerSession {
 public:
  // `verb` is the prefix of the lines of progress. Throws as project_or_default() does, and Error for a wrong
  // setting in the environment.
  WorkerSession(const std::string& verb, const std::string& project, bool dry_run = false);
  provision::Cloud& cloud() { return *cloud_; }

 private:
  std::unique_ptr<google::Api> api_;
  std::optional<provision::Cloud> cloud_;
};

// The workers that reach_slice() and --worker chose, ready to connect to. Throws Error and Usage.
struct ChosenWorkers {
  provision::ReachedSlice reached;
  std::vector<int> numbers;
};
ChosenWorkers reach_workers(provision::Cloud& cloud, const TpuFlags& flags);

// Returns a job with these workers' hosts, to connect to.
pod::Job job_of(const ChosenWorkers& chosen, const TpuFlags& flags);

}  // namespace sluice::cli
