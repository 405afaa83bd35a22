// Who owns a resource. There is no state file: each resource carries the mark itself, in labels if its kind
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
// The prefix of names, "sluice-ENV-ROLE", for resources that have no labels.
inline constexpr const char* kNamePrefix = "sluice-";

struct Mark {
  std::string environment;  // never ""; a slice of `sluice tpu create NAME` without --env has "tpu-NAME"
  std::string owner;        // in the form of a label: lower case, digits, - and _
  double created = 0;       // seconds since 1970; 0: unknown
  double expires = 0;       // 0: never
};

// Returns {sluice-env: …, sluice-owner: …, sluice-created: "20261125t030000z", sluice-expires: …}.
google::Texts labels_of(const Mark& mark);
// Returns nothing if there is no sluice-env: Sluice did not make it.
std::optional<Mark> mark_of_labels(const google::Texts& labels);

// Converts a mark to one line of JSON with the same keys, for `description`, and back; nothing if it is not
// ours.
std::string description_of(const Mark& mark);
std::optional<Mark> mark_of_description(const std::string& description);

enum class Whose {
  kOurs,              // belongs to this environment
  kOtherEnvironment,  // made by Sluice for another environment
  kForeign,           // made by somebody else or by hand: never changed and never deleted
};
Whose whose(const std::optional<Mark>& mark, const std::string& environment);

// Checks an existing resource with the name that we want: no error if it is ours (adopt it), else an error
// that says who owns it and what to do. `what`: "the node x in us-central1-a".
base::Status may_adopt(const std::optional<Mark>& mark, const std::string& environment,
                       const std::string& what);

// Makes a label's value from any text: lower case, - for characters that are not allowed, at most 63
// characters.
std::string label_value(const std::string& text);
// Returns the user at this machine as a label's value ($USER, else the system's name of the user).
std::string default_owner();

// Converts a time to "20261125t030000z" and back (0: not a time).
std::string label_time(double seconds);
double time_of_label(const std::string& label);

// Reads a --ttl, a span from now or a time ("2026-11-26T08:00:00Z"), as seconds since 1970. kInvalidArgument
// if it has passed.
base::Result<double> parse_expiry(const std::string& text, double now, const std::string& flag);

// Checks the rule for resource names: lower-case letters, digits and -, beginning with a letter, not ending
// with -, at most `longest` characters.
base::Status check_name(const std::string& name, const std::string& what, int longest = 63);
// Check a zone (region and letter: us-central1-a), a list of zones (may be empty, or {"any"} only), and a
// project (its id or its number).
base::Status check_zone(const std::string& zone);
base::Status check_zones(const std::vector<std::string>& zones);
base::Status check_project_id(const std::string& project);

}  // namespace sluice::provision
