#include "sluice/google/api.h"

#include <cstdio>

#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/listing.h"

namespace sluice::google {
namespace {

// Returns "p" of "/v2/projects/p/…", for messages.
std::string project_in(const Call& call) {
  const std::string project = piece_after(call.path.substr(0, call.path.find('?')), "projects");
  return project.substr(0, project.find(':'));
}

tl::unexpected<Failure> no_credentials(const Call& call, const cloud::Credentials& found) {
  return failed(Kind::kCredentials, Code::kPermissionDenied, call.what,
                ": it needs credentials, and would be made by ", found.who(),
                ". Run gcloud auth application-default login, or name a key file in "
                "GOOGLE_APPLICATION_CREDENTIALS");
}

// Adds to the failure which of several credentials were not enough.
Failure with_caller(const Failure& failure, const cloud::Credentials& credentials) {
  Failure whole(failure.kind, failure.code(),
                base::str(failure.what(), base::ends_with(failure.what(), ".") ? "" : ".",
                          " The request was made by ", credentials.who()));
  whole.status = failure.status;
  whole.after_lost = failure.after_lost;
  return whole;
}

// Returns whether the request may have arrived although there is no usable answer.
bool may_have_arrived(const base::Result<cloud::HttpResponse>& response) {
  return !response || response->status >= 500 || response->status == 408;
}

}  // namespace

std::string host_of(Service service) {
  switch (service) {
    case Service::kTpu:
      return "tpu.googleapis.com";
    case Service::kCompute:
      return "compute.googleapis.com";
    case Service::kFilestore:
      return "file.googleapis.com";
    case Service::kStorage:
      return "storage.googleapis.com";
    case Service::kServiceUsage:
      return "serviceusage.googleapis.com";
    case Service::kResourceManager:
      return "cloudresourcemanager.googleapis.com";
  }
  return "";
}

Api::Api(ApiOptions options)
    : options_(std::move(options)),
      http_(std::make_shared<cloud::Http>(options_.http)),
      credentials_(options_.credentials),
      quota_project_(options_.quota_project) {}

std::string Api::url(const Call& call) const {
  std::string url =
      (options_.endpoint.empty() ? "https://" + host_of(call.service) : options_.endpoint) + call.path;
  char separator = '?';
  for (const auto& [name, value] : call.query) {
    url += separator + name + "=" + cloud::percent_encode(value);
    separator = '&';
  }
  return url;
}

base::Result<std::shared_ptr<cloud::Credentials>> Api::credentials() {
  const std::lock_guard lock(mutex_);
  if (credentials_) return credentials_;
  SLUICE_TRY(credentials_, cloud::find_credentials(http_));
  // A user's own credentials belong to no project: the services ask which project pays for the calls.
  if (quota_project_.empty()) quota_project_ = credentials_->quota_project();
  return credentials_;
}

base::Result<bool> Api::has_credentials() {
  if (options_.credentials) return true;
  SLUICE_TRY(const auto found, credentials());
  return !found->anonymous();
}

base::Result<std::vector<std::string>> Api::headers(const Call& call, std::string& authorization) {
  std::vector<std::string> lines = {"Accept: application/json"};
  if (!call.body.is_null()) lines.push_back("Content-Type: application/json");
  SLUICE_TRY(const auto credentials, this->credentials());
  if (credentials->anonymous()) {
    // Anonymous requests are sent only to a server on this machine.
    if (options_.credentials) return lines;
    return tl::unexpected<Error>(no_credentials(call, *credentials).value());
  }
  SLUICE_OK(credentials->may_go_to(url(call)));
  SLUICE_TRY(authorization, credentials->header());
  lines.push_back(authorization);
  const std::lock_guard lock(mutex_);
  if (!quota_project_.empty()) lines.push_back("x-goog-user-project: " + quota_project_);
  return lines;
}

void Api::print_mutation(const Call& call) const {
  std::string text = call.method + " " + url(call) + "\n";
  if (!call.body.is_null()) text += call.body.dump(2) + "\n";
  if (options_.print) return options_.print(text);
  std::fputs(text.c_str(), stdout);
}

Outcome<Json> Api::call(const Call& call) {
  if (options_.dry_run && call.method != "GET" && !call.reads) {
    print_mutation(call);
    ++sent_;
    return Json::object();
  }
  const std::string body = call.body.is_null() ? "" : call.body.dump();
  cloud::HttpRequest request;
  request.method = call.method;
  request.url = url(call);
  request.body = body;
  request.cancelled = options_.cancelled;
  cloud::Backoff again = http_->backoff(options_.cancelled);
  bool lost = false, renewed = false;
  while (true) {
    std::string authorization;
    auto lines = headers(call, authorization);
    if (!lines && lines.error().code() == Code::kUnavailable) {  // by the token's server: nothing was sent
      const auto waited =
          again.wait(Error(Code::kUnavailable, base::str(call.what, ": ", lines.error().what())));
      if (waited) continue;
      return tl::unexpected<Failure>(Failure(Kind::kPassing, Code::kUnavailable, waited.error().what()));
    }
    if (!lines) {
      Failure failure(lines.error());
      // A missing or unreadable file, or a refused token: no request is possible without credentials.
      if (failure.kind != Kind::kPassing && failure.kind != Kind::kCancelled)
        failure.kind = Kind::kCredentials;
      return tl::unexpected<Failure>(failure);
    }
    request.headers = std::move(*lines);
    ++sent_;
    const auto response = http_->once(request);
    if (!response && response.error().code() != Code::kUnavailable)
      return tl::unexpected<Failure>(Failure(response.error()));
    if (response && response->status / 100 == 2) {
      Json json = response->body.empty() ? Json::object() : base::parse_json(response->body);
      if (!json.is_discarded()) return json;
      return failed(Kind::kOther, Code::kUnknown, call.what, ": the answer is not JSON");
    }
    Failure failure = response ? failure_of_answer(response->status, response->body, call.what,
                                                   project_in(call), host_of(call.service))
                               : Failure(Kind::kPassing, Code::kUnavailable,
                                         base::str(call.what, ": ", response.error().what()));
    failure.after_lost = lost;
    if (failure.kind == Kind::kCredentials && !authorization.empty() && !renewed) {
      credentials_->reject(authorization);  // it may have expired early: try once with a new one
      renewed = true;
      continue;
    }
    const bool is_about_caller = failure.kind == Kind::kCredentials || failure.kind == Kind::kForbidden;
    if (is_about_caller && !authorization.empty())
      return tl::unexpected<Failure>(with_caller(failure, *credentials_));
    if (failure.kind != Kind::kPassing) return tl::unexpected<Failure>(failure);
    lost = lost || may_have_arrived(response);
    const auto waited = again.wait(failure, response ? cloud::retry_after(*response) : std::nullopt);
    if (!waited) return tl::unexpected<Failure>(Failure(waited.error()));
  }
}

Done Api::each_page(const Call& first, const std::function<void(const Json&)>& visit) {
  cloud::Pages pages(first.what);
  Call call = first;
  while (true) {
    GOOGLE_TRY(const Json page, this->call(call));
    visit(page);
    const std::string token = text(page, "nextPageToken");
    const auto more = pages.next(token);
    if (!more) return tl::unexpected<Failure>(Failure(more.error()));
    if (!*more) return {};
    call.query = first.query;
    call.query.emplace_back("pageToken", token);
  }
}

Outcome<Json> Api::pages(const Call& first, const std::string& field, std::vector<std::string>* unreachable) {
  Json all = Json::array();
  GOOGLE_OK(each_page(first, [&](const Json& page) {
    for (const Json& item : elements(page, field)) all.push_back(item);
    // tpu and file have one of these fields, compute the other.
    for (const char* name : {"unreachable", "unreachables"})
      for (const std::string& place : items(page, name))
        if (unreachable != nullptr) unreachable->push_back(last_piece(place));
  }));
  return all;
}

}  // namespace sluice::google
