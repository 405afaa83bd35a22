// What of an environment exists, by the cloud's own lists: there is no other record.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/provision/environment/names.h"

namespace sluice::provision {

// One resource that exists.
struct Piece {
  Part part = Part::kMachine;
  std::string name, zone;  // zone: "" of what is everywhere; of a bucket its location
  std::string state;       // as its service says it: READY, RUNNING, CREATING …
  std::string type;        // of a TPU, a machine, a disk; a share's tier
  double size_gb = 0;
  std::optional<Mark> mark;
  double created = 0;
  std::string address;  // of a share, and a machine's internal one
  std::optional<double> hourly;
  google::Texts labels;
  std::optional<Slice> slice;  // of a TPU
};

struct Survey {
  // All pieces with the mark of some environment, and those without that have a name of ours.
  std::vector<Piece> pieces;
  std::vector<Slice> slices;             // all of the project, whoever made them: they count against quotas
  std::vector<std::string> unreachable;  // zones and services that did not answer: what is there is not known

  // Nothing when there is none.
  const Piece* find(Part part, const std::string& name) const;
  // Those marked as of this environment, in the order of parts.
  std::vector<Piece> of(const std::string& environment) const;
  // Names of all environments that have something.
  std::vector<std::string> environments() const;
};

// Everything marked in the project. A list that is refused because its service is not enabled is empty.
google::Outcome<Survey> survey(Cloud& cloud);

}  // namespace sluice::provision
