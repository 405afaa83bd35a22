// Sluice's errors as LibTorch's: with the device, code that catches c10::Error catches them too.
#pragma once

#include <c10/util/Exception.h>

#include <utility>

#include "sluice/base/error.h"

namespace sluice::device {

// An exception of type Kind (sluice::Error or derived from it) that is also a c10::Error, without a
// backtrace.
template <typename Kind>
class TorchError final : public Kind, public c10::Error {
 public:
  explicit TorchError(Kind error) : Kind(std::move(error)), c10::Error(std::string(Kind::what())) {}
  const char* what() const noexcept override { return Kind::what(); }
};

// Makes sluice::throw_error() throw a TorchError<sluice::Error> from now on.
inline void throw_torch_errors() {
  set_error_thrower([](const sluice::Error& error) { throw TorchError<sluice::Error>(error); });
}

}  // namespace sluice::device
