#include "sluice/cloud/stores/hub.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/credentials/token_request.h"
#include "sluice/cloud/listing.h"
#include "sluice/cloud/object_reader.h"
#include "sluice/cloud/stores/rest.h"

namespace sluice::cloud {
namespace {

// The parts of "datasets/owner/name@revision".
struct Repository {
  std::string kind;      // "datasets", "models", "spaces"
  std::string path;      // below the hub: "datasets/owner/name"; for a model "owner/name"
  std::string name;      // "owner/name"
  std::string revision;  // in the form of a URL's part
};

Repository repository_of(const std::string& bucket) {
  Repository repository{"models", "", bucket, "main"};
  for (const char* kind : {"datasets", "models", "spaces"}) {
    if (!base::starts_with(bucket, base::str(kind, "/"))) continue;
    repository.kind = kind;
    repository.name = bucket.substr(repository.kind.size() + 1);
  }
  const std::size_t at = repository.name.find('@');
  if (at != std::string::npos) {
    repository.revision = percent_encode(percent_decode(repository.name.substr(at + 1)));  // "refs%2Fpr%2F1"
    repository.name.resize(at);
  }
  repository.path = (repository.kind == "models" ? "" : repository.kind + "/") + repository.name;
  return repository;
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Sends the token to the hub, and no token to the address that it redirects to. That address is remembered:
// the hub limits how often it is asked.
class HubSigner : public Signer {
 public:
  HubSigner(std::string endpoint, std::string token, std::string token_from)
      : endpoint_(std::move(endpoint)), token_(std::move(token)), token_from_(std::move(token_from)) {}

  base::Result<HttpResponse> once(Http& http, HttpRequest request) override {
    const std::string url = request.url;
    const std::size_t headers = request.headers.size();
    bool renewed = false;
    for (int round = 0;; ++round) {
      request.url = target_of(url);
      const bool to_hub = base::starts_with(request.url, endpoint_ + "/");
      request.headers.resize(headers);
      request.secret = {};
      if (to_hub && !token_.empty()) {
        request.headers.push_back("Authorization: Bearer " + token_);
        request.secret = {"the token of " + token_from_, "HF_ENDPOINT"};
      }
      auto response = http.once(request);
      if (!response || round == 5) return response;
      const auto next = is_redirect(response->status) ? response->header("location") : std::nullopt;
      // The remembered address, which is valid for an hour, has expired.
      const bool expired = !to_hub && !renewed && (response->status == 401 || response->status == 403);
      if (!expired && !next) return response;
      renewed = renewed || expired;
      if (next) SLUICE_OK(may_redirect(request.url, *next));
      const bool within = next && base::starts_with(*next, "/");
      if (request.method == "HEAD" && !within) return response;
      remember(url, expired ? "" : within ? endpoint_ + *next : *next);
    }
  }

  Error explain(const HttpResponse& response, const std::string& what) const override {
    const Error error = status_error(response, what);
    std::string advice;
    if (response.status == 404)
      advice = " (no such repository, revision or file";
    else if (response.status == 401 || response.status == 403)
      advice = " (private, gated, or missing";
    else
      return error;
    advice += token_.empty() ? "; the request had no token: there is no token in " + token_from_ +
                                   ". 'hf auth login' writes one)"
                             : "; the request had the token of " + token_from_ + ")";
    return Error(error.code(), error.what() + advice);
  }

 private:
  std::string target_of(const std::string& url) {
    const std::lock_guard lock(mutex_);
    const auto known = targets_.find(url);
    return known == targets_.end() ? url : known->second;
  }
  void remember(const std::string& url, const std::string& target) {
    constexpr std::size_t kMaxTargets = 4096;  // more than are read at once
    const std::lock_guard lock(mutex_);
    if (target.empty()) {
      targets_.erase(url);
      return;
    }
    if (targets_.size() >= kMaxTargets) targets_.erase(targets_.begin());
    targets_[url] = target;
  }

  const std::string endpoint_, token_, token_from_;
  std::mutex mutex_;
  std::map<std::string, std::string> targets_;  // by the hub's addresses
};

std::string unquoted(std::string tag) {
  if (base::starts_with(tag, "W/")) tag.erase(0, 2);
  if (tag.size() > 1 && tag.front() == '"' && tag.back() == '"') tag = tag.substr(1, tag.size() - 2);
  return tag;
}

// Returns the address in "<https://…>; rel="next"".
std::string next_page(const HttpResponse& response) {
  const std::string link = response.header("link").value_or("");
  const std::size_t end = link.find(">; rel=\"next\"");
  const std::size_t begin = link.rfind('<', end);
  return end == std::string::npos || begin == std::string::npos ? ""
                                                                : link.substr(begin + 1, end - begin - 1);
}

tl::unexpected<Error> read_only(const ObjectName& name) {
  return base::fail(Code::kUnimplemented, "cannot write ", name.url(), ": hf:// is only read");
}

}  // namespace

Hub::Hub(std::string endpoint, std::shared_ptr<Http> http, std::string token, std::string token_from)
    : endpoint_(std::move(endpoint)) {
  access_.http = std::move(http);
  access_.direct = is_loopback(host_of_url(endpoint_).value_or(""));
  access_.signer = std::make_shared<HubSigner>(endpoint_, std::move(token), std::move(token_from));
}

base::Result<HttpResponse> Hub::head(const ObjectName& name, const std::atomic<bool>* cancelled) const {
  const Repository repository = repository_of(name.bucket);
  HttpRequest request;
  request.method = "HEAD";
  request.url = base::str(endpoint_, "/", repository.path, "/resolve/", repository.revision, "/",
                          percent_encode_path(name.object));
  request.headers = {"Accept-Encoding: identity"};
  request.cancelled = cancelled;
  SLUICE_TRY(auto response, access_.send(std::move(request), name.url()));
  if (response.status / 100 != 2 && !is_redirect(response.status))
    return tl::unexpected<Error>(explain(response, name.url(), access_));
  return response;
}

namespace {

base::Result<ObjectFacts> facts_of_file(const ObjectName& name, const HttpResponse& head) {
  ObjectFacts facts;
  facts.name = name.object;
  const auto size = head.header("x-linked-size");
  const auto bytes =
      base::number_of<std::uint64_t>(size ? *size : head.header("content-length").value_or(""));
  if (!bytes || (!size && is_redirect(head.status)))
    return base::fail(Code::kUnknown, name.url(), ": the hub does not say how large the file is");
  facts.size = *bytes;
  facts.generation = unquoted(head.header("x-linked-etag").value_or(head.header("etag").value_or("")));
  return facts;
}

}  // namespace

base::Result<ObjectFacts> Hub::stat(const ObjectName& name, const std::atomic<bool>* cancelled) const {
  SLUICE_TRY(const auto response, head(name, cancelled));
  return facts_of_file(name, response);
}

base::Result<Remote> Hub::find(const ObjectName& name, const std::atomic<bool>* cancelled) const {
  SLUICE_TRY(const auto response, head(name, cancelled));
  SLUICE_TRY(const ObjectFacts facts, facts_of_file(name, response));
  const Repository repository = repository_of(name.bucket);
  const std::string commit = response.header("x-repo-commit").value_or(repository.revision);
  Remote remote;
  remote.name = name.url();
  remote.address = base::str(endpoint_, "/", repository.path, "/resolve/",
                             percent_encode(percent_decode(commit)), "/", percent_encode_path(name.object));
  remote.size = facts.size;
  remote.version = facts.generation;
  if (!is_redirect(response.status)) {
    // The hub itself sends a small file, as a whole.
    remote.ranges = false;
    remote.version = response.header("etag").value_or("");
  }
  if (facts.generation.size() == 64) remote.checksum = Checksum{ChecksumKind::kSha256, facts.generation};
  remote.access = access_;
  return remote;
}

base::Result<std::vector<ObjectFacts>> Hub::list(const std::string& bucket, const std::string& prefix,
                                                 bool flat) const {
  const std::string what = "listing hf://" + bucket + "/" + prefix + "*";
  const Repository repository = repository_of(bucket);
  const std::size_t slash = prefix.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "" : "/" + percent_encode_path(prefix.substr(0, slash));
  std::string url = base::str(endpoint_, "/api/", repository.kind, "/", repository.name, "/tree/",
                              repository.revision, folder, flat ? "" : "?recursive=true");
  Listing listing(what, prefix, flat);
  SLUICE_TRY(bool more, listing.next(url));
  while (more) {
    if (!base::starts_with(url, endpoint_ + "/"))
      return base::fail(Code::kUnknown, what, ": the hub's next page is elsewhere");
    HttpRequest request;
    request.url = url;
    SLUICE_TRY(const auto response, access_.send(std::move(request), what));
    if (response.status / 100 != 2) return tl::unexpected<Error>(explain(response, what, access_));
    SLUICE_OK(read_hub_page(response.body, listing));
    url = next_page(response);
    SLUICE_TRY(more, listing.next(url));
  }
  return std::move(listing).sorted();
}

base::Status read_hub_page(const std::string& body, Listing& listing) {
  const auto json = base::parse_json(body);
  if (!json.is_array())
    return base::fail(Code::kUnknown, listing.what(), ": expected a JSON list, the hub sent something else");
  const std::string folder = listing.prefix().substr(0, listing.prefix().rfind('/') + 1);
  for (const auto& item : json) {
    if (!item.is_object() || text_field(item, "type") != "file") continue;
    ObjectFacts facts;
    facts.name = text_field(item, "path");
    if (item.contains("size") && item["size"].is_number_unsigned()) facts.size = item["size"];
    facts.generation = item.contains("lfs") && item["lfs"].is_object() ? text_field(item["lfs"], "oid")
                                                                       : text_field(item, "oid");
    const bool other =
        base::starts_with(facts.name, folder) && !base::starts_with(facts.name, listing.prefix());
    if (!other) SLUICE_OK(listing.add(std::move(facts)));
  }
  return {};
}

base::Result<std::string> Hub::read_text(const ObjectName& name) const {
  SLUICE_TRY(Remote remote, find(name));
  SLUICE_TRY(const auto reader, open_reader(std::move(remote)));
  std::string text;
  while (true) {
    SLUICE_TRY(const std::string_view some, reader->next(std::size_t{1} << 20));
    if (some.empty()) return text;
    if (text.size() + some.size() > HttpRequest().max_body)
      return base::fail(Code::kResourceExhausted, name.url(), ": more than ", HttpRequest().max_body >> 20,
                        " MiB, expected a small file");
    text += some;
  }
}

base::Result<std::unique_ptr<Upload>> Hub::start_upload(const ObjectName& name, const UploadOptions&) const {
  return read_only(name);
}

base::Result<ObjectFacts> Hub::copy(const ObjectName&, const ObjectName& to, const UploadOptions&) const {
  return read_only(to);
}

base::Status Hub::remove(const ObjectName& name, const std::string&) const { return read_only(name); }

base::Result<Store*> shared_hub() {
  static SharedStore shared;
  return shared.get([](std::shared_ptr<Http> http) -> base::Result<Store*> {
    std::string endpoint = base::environment("HF_ENDPOINT").value_or("https://huggingface.co");
    SLUICE_OK(check_endpoint(endpoint, "HF_ENDPOINT"));
    while (base::ends_with(endpoint, "/")) endpoint.pop_back();
    const std::string home = base::environment("HF_HOME").value_or("~/.cache/huggingface");
    const std::string file = base::expand_home(base::environment("HF_TOKEN_PATH").value_or(home + "/token"));
    std::string token = base::environment("HF_TOKEN").value_or(""), from = "HF_TOKEN";
    if (token.empty()) {
      const auto text = base::read_file(file);
      if (text) token = base::trim(*text);
      from = text ? file : "HF_TOKEN and " + file;
    }
    return new Hub(endpoint, std::move(http), token, from);
  });
}

}  // namespace sluice::cloud
