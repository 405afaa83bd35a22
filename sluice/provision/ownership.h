// Whose a resource is. There is no state file: each thing carries the mark itself, in labels where its kind
// has them, else as JSON in its description.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/google/json.h"

namespace sluice::provision {

inline constexpr const char* kEnvironmentLabel = "sluice-env";
inline constexpr const char* kOwnerLabel = "sluice-owner";
inline constexpr const char* kCreatedLabel = "sluice-created";
inline constexpr const char* kExpiresLabel = "sluice-expires";
// Names of what has no labels begin so: "sluice-ENV-ROLE".
inline constexpr const char* kNamePrefix = "sluice-";

struct Mark {
  std::string
      environment;     // "" never; a slice of `sluice tpu create NAME` without --env is one of "tpu-NAME"
  std::string owner;   // as a label allows it: lower case, digits, - and _
  double created = 0;  // seconds since 1970; 0: not said
  double expires = 0;  // 0: never
};

// {sluice-env: …, sluice-owner: …, sluice-created: "20261125t030000z", sluice-expires: …}.
google::Texts labels_of(const Mark& mark);
// Nothing when there is no sluice-env: not made by Sluice.
std::optional<Mark> mark_of_labels(const google::Texts& labels);

// One line of JSON with the same keys, for `description`; and back, nothing when it is none of ours.
std::string description_of(const Mark& mark);
std::optional<Mark> mark_of_description(const std::string& description);

enum class Whose {
  kOurs,              // of this environment
  kOtherEnvironment,  // made by Sluice, for another one
  kForeign,           // made by somebody else, or by hand: never changed and never deleted
};
Whose whose(const std::optional<Mark>& mark, const std::string& environment);

// An existing resource of a name that we want: nothing when it is ours (adopt it), else the error that says
// whose it is and what to do. `what`: "the node x in us-central1-a".
base::Status may_adopt(const std::optional<Mark>& mark, const std::string& environment,
                       const std::string& what);

// A label's value of any text: lower case, what is not allowed becomes -, at most 63 characters.
std::string label_value(const std::string& text);
// The user at this machine as a label's value ($USER, else the system's name for them).
std::string default_owner();

// "20261125t030000z" and back (0: it is none).
std::string label_time(double seconds);
double time_of_label(const std::string& label);

// A --ttl: a span from now, or a time ("2026-11-26T08:00:00Z"), as seconds since 1970. kInvalidArgument when
// it has passed.
base::Result<double> parse_expiry(const std::string& text, double now, const std::string& flag);

// What the rule for resource names says of this one: lower-case letters, digits and -, beginning with a
// letter, not ending with -, at most `longest` characters.
base::Status check_name(const std::string& name, const std::string& what, int longest = 63);
// The same of a zone, a region and a letter: us-central1-a; of a list of them, which may be {"any"} alone, or
// empty; and of a project: its id or its number.
base::Status check_zone(const std::string& zone);
base::Status check_zones(const std::vector<std::string>& zones);
base::Status check_project_id(const std::string& project);

}  // namespace sluice::provision
