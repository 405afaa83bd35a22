// The processes that `sluice profile` asks: all processes of a training that have a profiler's port.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/cli/monitor/host_looks.h"
#include "sluice/cloud/http.h"
#include "sluice/monitor/process_status.h"
#include "sluice/pod/job.h"

namespace sluice::cli {

struct ProfileTarget {
  std::string address;  // on its host: "127.0.0.1:9012"
  monitor::ProcessStatus status;
  std::optional<size_t>
      worker;  // the first worker of its host, if ssh reaches it; else the process is asked directly
};

// Threads: one.
class ProfileTargets {
 public:
  // Parses addresses such as "9012,host:9012". Throws Usage for a text that is no address.
  static ProfileTargets at(const std::string& addresses);
  // Takes the processes of a run of `sluice run`, on all of its hosts. Throws sluice::Error for a run that is
  // unknown or over.
  static ProfileTargets of_run(const std::string& name);

  // Asks the processes for their step, and fills list(). Errors name who does not listen, and what to do.
  base::Status look();
  const std::vector<ProfileTarget>& list() const { return targets_; }
  // The job of the run if ssh reaches its hosts; else nullopt.
  const std::optional<pod::Job>& job() const { return job_; }
  cloud::Http& http() { return *http_; }

 private:
  base::Status look_at_run();

  std::string run_;  // "" if addresses were given
  std::optional<pod::Job> job_;
  std::optional<HostLooks> looks_;
  size_t workers_ = 0;  // the number of the run's workers
  std::vector<ProfileTarget> targets_;
  std::unique_ptr<cloud::Http> http_ = std::make_unique<cloud::Http>();
};

}  // namespace sluice::cli
