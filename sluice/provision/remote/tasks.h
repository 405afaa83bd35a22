// The tasks of an environment, as command lines for its workers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/cloud/storage.h"

namespace sluice::provision {

// "install", "test", "update", "run", "resume": the line of the environment's section tasks, for sh on every
// worker. Without a line, update pulls every git repository of the home folder (only where that is a fast
// forward), and resume is the line of run. kNotFound for a task that has no line; kInvalidArgument for a name
// that is none.
base::Result<std::string> task_line(const std::map<std::string, std::string>& tasks, const std::string& name);

// The run whose checkpoint in the bucket is the latest, "gs://BUCKET/runs/one": it has an object `last`, as
// `sluice train --logdir gs://…` leaves it. Without any, the folder of the latest object whose name has
// "checkpoint" or "ckpt" in it; without that, "".
std::string latest_checkpoint(const std::string& bucket, const std::vector<cloud::ObjectFacts>& objects);

}  // namespace sluice::provision
