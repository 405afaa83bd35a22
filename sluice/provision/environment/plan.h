// From what is wanted and what exists to what is to be done: no request is sent here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/provision/environment/survey.h"

namespace sluice::provision {

enum class Act {
  kSame,    // it is there as wanted
  kCreate,  // (an adopted one is kSame)
  kFill,    // the disk, by a machine that runs the preparation script
  kGrow,    // a disk or a share, in place
  kMark,    // it gets another end of its time to live, in place
  kDelete,
  kKeep,    // of destroy: it stays, and why
  kDiffers  // it is there, not as wanted; apply leaves it so
};
const char* act_name(Act act);
// Whether a step asks the cloud for something.
bool is_work(Act act);

struct Step {
  Act act = Act::kSame;
  Part part = Part::kMachine;
  std::string name, zone;
  std::string why;               // for people; may be empty
  std::optional<double> hourly;  // of what is created, grown, deleted, kept or the same
  double size_gb = 0;            // to which it grows
  std::optional<Piece> piece;    // that exists
};

struct PlanOptions {
  enum Verb { kApply, kUpdate, kDestroy } verb = kApply;
  std::vector<Part> only;  // none: all
  std::vector<Part> keep;  // of destroy
  double now = 0;
};

struct Plan {
  std::vector<Step> steps;            // in the order in which they are done
  std::vector<std::string> problems;  // with any of these nothing is done
  Mark mark;                          // what new resources are marked with
  std::optional<double> hourly;       // of all that will be there; nothing where a list price is missing
  // Until the end of the time to live; nothing without one.
  std::optional<double> total;
  bool changes() const;
};

// What apply and update do.
Plan plan_changes(const Settings& settings, const Survey& survey, const PlanOptions& options);
// What destroy does, in the reverse order: of everything marked as `environment`'s.
Plan plan_destroy(const std::string& environment, const std::string& owner, const Survey& survey,
                  const PlanOptions& options);

// What all of the wish costs an hour by list prices.
std::optional<double> hourly_of(const Settings& settings);
// The end of its life, from when it was first made (0: never). kInvalidArgument when it has passed.
base::Result<double> expiry_of(const Settings& settings, double created, double now);
// What is known of the script in a disk's label: a change of it shows.
std::string script_label(const Settings& settings);

// Labels of a disk: its script, and "ready" when that has filled it.
inline constexpr const char* kScriptLabel = "sluice-script";
inline constexpr const char* kDataLabel = "sluice-data";

}  // namespace sluice::provision
