// Errors as the callers of a plugin get them.
#pragma once

#include "sluice/pjrt/c_api.h"
#include "tests/pjrt/pod/wire.h"

namespace emulated_pod {

// What is behind a PJRT_Error*.
struct ErrorObject {
  Error error;
};

inline sluice::pjrt::c::PJRT_Error* make_error(Error error) {
  return reinterpret_cast<sluice::pjrt::c::PJRT_Error*>(new ErrorObject{std::move(error)});
}

// Null for a good status.
inline sluice::pjrt::c::PJRT_Error* make_error(const Status& status) {
  return status ? nullptr : make_error(status.error());
}

// The status of an error that make_error made; takes it.
inline Status take_status(sluice::pjrt::c::PJRT_Error* error) {
  if (error == nullptr) return {};
  auto* object = reinterpret_cast<ErrorObject*>(error);
  Status status = tl::unexpected<Error>(std::move(object->error));
  delete object;
  return status;
}

}  // namespace emulated_pod
