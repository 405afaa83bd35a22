// What an error of Google's services means, so that a caller can decide what to do about it.
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
  kNoCapacity,   // the zone has none of these free now: another zone may
  kQuota,        // the project may not have (more of) these; Failure::quota says which
  kForbidden,    // the caller may not; trying elsewhere does not help
  kApiDisabled,  // the project has not enabled the service; the message has the command that does
  kNotFound,     // the resource, its zone or its project
  kExists,       // there is one of that name: look whose it is
  kWrongState,   // not while it is created, deleted, preempted, used …
  kInvalid,      // the request is wrong: said as the service says it
  kCredentials,  // none, or the service does not take them
  kPassing,      // the service did not answer for as long as the retry policy tries
  kCancelled,
};

const char* kind_name(Kind kind);

struct Quota {
  std::string name;   // "TPUV6EPreemptiblePerProjectPerRegionForTPUAPI"
  double limit = -1;  // -1: not said
  double used = -1;
  std::string place;  // a region or a zone; "": not said
  bool regional = true;
};

// A sluice::Error (so SLUICE_TRY passes it on as one) that knows what it means.
class Failure : public Error {
 public:
  Failure(Kind kind, Code code, std::string message) : Error(code, std::move(message)), kind(kind) {}
  // An error of somewhere else.
  Failure(const Error& error);  // NOLINT: implicit, as a Result's error becomes an Outcome's

  Kind kind = Kind::kOther;
  int status = 0;  // of HTTP; 0 where there was no answer, or it is an operation's
  Quota quota;     // of kQuota
  // The request was sent before, and that answer was lost: a mutation may have happened.
  bool after_lost = false;
};

// A value, or the Failure that says why there is none.
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

// Of an HTTP answer that is none of 2xx. `what` begins the message ("creating the node x in z"); `project`
// and `service` ("tpu.googleapis.com") are for the commands that it names.
Failure failure_of_answer(int status, const std::string& body, const std::string& what,
                          const std::string& project, const std::string& service);
// Of an operation's error: {code, message} of google.rpc.Status, or compute's {errors: [{code, message}]}.
Failure failure_of_operation(const Json& error, const std::string& what);

}  // namespace sluice::google

// As SLUICE_TRY and SLUICE_OK, in a function that returns an Outcome: the Failure stays whole.
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
