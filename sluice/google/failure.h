// The kinds of errors of Google's services, so that a caller can decide what to do about one.
#pragma once

#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "sluice/base/result.h"
#include "sluice/google/json.h"

namespace sluice::google {

enum class Kind {
  kOther,
  kNoCapacity,   // the zone has no free capacity now: another zone may
  kQuota,        // the project may not have (more of) these; Failure::quota names the limit
  kForbidden,    // the caller has no permission; trying elsewhere does not help
  kApiDisabled,  // the project has not enabled the service; the message has the command
  kNotFound,     // the resource, its zone or its project does not exist
  kExists,       // the name is taken: check who owns it
  kWrongState,   // not possible while it is created, deleted, preempted, used …
  kInvalid,      // the request is wrong; the message is the service's
  kCredentials,  // there are none, or the service refuses them
  kPassing,      // no answer for as long as the retry policy tries
  kCancelled,
};

struct Quota {
  std::string name;   // "TPUV6EPreemptiblePerProjectPerRegionForTPUAPI"
  double limit = -1;  // -1: unknown
  double used = -1;
  std::string place;  // a region or a zone; "": unknown
  bool regional = true;
};

// A sluice::Error (so SLUICE_TRY passes it on as one) with its kind.
class Failure : public Error {
 public:
  Failure(Kind kind, Code code, std::string message) : Error(code, std::move(message)), kind(kind) {}
  // Converts an error from another part.
  Failure(const Error& error);  // NOLINT: implicit, as a Result's error becomes an Outcome's

  Kind kind = Kind::kOther;
  int status = 0;       // of HTTP; 0 without an answer, or for an operation's error
  Quota quota;          // for kQuota
  std::string service;  // for kApiDisabled: "tpu.googleapis.com"
  // The request was sent before and the answer was lost: a mutation may have happened.
  bool after_lost = false;
};

// A value, or the Failure that explains its absence.
template <typename T>
class [[nodiscard]] Outcome : public tl::expected<T, Failure> {
 public:
  using tl::expected<T, Failure>::expected;
};
using Done = Outcome<void>;

template <typename... Pieces>
tl::unexpected<Failure> failed(Kind kind, Code code, const Pieces&... pieces) {
  return tl::unexpected<Failure>(Failure(kind, code, base::str(pieces...)));
}

// Returns the failure for an HTTP answer other than 2xx. `what` begins the message ("creating the node x in
// z"); `project` and `service` ("tpu.googleapis.com") are for the commands in it.
Failure failure_of_answer(int status, const std::string& body, const std::string& what,
                          const std::string& project, const std::string& service);
// Returns the failure for an operation's error: {code, message} of google.rpc.Status, or compute's {errors:
// [{code, message}]}.
Failure failure_of_operation(const Json& error, const std::string& what);

}  // namespace sluice::google

// Like SLUICE_TRY and SLUICE_OK, for a function that returns an Outcome: they keep the whole Failure.
#define GOOGLE_TRY(target, expression) \
  GOOGLE_TRY_IMPL(SLUICE_JOIN(google_outcome_, __LINE__), target, expression)
#define GOOGLE_TRY_IMPL(outcome, target, expression)                               \
  auto outcome = (expression);                                                     \
  if (!outcome) return tl::unexpected<::sluice::google::Failure>(outcome.error()); \
  target = std::move(*outcome)
#define GOOGLE_OK(expression)                                                                            \
  do {                                                                                                   \
    if (auto done = (expression); !done) return tl::unexpected<::sluice::google::Failure>(done.error()); \
  } while (false)
