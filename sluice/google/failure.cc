#include "sluice/google/failure.h"

#include <regex>

#include "sluice/base/number.h"
#include "sluice/base/parse_json.h"
#include "sluice/base/strings.h"

namespace sluice::google {
namespace {

bool has(const std::string& text, std::string_view piece) { return text.find(piece) != std::string::npos; }

bool says_no_capacity(const std::string& said) {
  return has(said, "no more capacity") || has(said, "ZONE_RESOURCE_POOL_EXHAUSTED") ||
         has(said, "Insufficient reserved capacity") || has(said, "Insufficient capacity") ||
         has(said, "does not have enough resources available") || has(said, "STOCKOUT");
}

// Of the two wordings: "Quota limit 'N' has been exceeded. Limit: 0 in region R." and "Quota 'N' exceeded.
// Limit: 24.0 in region R." Limits on requests a minute pass by themselves and are no such quota.
std::optional<Quota> quota_said(const std::string& said) {
  static const std::regex name("[Qq]uota(?: limit)? '([^']+)'(?: has been)? exceeded");
  static const std::regex limit("Limit: *([0-9.]+)"), used("[Uu]sage: *([0-9.]+)");
  static const std::regex place("in (region|zone) ([a-z0-9-]+)");
  std::smatch match;
  if (has(said, "per minute") || !std::regex_search(said, match, name)) return std::nullopt;
  Quota quota;
  quota.name = match[1];
  const auto figure = [&](const std::regex& pattern) {
    if (!std::regex_search(said, match, pattern)) return -1.0;
    std::string digits = match[1];
    if (digits.back() == '.') digits.pop_back();  // the sentence's
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
  std::string text = base::str("the quota ", quota.name, " is used up");
  if (quota.limit >= 0) text += base::str(": limit ", quota.limit);
  if (quota.used >= 0) text += base::str(", used ", quota.used);
  if (!quota.place.empty()) text += base::str(" in ", quota.regional ? "region " : "zone ", quota.place);
  return text + ". Ask for more at Quotas in the console, or use another region or capacity";
}

// What the error's details add: of google.rpc.QuotaFailure and compute's errorDetails.
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
      has(said, "has not been used in project") || has(said, "it is disabled"))
    return made(Kind::kApiDisabled, Code::kFailedPrecondition, 403,
                base::str(what, ": the project ", project, " has not enabled ", service,
                          ". Enable it: gcloud services enable ", service, " --project=", project));
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

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::kOther:
      return "other";
    case Kind::kNoCapacity:
      return "no capacity";
    case Kind::kQuota:
      return "quota";
    case Kind::kForbidden:
      return "forbidden";
    case Kind::kApiDisabled:
      return "service not enabled";
    case Kind::kNotFound:
      return "not found";
    case Kind::kExists:
      return "exists";
    case Kind::kWrongState:
      return "wrong state";
    case Kind::kInvalid:
      return "invalid";
    case Kind::kCredentials:
      return "credentials";
    case Kind::kPassing:
      return "no answer";
    case Kind::kCancelled:
      return "cancelled";
  }
  return "?";
}

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
  // Compute's list has one error as a rule; google.rpc.Status is one.
  const auto several = elements(error, "errors");
  const Json& one = several.empty() ? error : several.front();
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
  // Code 8 without words of quota is the zone's capacity; 9 a reservation's.
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
