// Errors, as users and rooms see them.
#pragma once

#include <string>
#include <utility>

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

// The one error of the public interface. Rooms return it inside base::Result and throw it at the border with
// throw_error(): the thrown object is an Error and a std::exception, and in programs with the device also
// LibTorch's own c10::Error. what() says what was expected, what was found and what to do.
class Error {
 public:
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  virtual ~Error() = default;
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  Error(Error&&) = default;
  Error& operator=(Error&&) = default;

  Code code() const { return code_; }
  virtual const char* what() const noexcept { return message_.c_str(); }

 private:
  Code code_;
  std::string message_;
};

[[noreturn]] void throw_error(const Error& error);
[[noreturn]] void throw_error(Code code, const std::string& message);

// The function that throw_error() calls instead of throwing a std::runtime_error. It must throw. Any thread
// may call it.
using ErrorThrower = void (*)(const Error& error);
void set_error_thrower(ErrorThrower thrower);

}  // namespace sluice
SLUICE_API_END
