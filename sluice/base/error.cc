#include "sluice/base/error.h"

#include <atomic>
#include <stdexcept>

namespace sluice {

namespace {

class StandardError final : public Error, public std::runtime_error {
 public:
  explicit StandardError(const Error& error) : Error(error), std::runtime_error(error.what()) {}
  const char* what() const noexcept override { return Error::what(); }
};

std::atomic<ErrorThrower> thrower = nullptr;

}  // namespace

void set_error_thrower(ErrorThrower own) { thrower = own; }

void throw_error(const Error& error) {
  if (const ErrorThrower own = thrower.load()) own(error);
  throw StandardError(error);
}

void throw_error(Code code, const std::string& message) { throw_error(Error(code, message)); }

const char* code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "OK";
    case Code::kCancelled:
      return "CANCELLED";
    case Code::kUnknown:
      return "UNKNOWN";
    case Code::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case Code::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case Code::kNotFound:
      return "NOT_FOUND";
    case Code::kAlreadyExists:
      return "ALREADY_EXISTS";
    case Code::kPermissionDenied:
      return "PERMISSION_DENIED";
    case Code::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case Code::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case Code::kAborted:
      return "ABORTED";
    case Code::kOutOfRange:
      return "OUT_OF_RANGE";
    case Code::kUnimplemented:
      return "UNIMPLEMENTED";
    case Code::kInternal:
      return "INTERNAL";
    case Code::kUnavailable:
      return "UNAVAILABLE";
    case Code::kDataLoss:
      return "DATA_LOSS";
  }
  return "UNKNOWN";
}

}  // namespace sluice
