// Errors, as users and rooms see them.
#pragma once

#include <stdexcept>
#include <string>

#include "sluice/base/export.h"

SLUICE_API_BEGIN
namespace sluice {

// The canonical codes (numbered as gRPC, absl and PJRT number them).
enum class Code {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
};

// "INVALID_ARGUMENT" and so on.
const char* code_name(Code code);

// The one exception of the public interface. Rooms return it inside base::Result and throw it at the border.
// what() says what was expected, what was found and what to do.
class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

}  // namespace sluice
SLUICE_API_END
