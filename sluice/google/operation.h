// Long operations: those of google.longrunning (tpu, file, serviceusage) and those of compute.
#pragma once

#include <functional>
#include <string>

#include "sluice/google/api.h"

namespace sluice::google {

struct Operation {
  Service service = Service::kTpu;
  std::string path;  // where it can be asked for: "/v2/projects/…/operations/o"; "": nothing to wait for
  bool done = false;
  Json error = nullptr;     // of a done one that failed
  Json response = nullptr;  // of google.longrunning
  std::string what;         // as the call that began it
};

// Of the answer to a mutation. A dry run's {} is a done operation. `version`: "/v2" or "/v2alpha1" of tpu.
Operation operation_of(Service service, const std::string& version, const Json& answer,
                       const std::string& what);

struct Wait {
  double timeout = 3600;  // seconds
  double first = 1;       // seconds before the second look; grows to …
  double longest = 10;    // … this
  const std::atomic<bool>* cancelled = nullptr;
  // Asked after each look: true ends the waiting early, as a success (the resource is there although its
  // operation is not done).
  std::function<bool()> enough;
};
// With first and longest no longer than those of SLUICE_CLOUD_RETRY.
Wait default_wait(const Api& api);

// Waits until it is done. kPassing with kDeadlineExceeded when it took longer: the resource must be looked
// at, since an operation is never the last word on it. The same holds for a done one that failed.
Done wait(Api& api, Operation operation, const Wait& how);

}  // namespace sluice::google
