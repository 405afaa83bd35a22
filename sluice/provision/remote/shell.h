// Runs short scripts on several workers at once and returns their output.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "sluice/pod/job.h"

namespace sluice::provision {

struct Answer {
  int status = 0;
  std::string output;
  std::string messages;  // standard error; if ssh failed, why and what to do
  bool unreachable = false;
};

// Runs `script` with sh once on each host of the job, for the first worker of the host, over at most
// job.ssh.parallel connections at once. The result is indexed as job.workers; other workers' answers are
// empty. A script that takes longer than `deadline` seconds is ended there with status 124.
std::vector<Answer> run_scripts(const pod::Job& job, const std::string& script, double deadline);

}  // namespace sluice::provision
