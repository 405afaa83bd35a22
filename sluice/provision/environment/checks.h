// What can be known to fail before anything is asked for: services that are off, permissions, quotas, names
// that Google does not have, a zone without the type, a bucket far away, a run that is still going.
#pragma once

#include <string>
#include <vector>

#include "sluice/provision/environment/plan.h"

namespace sluice::provision {

struct Findings {
  std::vector<std::string> problems;  // with these nothing is done
  std::vector<std::string> warnings;
};

// Only reads. What the caller may not ask is no problem here: the requests themselves say so.
google::Outcome<Findings> check_project(Cloud& cloud, const Settings& settings, const Survey& survey,
                                        const Plan& plan);

// Runs of this machine's records (sluice run ls) that have not ended and have a worker on one of the pieces:
// by address, name, or the name of the slice. Runs that another machine started are not known here.
std::vector<std::string> active_runs(const std::vector<Piece>& pieces);

}  // namespace sluice::provision
