#include "sluice/provision/ownership.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <regex>

#include "sluice/base/clock.h"
#include "sluice/base/environment.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/lower_case.h"

namespace sluice::provision {

google::Texts labels_of(const Mark& mark) {
  google::Texts labels = {{kEnvironmentLabel, mark.environment}};
  if (!mark.owner.empty()) labels[kOwnerLabel] = mark.owner;
  if (mark.created > 0) labels[kCreatedLabel] = label_time(mark.created);
  if (mark.expires > 0) labels[kExpiresLabel] = label_time(mark.expires);
  return labels;
}

std::optional<Mark> mark_of_labels(const google::Texts& labels) {
  const auto value = [&](const char* name) {
    const auto found = labels.find(name);
    return found == labels.end() ? std::string() : found->second;
  };
  if (value(kEnvironmentLabel).empty()) return std::nullopt;
  return Mark{value(kEnvironmentLabel), value(kOwnerLabel), time_of_label(value(kCreatedLabel)),
              time_of_label(value(kExpiresLabel))};
}

std::string description_of(const Mark& mark) { return google::Json(labels_of(mark)).dump(); }

std::optional<Mark> mark_of_description(const std::string& description) {
  const auto json = base::parse_json(description);
  if (!json.is_object()) return std::nullopt;
  google::Texts labels;
  for (const auto& [name, value] : json.items())
    if (value.is_string()) labels[name] = value.get<std::string>();
  return mark_of_labels(labels);
}

Whose whose(const std::optional<Mark>& mark, const std::string& environment) {
  if (!mark) return Whose::kForeign;
  return mark->environment == environment ? Whose::kOurs : Whose::kOtherEnvironment;
}

base::Status may_adopt(const std::optional<Mark>& mark, const std::string& environment,
                       const std::string& what) {
  switch (whose(mark, environment)) {
    case Whose::kOurs:
      return {};
    case Whose::kOtherEnvironment:
      return base::fail(Code::kAlreadyExists, what, " exists and belongs to the environment '",
                        mark->environment, mark->owner.empty() ? "'" : "' of " + mark->owner, ", not to '",
                        environment, "': choose another name");
    case Whose::kForeign:
      return base::fail(Code::kAlreadyExists, what,
                        " exists and was not made by Sluice (it has no label sluice-env): choose another "
                        "name, or delete it where it was made");
  }
  return {};
}

std::string label_value(const std::string& text) {
  std::string value;
  for (const char c : text.substr(0, 63)) {
    const char lower = base::lower_case(c);
    const bool allowed = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9') || lower == '_';
    value += allowed ? lower : '-';
  }
  return value;
}

std::string default_owner() {
  if (const auto user = base::environment("USER")) return label_value(*user);
  const passwd* entry = getpwuid(getuid());
  return entry != nullptr ? label_value(entry->pw_name) : base::str("uid-", getuid());
}

std::string label_time(double seconds) {
  std::string text = google::time_of_seconds(seconds);
  text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == '-' || c == ':'; }),
             text.end());
  return label_value(text);
}

double time_of_label(const std::string& label) {
  std::tm tm{};
  if (std::sscanf(label.c_str(), "%4d%2d%2dt%2d%2d%2dz", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
                  &tm.tm_min, &tm.tm_sec) != 6)
    return 0;
  tm.tm_year -= 1900;
  tm.tm_mon -= 1;
  return static_cast<double>(timegm(&tm));
}

base::Result<double> parse_expiry(const std::string& text, double now, const std::string& flag) {
  double expires = google::seconds_of_time(text);
  if (expires == 0) {
    const auto span = base::parse_span(text, flag);
    if (!span)
      return base::fail(Code::kInvalidArgument, span.error().what(), ", or a time such as ",
                        google::time_of_seconds(now + 7200));
    expires = now + *span;
  }
  if (expires <= now)
    return base::fail(Code::kInvalidArgument, flag, " ", text, ": this time has passed; now is ",
                      google::time_of_seconds(now));
  return expires;
}

base::Status check_name(const std::string& name, const std::string& what, int longest) {
  static const std::regex rule("[a-z]([-a-z0-9]*[a-z0-9])?");
  if (std::regex_match(name, rule) && static_cast<int>(name.size()) <= longest) return {};
  return base::fail(Code::kInvalidArgument, what, " '", name,
                    "': a name has lower-case letters, digits and -, begins with a letter, does not end "
                    "with - and has at most ",
                    longest, " characters");
}

base::Status check_zone(const std::string& zone) {
  static const std::regex rule("[a-z]+(-[a-z0-9]+){2,}");
  if (std::regex_match(zone, rule)) return {};
  return base::fail(Code::kInvalidArgument, "'", zone,
                    "' is not a zone: a zone is a region and a letter, us-central1-a");
}

base::Status check_zones(const std::vector<std::string>& zones) {
  if (zones == std::vector<std::string>{"any"}) return {};
  for (const std::string& zone : zones) SLUICE_OK(check_zone(zone));
  return {};
}

base::Status check_project_id(const std::string& project) {
  // example.com:name is a project of an organization's domain.
  static const std::regex rule("([a-z0-9.-]+:)?[a-z0-9]([-a-z0-9]*[a-z0-9])?");
  if (std::regex_match(project, rule)) return {};
  return base::fail(
      Code::kInvalidArgument, "'", project,
      "' is not a project: expected its id, of lower-case letters, digits and -, or its number; gcloud "
      "projects list shows them");
}

}  // namespace sluice::provision
