// Short scripts on several workers at once, with what they answer.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "sluice/pod/job.h"

namespace sluice::provision {

struct Answer {
  int status = 0;
  std::string output;
  std::string messages;  // standard error; where ssh failed, why and what to do
  bool unreachable = false;
};

// Runs `script` by sh on the host of each of the job's workers that is the first of its host, at most
// job.ssh.parallel connections at once; [index of the worker in job.workers], others stay empty. What takes
// longer than `deadline` seconds is ended there with status 124.
std::vector<Answer> run_scripts(const pod::Job& job, const std::string& script, double deadline);

}  // namespace sluice::provision
