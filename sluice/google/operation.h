// Long operations of google.longrunning (tpu, file, serviceusage) and of compute.
#pragma once

#include <functional>
#include <string>

#include "sluice/google/api.h"

namespace sluice::google {

struct Operation {
  Service service = Service::kTpu;
  std::string path;  // the path of the operation: "/v2/projects/…/operations/o"; "": nothing to wait for
  bool done = false;
  Json error = nullptr;     // if done and failed
  Json response = nullptr;  // only google.longrunning
  std::string what;         // as in the call that began it
};

// Reads the answer to a mutation. A dry run's {} is a done operation. `version`: "/v2" or "/v2alpha1" of tpu.
Operation operation_of(Service service, const std::string& version, const Json& answer,
                       const std::string& what);

struct Wait {
  double timeout = 3600;  // seconds
  double first = 1;       // seconds before the second look; grows up to …
  double longest = 10;    // … this
  const std::atomic<bool>* cancelled = nullptr;
  // Called after each look: true ends the wait early, as a success (the resource exists although its
  // operation is not done).
  std::function<bool()> enough;
};
// Returns waits whose first and longest are at most those of SLUICE_CLOUD_RETRY.
Wait default_wait(const Api& api);

// Waits until the operation is done. kPassing with kDeadlineExceeded on a timeout. The caller must then look
// at the resource, since an operation never decides; the same holds for an operation that failed.
Done wait(Api& api, Operation operation, const Wait& how);

}  // namespace sluice::google
