// The tasks of an environment, as command lines for its workers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/cloud/storage.h"

namespace sluice::provision {

// Returns the line of the environment's section tasks, for sh on every worker. `name`: "install", "test",
// "update", "run" or "resume". Without a line, update pulls every git repository of the home folder (only as
// a fast forward), and resume uses the line of run. kNotFound for a task without a line; kInvalidArgument for
// an unknown name.
base::Result<std::string> task_line(const std::map<std::string, std::string>& tasks, const std::string& name);

// Returns the run with the latest checkpoint in the bucket, "gs://BUCKET/runs/one": the one with an object
// `last`, as `sluice train --logdir gs://…` leaves it. Else the folder of the latest object with "checkpoint"
// or "ckpt" in its name, else "".
std::string latest_checkpoint(const std::string& bucket, const std::vector<cloud::ObjectFacts>& objects);

}  // namespace sluice::provision
