// Compares what is wanted with what exists and plans the steps; sends no request.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/provision/environment/survey.h"

namespace sluice::provision {

enum class Act {
  kSame,    // it exists as wanted
  kCreate,  // (an adopted one is kSame)
  kFill,    // the disk, by a machine that runs the preparation script
  kGrow,    // a disk or a share, in place
  kMark,    // change the end of its time to live, in place
  kDelete,
  kKeep,    // for destroy: it stays, and why
  kDiffers  // it exists but differs; apply leaves it as it is
};
const char* act_name(Act act);
// Returns whether a step sends requests.
bool is_work(Act act);

struct Step {
  Act act = Act::kSame;
  Part part = Part::kMachine;
  std::string name, zone;
  std::string why;               // for people; may be empty
  std::optional<double> hourly;  // the price of what is created, grown, deleted, kept or the same
  double size_gb = 0;            // the size to which it grows
  std::optional<Piece> piece;    // the existing resource
};

struct PlanOptions {
  enum Verb { kApply, kUpdate, kDestroy } verb = kApply;
  std::vector<Part> only;  // empty: all
  std::vector<Part> keep;  // for destroy
  double now = 0;
};

struct Plan {
  std::vector<Step> steps;            // in the order of execution
  std::vector<std::string> problems;  // if there is any, nothing is done
  Mark mark;                          // the mark of new resources
  std::optional<double> hourly;       // of everything that will exist; nothing if a list price is missing
  // The cost until the end of the time to live; nothing without an end.
  std::optional<double> total;
  bool changes() const;
};

// Plans apply and update.
Plan plan_changes(const Settings& settings, const Survey& survey, const PlanOptions& options);
// Plans destroy: everything marked with `environment`, in reverse order.
Plan plan_destroy(const std::string& environment, const std::string& owner, const Survey& survey,
                  const PlanOptions& options);

// Returns the hourly cost of the whole wish at list prices.
std::optional<double> hourly_of(const Settings& settings);
// Returns the end of the environment's life, counted from its first creation (0: never). kInvalidArgument if
// it has passed.
base::Result<double> expiry_of(const Settings& settings, double created, double now);
// Returns a label value that identifies the script of a disk: it changes when the script does.
std::string script_label(const Settings& settings);

// Labels of a disk: its script, and "ready" once the script has filled it.
inline constexpr const char* kScriptLabel = "sluice-script";
inline constexpr const char* kDataLabel = "sluice-data";

}  // namespace sluice::provision
