#include "sluice/google/failure.h"

#include <algorithm>
#include <initializer_list>
#include <regex>

#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"

namespace sluice::google {
namespace {

bool has(const std::string& text, std::string_view piece) { return text.find(piece) != std::string::npos; }

constexpr size_t kLongestSaid = 4000;  // limit of the searched text: std::regex recurses for each character

// Returns the text in lower case, cut to the limit.
std::string searched(const std::string& said) {
  std::string text = said.substr(0, kLongestSaid);
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

bool has_any(const std::string& text, std::initializer_list<std::string_view> pieces) {
  return std::any_of(pieces.begin(), pieces.end(), [&](std::string_view piece) { return has(text, piece); });
}

// Returns whether the zone, or a reservation, has no free capacity. failure_test.cc has the services'
// wordings.
bool says_no_capacity(const std::string& said) {
  const std::string text = searched(said);
  static const std::regex lacks(
      "(not|n't)[a-z ]{0,30} (sufficient|enough|available) [a-z ]{0,30}(capacity|resources)");
  return has_any(text,
                 {"no more capacity", "resource_pool_exhausted", "resource pool exhausted", "out of capacity",
                  "insufficient reserved capacity", "insufficient capacity", "insufficient resources",
                  "no available capacity", "no capacity", "stockout", "stocked out", "out of resources",
                  "vm_min_count_not_reached", "resource_availability", "capacity is not available",
                  "capacity is currently unavailable", "accelerator(s) is currently unavailable",
                  "is currently unavailable in the"}) ||
         std::regex_search(text, lacks);
}

// Returns whether a limit on requests per time was reached, which passes by itself.
bool says_rate(const std::string& said) {
  const std::string text = searched(said);
  static const std::regex per(
      "per[ _]?(minute|second|[0-9]+[ _]?seconds)|perminute|rate limit exceeded|ratelimitexceeded");
  return std::regex_search(text, per);
}

// Reads the quota from these wordings: "Quota limit 'N' has been exceeded. Limit: 0 in region R.", "Quota 'N'
// exceeded. Limit: 24.0 in region R.", "Quota 'N' exhausted. Limit 20800 in region R", "Quota exceeded for
// quota metric 'M' and limit 'N' …", "Insufficient regional quota to satisfy request: resource "N": …".
std::optional<Quota> quota_said(const std::string& whole) {
  const std::string said = whole.substr(0, kLongestSaid), text = searched(whole);
  static const std::regex name(
      "[Qq]uota(?: limit)? ['\"]([^'\"]+)['\"](?: has been| is)? (?:exceeded|exhausted)");
  static const std::regex metric("[Qq]uota exceeded for quota (?:metric|group) '[^']*' and limit '([^']+)'");
  static const std::regex resource("quota to satisfy request: resource \"([^\"]+)\"");
  static const std::regex exceeded_limit("[Ee]xceeded limit '([^']+)'");
  static const std::regex limit("(?:[Ll]imit:? *|quota of ')([0-9][0-9.]*)"), used("[Uu]sage: *([0-9.]+)");
  static const std::regex place("in (?:the )?(region|zone) '?([a-z0-9-]+)");
  std::smatch match;
  if (says_rate(whole)) return std::nullopt;
  Quota quota;
  const bool is_named = std::regex_search(said, match, name) || std::regex_search(said, match, metric) ||
                        std::regex_search(said, match, resource) ||
                        std::regex_search(said, match, exceeded_limit);
  const bool is_quota =
      has(text, "quota") && has_any(text, {"exceeded", "exhausted", "insufficient", "not enough",
                                           "not have enough", "reached", "used up"});
  if (!is_named && !is_quota) return std::nullopt;
  if (is_named) quota.name = match[1];
  const auto figure = [&](const std::regex& pattern) {
    if (!std::regex_search(said, match, pattern)) return -1.0;
    std::string digits = match[1];
    if (digits.back() == '.') digits.pop_back();  // the end of the sentence
    return base::number_of<double>(digits).value_or(-1);
  };
  quota.limit = figure(limit);
  quota.used = figure(used);
  if (std::regex_search(said, match, place)) {
    quota.regional = match[1] == "region";
    quota.place = match[2];
  }
  return quota;
}

std::string quota_text(const Quota& quota) {
  std::string text = base::str("the quota ", quota.name, quota.name.empty() ? "" : " ", "is used up");
  if (quota.limit >= 0) text += base::str(": limit ", quota.limit);
  if (quota.used >= 0) text += base::str(", used ", quota.used);
  if (!quota.place.empty()) text += base::str(" in ", quota.regional ? "region " : "zone ", quota.place);
  return text + ". Ask for more at Quotas in the console, or use another region or capacity";
}

// Adds what the error's details have: google.rpc.QuotaFailure and compute's errorDetails.
void add_details(const Json& error, Quota& quota) {
  const auto take = [&](const Json& info) {
    if (quota.name.empty()) quota.name = text(info, "limitName");
    if (quota.limit < 0 && !at(info, "limit").is_null()) quota.limit = number(info, "limit");
    if (quota.used < 0 && !at(info, "usage").is_null()) quota.used = number(info, "usage");
    for (const char* key : {"dimensions.region", "dimensions.zone"})
      if (quota.place.empty()) quota.place = text(info, key);
  };
  for (const Json& detail : elements(error, "details")) take(at(detail, "metadatas"));
  for (const Json& one : elements(error, "errors"))
    for (const Json& detail : elements(one, "errorDetails")) take(at(detail, "quotaInfo"));
}

bool has_reason(const Json& error, std::string_view reason) {
  for (const Json& detail : elements(error, "details"))
    if (text(detail, "reason") == reason) return true;
  for (const Json& one : elements(error, "errors"))
    if (text(one, "reason") == reason || text(one, "code") == reason) return true;
  return false;
}

Failure made(Kind kind, Code code, int status, const std::string& message) {
  Failure failure(kind, code, message);
  failure.status = status;
  return failure;
}

Failure of_forbidden(const Json& error, const std::string& said, const std::string& what,
                     const std::string& project, const std::string& service) {
  if (has_reason(error, "SERVICE_DISABLED") || has_reason(error, "accessNotConfigured") ||
      has(said, "has not been used in project") || has(said, "it is disabled")) {
    Failure failure =
        made(Kind::kApiDisabled, Code::kFailedPrecondition, 403,
             base::str(what, ": the project ", project, " has not enabled ", service,
                       ". Enable it: gcloud services enable ", service, " --project=", project));
    failure.service = service;
    return failure;
  }
  return made(Kind::kForbidden, Code::kPermissionDenied, 403, base::str(what, ": not allowed: ", said));
}

Failure of_status(int status, const Json& error, const std::string& said, const std::string& what) {
  const std::string name = text(error, "status");
  const std::string message = base::str(what, ": status ", status, ": ", said);
  if (status == 401)
    return made(Kind::kCredentials, Code::kPermissionDenied, status,
                base::str(what, ": the credentials are not taken: ", said,
                          ". Make new ones: gcloud auth application-default login"));
  if (status == 404 || status == 410) return made(Kind::kNotFound, Code::kNotFound, status, message);
  if (status == 409 && (name == "ALREADY_EXISTS" || has(said, "already exists") || has(said, "already own") ||
                        has_reason(error, "alreadyExists") || has_reason(error, "conflict")))
    return made(Kind::kExists, Code::kAlreadyExists, status, message);
  if (status == 409 || status == 412 || name == "FAILED_PRECONDITION" ||
      has_reason(error, "resourceInUseByAnotherResource") || has_reason(error, "resourceNotReady"))
    return made(Kind::kWrongState, Code::kFailedPrecondition, status, message);
  if (status == 408 || status == 429 || status >= 500)
    return made(Kind::kPassing, Code::kUnavailable, status, message);
  if (status >= 400) return made(Kind::kInvalid, Code::kInvalidArgument, status, message);
  return made(Kind::kOther, Code::kUnknown, status, message);
}

}  // namespace

Failure::Failure(const Error& error) : Error(error) {
  switch (error.code()) {
    case Code::kCancelled:
      kind = Kind::kCancelled;
      break;
    case Code::kInvalidArgument:
      kind = Kind::kInvalid;
      break;
    case Code::kNotFound:
      kind = Kind::kNotFound;
      break;
    case Code::kAlreadyExists:
      kind = Kind::kExists;
      break;
    case Code::kPermissionDenied:
      kind = Kind::kForbidden;
      break;
    case Code::kFailedPrecondition:
      kind = Kind::kWrongState;
      break;
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
      kind = Kind::kPassing;
      break;
    default:
      kind = Kind::kOther;
  }
}

Failure failure_of_answer(int status, const std::string& body, const std::string& what,
                          const std::string& project, const std::string& service) {
  const Json json = base::parse_json(body);
  const Json& error = at(json, "error");
  std::string said = text(error, "message");
  if (said.empty()) said = body.substr(0, 300);
  if (says_no_capacity(said))
    return made(Kind::kNoCapacity, Code::kResourceExhausted, status, base::str(what, ": ", said));
  if (says_rate(said) && (status == 429 || status == 403))
    return made(Kind::kPassing, Code::kUnavailable, status, base::str(what, ": status ", status, ": ", said));
  if (auto quota = quota_said(said); quota && (status == 429 || status == 403 || status == 400)) {
    add_details(error, *quota);
    Failure failure =
        made(Kind::kQuota, Code::kResourceExhausted, status, base::str(what, ": ", quota_text(*quota)));
    failure.quota = *quota;
    return failure;
  }
  if (status == 403) return of_forbidden(error, said, what, project, service);
  return of_status(status, error, said, what);
}

Failure failure_of_operation(const Json& error, const std::string& what) {
  // Compute's list usually has one error; google.rpc.Status is one. Among several, the error that names what
  // is lacking counts.
  const auto several = elements(error, "errors");
  const auto telling = std::find_if(several.begin(), several.end(), [](const Json& each) {
    return says_no_capacity(text(each, "code") + " " + text(each, "message")) ||
           text(each, "code") == "QUOTA_EXCEEDED" || quota_said(text(each, "message"));
  });
  const Json& one = several.empty() ? error : telling == several.end() ? several.front() : *telling;
  const std::string code = text(one, "code"), said = text(one, "message");
  const std::string message = base::str(what, ": ", said.empty() ? one.dump() : said);
  if (says_no_capacity(code + " " + said)) return {Kind::kNoCapacity, Code::kResourceExhausted, message};
  if (auto quota = quota_said(said); quota || code == "QUOTA_EXCEEDED") {
    Failure failure(Kind::kQuota, Code::kResourceExhausted, message);
    failure.quota = quota.value_or(Quota{});
    add_details(error, failure.quota);
    return failure;
  }
  if (has(code, "ALREADY_EXISTS") || code == "6") return {Kind::kExists, Code::kAlreadyExists, message};
  if (has(code, "NOT_FOUND") || code == "5") return {Kind::kNotFound, Code::kNotFound, message};
  if (code == "7" || has(code, "PERMISSION")) return {Kind::kForbidden, Code::kPermissionDenied, message};
  if (says_rate(said)) return {Kind::kPassing, Code::kUnavailable, message};
  // Code 8 without quota words is the zone's capacity; 9 is a reservation's, or something that is not ready.
  if (code == "9" && !has(searched(said), "capacity"))
    return {Kind::kWrongState, Code::kFailedPrecondition, message};
  if (code == "8" || code == "9") {
    if (has(said, "state")) return {Kind::kWrongState, Code::kFailedPrecondition, message};
    return {Kind::kNoCapacity, Code::kResourceExhausted, message};
  }
  if (code == "3" && has(said, "state")) return {Kind::kWrongState, Code::kFailedPrecondition, message};
  if (code == "3") return {Kind::kInvalid, Code::kInvalidArgument, message};
  if (has(code, "NOT_READY") || has(code, "IN_USE"))
    return {Kind::kWrongState, Code::kFailedPrecondition, message};
  if (code == "1") return {Kind::kCancelled, Code::kCancelled, message};
  return {Kind::kOther, Code::kInternal, message};
}

}  // namespace sluice::google
