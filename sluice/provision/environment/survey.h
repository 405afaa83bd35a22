// The existing resources of environments, by the cloud's own lists: there is no other record.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/provision/environment/names.h"
#include "sluice/provision/gaps.h"

namespace sluice::provision {

// A resource that exists.
struct Piece {
  Part part = Part::kMachine;
  std::string name, zone;  // zone: "" if global; the location of a bucket
  std::string state;       // in the service's words: READY, RUNNING, CREATING …
  std::string type;        // the type of a TPU, machine or disk; a share's tier
  double size_gb = 0;
  std::optional<Mark> mark;
  double created = 0;
  std::string address;  // of a share; the internal one of a machine
  std::optional<double> hourly;
  google::Texts labels;
  std::optional<Slice> slice;  // for a TPU
};

struct Survey {
  // All pieces with the mark of an environment, and unmarked pieces whose name has our prefix.
  std::vector<Piece> pieces;
  std::vector<Slice> slices;  // all of the project, also other people's: they count against quotas
  Gaps gaps;                  // `unreachable` has zones without their project

  // Returns nullptr if there is none.
  const Piece* find(Part part, const std::string& name) const;
  // Returns the pieces marked with this environment, in the order of parts.
  std::vector<Piece> of(const std::string& environment) const;
  // Returns the names of all environments that have a piece.
  std::vector<std::string> environments() const;
};

// Lists everything marked in the project. If a service is not enabled, its list is empty and its name is in
// `gaps.not_enabled`.
google::Outcome<Survey> survey(Cloud& cloud);

}  // namespace sluice::provision
