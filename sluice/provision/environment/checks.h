// Checks for failures that are known before anything is requested: services that are off, permissions,
// quotas, names that Google does not have, a zone without the type, a bucket far away, an active run.
#pragma once

#include <string>
#include <vector>

#include "sluice/provision/environment/plan.h"

namespace sluice::provision {

struct Findings {
  std::vector<std::string> problems;  // if there is any, nothing is done
  std::vector<std::string> warnings;
};

// Only reads. A check that the caller has no permission for is no problem here: the request itself will fail.
google::Outcome<Findings> check_project(Cloud& cloud, const Settings& settings, const Survey& survey,
                                        const Plan& plan);

// Lists the runs in this machine's records (sluice run ls) that have not ended and have a worker on one of
// the pieces, by address, name or the name of the slice. Runs that another machine started are not known
// here.
std::vector<std::string> active_runs(const std::vector<Piece>& pieces);

}  // namespace sluice::provision
