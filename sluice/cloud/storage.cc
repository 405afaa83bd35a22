#include "sluice/cloud/storage.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/formats/base64.h"
#include "sluice/base/formats/crc32c.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/shown_url.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/credentials/secret.h"
#include "sluice/cloud/listing.h"
#include "sluice/cloud/object_reader.h"
#include "sluice/cloud/upload.h"

namespace sluice::cloud {
namespace {

constexpr char kGoogle[] = "https://storage.googleapis.com";

std::string text_of(const nlohmann::json& json, const char* name) {
  if (!json.contains(name)) return "";
  return json[name].is_string() ? json[name].get<std::string>() : json[name].dump();
}

base::Result<ObjectFacts> facts_of(const nlohmann::json& json, const std::string& what) {
  ObjectFacts facts;
  const std::string size = json.is_object() ? text_of(json, "size") : "";
  const auto bytes = base::number_of<std::uint64_t>(size);
  if (!bytes) return base::fail(Code::kUnknown, what, ": the server's description of the object has no size");
  facts.size = *bytes;
  facts.name = text_of(json, "name");
  facts.generation = text_of(json, "generation");
  facts.crc32c = crc32c_of_base64(text_of(json, "crc32c"));
  return facts;
}

base::Result<nlohmann::json> parse_json(const std::string& body, const std::string& what) {
  auto json = base::parse_json(body);
  if (!json.is_object())
    return base::fail(Code::kUnknown, what, ": expected a JSON object, the server sent something else");
  return json;
}

}  // namespace

base::Result<std::unique_ptr<Storage>> Storage::of_environment(std::shared_ptr<Http> http) {
  std::string payer = base::environment("GOOGLE_CLOUD_QUOTA_PROJECT").value_or("");
  if (auto emulator = base::environment("STORAGE_EMULATOR_HOST")) {
    while (base::ends_with(*emulator, "/")) emulator->pop_back();
    if (emulator->find("://") == std::string::npos) *emulator = "http://" + *emulator;
    if (!host_of_url(*emulator))
      return base::fail(Code::kInvalidArgument, "STORAGE_EMULATOR_HOST=", base::shown_urls(*emulator),
                        ": expected [http://]HOST:PORT, with brackets around an IPv6 address, [::1]:9023");
    return std::make_unique<Storage>(*emulator,
                                     Access{http, anonymous_credentials(), true, std::move(payer)});
  }
  SLUICE_TRY(std::string stand_in, google_endpoint_of_environment());
  if (!stand_in.empty())
    return std::make_unique<Storage>(std::move(stand_in),
                                     Access{http, anonymous_credentials(), true, std::move(payer)});
  SLUICE_TRY(auto credentials, find_credentials(http));
  return std::make_unique<Storage>(kGoogle, Access{http, std::move(credentials), false, std::move(payer)});
}

base::Result<HttpResponse> Access::once(HttpRequest request) const {
  if (signer != nullptr) return signer->once(*http, std::move(request));
  if (!payer.empty()) request.headers.push_back("x-goog-user-project: " + payer);
  if (credentials == nullptr || credentials->anonymous()) return http->once(request);
  request.secret = credentials->secret();
  SLUICE_OK(may_send_secret(request.url, request.secret));  // checked before a token is fetched
  for (int round = 0;; ++round) {
    SLUICE_TRY(const std::string header, credentials->header());
    request.headers.push_back(header);
    auto response = http->once(request);
    if (round > 0 || !response || response->status != 401) return response;
    credentials->reject(header);
    request.headers.pop_back();
  }
}

base::Result<HttpResponse> Access::send(HttpRequest request, const std::string& what) const {
  request.direct = direct;
  return send_until_final(http->backoff(request.cancelled), what, [&] { return once(request); });
}

Error explain(const HttpResponse& response, const std::string& what, const Access& access) {
  if (access.signer != nullptr) return access.signer->explain(response, what);
  const Error error = status_error(response, what);
  if (access.payer.empty() && error.code() == Code::kInvalidArgument &&
      std::string_view(error.what()).find("requester pays") != std::string_view::npos)
    return Error(error.code(),
                 base::str(error.what(),
                           ". Whoever reads this bucket pays for it: name the project that does "
                           "in GOOGLE_CLOUD_QUOTA_PROJECT"));
  if (access.credentials == nullptr ||
      (error.code() != Code::kPermissionDenied && error.code() != Code::kNotFound))
    return error;
  std::string advice = error.code() == Code::kNotFound ? " (no such object or bucket)" : "";
  if (access.credentials->anonymous() && error.code() == Code::kPermissionDenied)
    advice =
        ". The request was made by " + access.credentials->who() +
        ": run 'gcloud auth application-default login', or set GOOGLE_APPLICATION_CREDENTIALS to a key file";
  else if (error.code() == Code::kPermissionDenied)
    advice = ". The request was made by " + access.credentials->who() +
             ": give it the role Storage Object Viewer (to read) or Storage Object User (to write)";
  return Error(error.code(), error.what() + advice);
}

base::Result<ObjectFacts> parse_object(const std::string& text, const std::string& what) {
  SLUICE_TRY(const auto json, parse_json(text, what));
  return facts_of(json, what);
}

base::Result<std::string> read_google_page(const std::string& body, Listing& listing) {
  SLUICE_TRY(const auto json, parse_json(body, listing.what()));
  if (const auto items = json.find("items"); items != json.end())
    for (const auto& item : *items) {
      SLUICE_TRY(ObjectFacts facts, facts_of(item, listing.what()));
      SLUICE_OK(listing.add(std::move(facts)));
    }
  return text_of(json, "nextPageToken");
}

std::optional<std::uint32_t> crc32c_of_base64(const std::string& text) {
  const auto bytes = base::bytes_of_base64(text);
  if (!bytes || bytes->size() != 4) return std::nullopt;
  std::uint32_t crc = 0;
  for (const char byte : *bytes) crc = crc << 8 | static_cast<unsigned char>(byte);
  return crc;
}

std::string base64_of_crc32c(std::uint32_t crc) {
  return base::base64(std::string{static_cast<char>(crc >> 24), static_cast<char>(crc >> 16),
                                  static_cast<char>(crc >> 8), static_cast<char>(crc)});
}

base::Result<Storage*> Storage::shared() {
  static std::mutex mutex;
  static Storage* storage = nullptr;  // kept until the process ends: threads may still read
  const std::lock_guard lock(mutex);
  if (storage == nullptr) {
    HttpOptions options;
    SLUICE_TRY(options.retry, retry_policy_of_environment());
    SLUICE_TRY(auto made, of_environment(std::make_shared<Http>(options)));
    storage = made.release();
  }
  return storage;
}

std::string Storage::object_address(const ObjectName& name) const {
  return endpoint_ + "/storage/v1/b/" + percent_encode(name.bucket) + "/o/" + percent_encode(name.object);
}

base::Result<HttpResponse> Storage::expect_ok(HttpRequest request, const std::string& what) const {
  SLUICE_TRY(HttpResponse response, access_.send(std::move(request), what));
  if (response.status < 200 || response.status >= 300)
    return tl::unexpected<Error>(explain(response, what, access_));
  return response;
}

base::Result<ObjectFacts> Storage::stat(const ObjectName& name, const std::atomic<bool>* cancelled) const {
  HttpRequest request;
  request.url = object_address(name);
  request.cancelled = cancelled;
  SLUICE_TRY(const auto response, expect_ok(std::move(request), name.url()));
  SLUICE_TRY(ObjectFacts facts, parse_object(response.body, name.url()));
  facts.name = name.object;
  return facts;
}

base::Result<Remote> Storage::find(const ObjectName& name, const std::atomic<bool>* cancelled) const {
  if (!access_.direct) warn_of_region(name.bucket);  // an emulator has no location
  SLUICE_TRY(const ObjectFacts facts, stat(name, cancelled));
  Remote remote;
  remote.name = name.url();
  remote.address = object_address(name) + "?alt=media&generation=" + facts.generation;
  remote.size = facts.size;
  remote.version = facts.generation;
  remote.crc32c = facts.crc32c;
  remote.access = access_;
  return remote;
}

base::Result<std::vector<ObjectFacts>> Storage::list(const std::string& bucket, const std::string& prefix,
                                                     bool flat) const {
  const std::string what = "listing gs://" + bucket + "/" + prefix + "*";
  const auto read_page = [&](Listing& listing, const std::string& token) -> base::Result<std::string> {
    HttpRequest request;
    request.url = endpoint_ + "/storage/v1/b/" + percent_encode(bucket) +
                  "/o?prefix=" + percent_encode(prefix) +
                  "&fields=items(name,size,generation,crc32c),nextPageToken";
    if (flat) request.url += "&delimiter=%2F";
    if (!token.empty()) request.url += "&pageToken=" + percent_encode(token);
    SLUICE_TRY(const auto response, expect_ok(std::move(request), what));
    return read_google_page(response.body, listing);
  };
  return list_pages(Listing(what, prefix, flat), read_page);
}

base::Status Storage::remove(const ObjectName& name, const std::string& generation) const {
  HttpRequest request;
  request.method = "DELETE";
  request.url = object_address(name) + (generation.empty() ? "" : "?generation=" + generation);
  SLUICE_TRY(const auto response, expect_ok(std::move(request), "deleting " + name.url()));
  return {};
}

base::Result<std::string> Storage::read_text(const ObjectName& name) const {
  HttpRequest request;
  request.url = object_address(name) + "?alt=media";
  SLUICE_TRY(auto response, expect_ok(std::move(request), name.url()));
  const auto hash = response.header("x-goog-hash").value_or("");
  const std::size_t at = hash.find("crc32c=");
  if (at != std::string::npos) {
    const auto expected = crc32c_of_base64(hash.substr(at + 7, 8));
    if (expected && *expected != base::crc32c(response.body.data(), response.body.size()))
      return base::fail(Code::kDataLoss, name.url(), ": its bytes do not fit its crc32c");
  }
  return std::move(response.body);
}

base::Result<std::unique_ptr<Upload>> Storage::start_upload(const ObjectName& name,
                                                            const UploadOptions& options) const {
  SLUICE_OK(check_written_name(name, "object"));
  const std::string what = "uploading " + name.url();
  HttpRequest request;
  request.method = "POST";
  request.url = endpoint_ + "/upload/storage/v1/b/" + percent_encode(name.bucket) +
                "/o?uploadType=resumable&name=" + percent_encode(name.object);
  if (options.if_generation) request.url += "&ifGenerationMatch=" + *options.if_generation;
  request.headers = {"Content-Type: application/json", "X-Upload-Content-Type: application/octet-stream"};
  request.body = "{}";
  request.cancelled = options.cancelled;
  SLUICE_TRY(const auto response, expect_ok(std::move(request), what));
  const auto session = response.header("location");
  if (!session) return base::fail(Code::kUnknown, what, ": the server gave no address to upload to");
  // Each piece is sent there with a token.
  if (access_.credentials != nullptr)
    if (auto allowed = access_.credentials->may_go_to(*session); !allowed)
      return base::fail_at(allowed, what, ": the server named an address to upload to");
  return std::make_unique<ResumableUpload>(*this, name, *session, options);
}

base::Result<ObjectFacts> Storage::copy(const ObjectName& from, const ObjectName& to,
                                        const UploadOptions& options) const {
  const std::string what = "copying " + from.url() + " to " + to.url();
  SLUICE_TRY(const ObjectFacts source, stat(from, options.cancelled));
  std::string token;
  while (true) {
    HttpRequest request;
    request.method = "POST";
    request.url = object_address(from) + "/rewriteTo/b/" + percent_encode(to.bucket) + "/o/" +
                  percent_encode(to.object) + "?sourceGeneration=" + source.generation;
    if (options.if_generation) request.url += "&ifGenerationMatch=" + *options.if_generation;
    if (!token.empty()) request.url += "&rewriteToken=" + percent_encode(token);
    request.headers = {"Content-Type: application/json"};
    request.body = "{}";
    request.stall_timeout = 120;  // nothing arrives while the service copies
    request.cancelled = options.cancelled;
    SLUICE_TRY(const auto response, expect_ok(std::move(request), what));
    SLUICE_TRY(const auto json, parse_json(response.body, what));
    if (json.contains("done") && json["done"] == true) {
      SLUICE_TRY(ObjectFacts facts, facts_of(json.contains("resource") ? json["resource"] : json, what));
      if (facts.size == source.size && facts.crc32c == source.crc32c) return facts;
      return base::fail(Code::kDataLoss, what, ": the copy differs from the original");
    }
    token = text_of(json, "rewriteToken");
    if (token.empty())
      return base::fail(Code::kUnknown, what,
                        ": the server neither ended the copy nor said how to continue it");
  }
}

base::Result<ObjectFacts> Storage::compose(const std::vector<ObjectFacts>& parts, const ObjectName& to,
                                           const UploadOptions& options) const {
  const std::string what = "composing " + to.url();
  nlohmann::json sources = nlohmann::json::array();
  for (const ObjectFacts& part : parts) {
    nlohmann::json source = {{"name", part.name}};
    if (!part.generation.empty()) source["objectPreconditions"] = {{"ifGenerationMatch", part.generation}};
    sources.push_back(std::move(source));
  }
  const std::string body = nlohmann::json{
      {"destination", {{"contentType", "application/octet-stream"}}},
      {"sourceObjects",
       std::move(sources)}}.dump();
  HttpRequest request;
  request.method = "POST";
  request.url = object_address(to) + "/compose";
  if (options.if_generation) request.url += "?ifGenerationMatch=" + *options.if_generation;
  request.headers = {"Content-Type: application/json"};
  request.body = body;
  request.cancelled = options.cancelled;
  SLUICE_TRY(const auto response, expect_ok(std::move(request), what));
  return parse_object(response.body, what);
}

base::Result<ObjectFacts> Storage::append(const std::string& path, std::uint64_t size, const ObjectName& name,
                                          const ObjectFacts& old) const {
  // TensorBoard reads every object with "tfevents" in its name, so the part has another one. The same one
  // each time: what a killed process leaves is replaced by the next.
  char number[16];
  std::snprintf(number, sizeof number, "%08x", base::crc32c(name.object.data(), name.object.size()));
  const std::string folder = name.object.substr(0, name.object.rfind('/') + 1);
  const ObjectName part = name.beside(folder + ".append-" + number);
  SLUICE_TRY(const ObjectFacts sent, upload_part(path, old.size, size, part));
  UploadOptions options;
  options.if_generation = old.generation;
  const auto composed = compose({{.name = name.object, .generation = old.generation},
                                 {.name = part.object, .generation = sent.generation}},
                                name, options);
  // Only this generation: the part may be another writer's by now. A part that stays is replaced next time.
  (void)remove(part, sent.generation);
  std::optional<std::uint32_t> crc;
  if (old.crc32c && sent.crc32c) crc = base::crc32c_combine(*old.crc32c, *sent.crc32c, size - old.size);
  const auto is_wanted = [&](const ObjectFacts& facts) {
    return facts.size == size && (!crc || !facts.crc32c || facts.crc32c == crc);
  };
  if (composed && is_wanted(*composed)) return composed;
  if (composed)
    return base::fail(Code::kDataLoss, "appending to ", name.url(), ": the object has ", composed->size,
                      " bytes with crc32c ", base64_of_crc32c(composed->crc32c.value_or(0)), ", expected ",
                      size, " with ", base64_of_crc32c(crc.value_or(0)),
                      ": does something else write there?");
  // The objects may have been composed although the request failed: the answer was lost, the repetition
  // refused.
  if (composed.error().code() != Code::kFailedPrecondition && composed.error().code() != Code::kNotFound)
    return composed;
  const auto now = stat(name);
  return now && crc && now->crc32c && is_wanted(*now) ? now : composed;
}

}  // namespace sluice::cloud
