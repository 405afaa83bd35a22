#include "sluice/google/operation.h"

#include <algorithm>

namespace sluice::google {
namespace {

void take(Operation& operation, const Json& answer) {
  if (operation.service == Service::kCompute) {
    operation.done = text(answer, "status") == "DONE";
  } else {
    operation.done = truth(answer, "done");
    operation.response = at(answer, "response");
  }
  operation.error = at(answer, "error");
}

// Returns "/compute/v1/projects/…" of a URL, for any host.
std::string path_of_link(const std::string& link) {
  const auto scheme = link.find("://");
  const auto slash = link.find('/', scheme == std::string::npos ? 0 : scheme + 3);
  return slash == std::string::npos ? "" : link.substr(slash);
}

}  // namespace

Operation operation_of(Service service, const std::string& version, const Json& answer,
                       const std::string& what) {
  Operation operation;
  operation.service = service;
  operation.what = what;
  take(operation, answer);
  if (answer.empty()) {
    operation.done = true;  // the answer of a dry run
  } else if (service == Service::kCompute) {
    operation.path = path_of_link(text(answer, "selfLink"));
  } else {
    operation.path = version + "/" + text(answer, "name");
  }
  return operation;
}

Wait default_wait(const Api& api) {
  const cloud::RetryPolicy& retry = api.options().http.retry;
  Wait how;
  how.first = std::min(how.first, retry.first);
  how.longest = std::min(how.longest, retry.longest);
  how.cancelled = api.options().cancelled;
  return how;
}

Done wait(Api& api, Operation operation, const Wait& how) {
  const double end = api.clock().now() + how.timeout;
  double pause = how.first;
  while (!operation.done) {
    if (how.enough && how.enough()) return {};
    if (how.cancelled != nullptr && *how.cancelled)
      return failed(Kind::kCancelled, Code::kCancelled, operation.what, ": cancelled");
    if (api.clock().now() >= end)
      return failed(Kind::kPassing, Code::kDeadlineExceeded, operation.what, ": not done after ", how.timeout,
                    " s");
    api.clock().sleep(pause, how.cancelled);
    pause = std::min(pause * 1.5, how.longest);
    const Call call{
        .service = operation.service, .path = operation.path, .what = operation.what + ": its operation"};
    auto answer = api.call(call);
    // Services delete operations after a while, also finished ones: the resource decides.
    if (!answer && answer.error().kind == Kind::kNotFound) return {};
    if (!answer) return tl::unexpected<Failure>(answer.error());
    take(operation, *answer);
  }
  if (!operation.error.is_null() && !operation.error.empty())
    return tl::unexpected<Failure>(failure_of_operation(operation.error, operation.what));
  return {};
}

}  // namespace sluice::google
