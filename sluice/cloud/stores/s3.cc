#include "sluice/cloud/stores/s3.h"

#include <algorithm>

#include "sluice/base/environment.h"
#include "sluice/base/formats/crc32c.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/credentials/token_request.h"
#include "sluice/cloud/listing.h"
#include "sluice/cloud/object_reader.h"
#include "sluice/cloud/stores/rest.h"
#include "sluice/cloud/stores/s3_signer.h"
#include "sluice/cloud/stores/s3_upload.h"

namespace sluice::cloud {
namespace {

constexpr std::uint64_t kLargestCopy = std::uint64_t{5} << 30;  // in one request
constexpr std::uint64_t kCopiedPart = std::uint64_t{1} << 30;

// Decodes a name in a listing with encoding-type=url, where + is a space.
std::string decode(std::string text) {
  std::replace(text.begin(), text.end(), '+', ' ');
  return percent_decode(text);
}

// Returns whether checksums in these headers are of the whole object, not combined from checksums of parts.
// If the headers do not say so, an ETag "…-3" means an object of three parts.
bool of_whole(const HttpResponse& head) {
  if (const auto type = head.header("x-amz-checksum-type")) return *type == "FULL_OBJECT";
  return head.header("etag").value_or("").find('-') == std::string::npos;
}

ObjectFacts facts_of_object(const ObjectName& name, const HttpResponse& head) {
  ObjectFacts facts = facts_of_head(name, head);
  const auto crc = head.header("x-amz-checksum-crc32c");
  if (crc && of_whole(head)) facts.crc32c = crc32c_of_base64(*crc);
  return facts;
}

// Returns a checksum of the whole object, for use if there is no crc32c.
std::optional<Checksum> checksum_of_head(const HttpResponse& head, const std::string& bucket, bool on_aws) {
  struct Kind {
    const char* header;
    ChecksumKind kind;
    std::size_t digits;
  };
  for (const Kind& kind : {Kind{"x-amz-checksum-crc64nvme", ChecksumKind::kCrc64Nvme, 16},
                           Kind{"x-amz-checksum-crc32", ChecksumKind::kCrc32, 8},
                           Kind{"x-amz-checksum-sha256", ChecksumKind::kSha256, 64}}) {
    const std::string value = hexadecimal_of_base64(head.header(kind.header).value_or(""));
    if (value.size() == kind.digits && of_whole(head)) return Checksum{kind.kind, value};
  }
  // In other stores, in directory buckets, and with some kinds of encryption, an ETag may be anything.
  const std::string tag = head.header("etag").value_or("");
  const bool md5 = tag.size() == 34 && tag.find_first_not_of("0123456789abcdef", 1) == 33;
  const bool plain = head.header("x-amz-server-side-encryption").value_or("AES256") == "AES256" &&
                     !head.header("x-amz-server-side-encryption-customer-algorithm");
  if (on_aws && md5 && plain && !base::ends_with(bucket, "--x-s3"))
    return Checksum{ChecksumKind::kMd5, tag.substr(1, 32)};
  return std::nullopt;
}

// Returns whether the same request may succeed later, with any status: another writer was at work, or bytes
// were changed in transit.
bool is_passing(const std::string& code) {
  for (const char* passing :
       {"SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "OperationAborted",
        "ConditionalRequestConflict", "BadDigest", "XAmzContentChecksumMismatch"})
    if (code == passing) return true;
  return false;
}

}  // namespace

base::Result<S3Settings> s3_settings_of_environment() {
  S3Settings settings;
  std::string from;
  const auto first = [&](std::initializer_list<const char*> variables, const char* setting) -> std::string {
    for (const char* variable : variables) {
      from = variable;
      if (const auto value = base::environment(variable)) return *value;
    }
    from = base::str(setting, " of the profile");
    return aws_setting(setting).value_or("");
  };
  settings.endpoint = first({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}, "endpoint_url");
  settings.endpoint_from = from;
  SLUICE_OK(check_endpoint(settings.endpoint, from));
  while (base::ends_with(settings.endpoint, "/")) settings.endpoint.pop_back();
  const std::string region = first({"AWS_REGION", "AWS_DEFAULT_REGION"}, "region");
  if (!region.empty()) settings.region = region;
  return settings;
}

S3::S3(S3Settings settings, std::shared_ptr<Http> http, std::shared_ptr<AwsCredentials> credentials)
    : settings_(std::move(settings)), http_(std::move(http)), credentials_(std::move(credentials)) {}

std::string S3::region_of(const std::string& bucket) const {
  const std::lock_guard lock(mutex_);
  const auto known = regions_.find(bucket);
  return known == regions_.end() ? settings_.region : known->second;
}

Access S3::access_to(const std::string& bucket) const {
  const std::string region = region_of(bucket);
  Access access{http_, nullptr};
  if (!on_aws()) access.direct = is_loopback(host_of_url(settings_.endpoint).value_or(""));
  const std::lock_guard lock(mutex_);
  auto& signer = signers_[region];
  if (signer == nullptr) signer = std::make_shared<S3Signer>(region, credentials_, settings_.endpoint_from);
  access.signer = signer;
  return access;
}

std::string S3::address(const ObjectName& name) const {
  const std::string object = percent_encode_path(name.object);
  if (!on_aws()) return settings_.endpoint + "/" + percent_encode(name.bucket) + "/" + object;
  // A certificate for *.s3.… is valid only for names without dots.
  const std::string region = region_of(name.bucket);
  const std::string host =
      "s3." + region + ".amazonaws.com" + (base::starts_with(region, "cn-") ? ".cn" : "");
  if (name.bucket.find('.') != std::string::npos) return "https://" + host + "/" + name.bucket + "/" + object;
  return "https://" + percent_encode(name.bucket) + "." + host + "/" + object;
}

bool S3::learn_region(const std::string& bucket, const HttpResponse& response) const {
  if (response.status != 301 && response.status != 307 && response.status != 400 && response.status != 403)
    return false;
  std::string region = response.header("x-amz-bucket-region").value_or("");
  if (region.empty() && service_error(response.body).code == "AuthorizationHeaderMalformed") {
    const std::size_t at = response.body.find("<Region>"), end = response.body.find("</Region>");
    if (at != std::string::npos && end != std::string::npos && end > at)
      region = response.body.substr(at + 8, end - at - 8);
  }
  // The region becomes a part of the host's name.
  const bool good = !region.empty() &&
                    region.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
  if (!good || region == region_of(bucket)) return false;
  const std::lock_guard lock(mutex_);
  regions_[bucket] = region;
  return true;
}

base::Result<HttpResponse> S3::send(const ObjectName& name, const std::string& query, HttpRequest request,
                                    const std::string& what) const {
  for (int round = 0;; ++round) {
    request.url = address(name) + (query.empty() ? "" : "?" + query);
    SLUICE_TRY(auto response, access_to(name.bucket).send(request, what));
    if (round > 1 || !learn_region(name.bucket, response)) return response;
  }
}

base::Result<HttpResponse> S3::expect_ok(const ObjectName& name, const std::string& query,
                                         HttpRequest request, const std::string& what) const {
  Backoff again = http_->backoff(request.cancelled);
  while (true) {
    SLUICE_TRY(auto response, send(name, query, request, what));
    const bool is_ok = response.status / 100 == 2;
    // The status of a copy and of an upload's end is sent before the work: the body may contain an error.
    const bool writes = request.method == "PUT" || request.method == "POST";
    const ServiceError error = !is_ok || writes ? service_error(response.body) : ServiceError{};
    if (is_ok && error.code.empty()) return response;
    if (is_passing(error.code)) {
      SLUICE_OK(again.wait(service_status_error(response, what), retry_after(response)));
      continue;
    }
    if (is_ok) return base::fail(Code::kUnknown, what, ": ", error.code, ": ", error.message);
    return tl::unexpected<Error>(explain(response, what, access_to(name.bucket)));
  }
}

base::Result<HttpResponse> S3::head(const ObjectName& name, const std::atomic<bool>* cancelled) const {
  HttpRequest request;
  request.cancelled = cancelled;
  for (int round = 0;; ++round) {
    request.method = "HEAD";
    request.headers = {"x-amz-checksum-mode: ENABLED"};
    SLUICE_TRY(auto response, send(name, "", request, name.url()));
    if (response.status / 100 == 2) return response;
    if (response.status != 404) {
      // The answer to HEAD has no body: GET gives the reason, and its signer may have corrected the cause.
      request.method = "GET";
      request.headers = {"Range: bytes=0-0"};
      SLUICE_TRY(auto reason, send(name, "", request, name.url()));
      if (reason.status / 100 == 2 && round == 0) continue;
      if (reason.status / 100 != 2) response = std::move(reason);
    }
    return tl::unexpected<Error>(explain(response, name.url(), access_to(name.bucket)));
  }
}

base::Result<ObjectFacts> S3::stat(const ObjectName& name, const std::atomic<bool>* cancelled) const {
  SLUICE_TRY(const auto response, head(name, cancelled));
  return facts_of_object(name, response);
}

base::Result<Remote> S3::find(const ObjectName& name, const std::atomic<bool>* cancelled) const {
  SLUICE_TRY(const auto response, head(name, cancelled));
  const ObjectFacts facts = facts_of_object(name, response);
  Remote remote = remote_of(name, address(name), facts, access_to(name.bucket));
  remote.crc32c = facts.crc32c;
  if (!facts.crc32c) remote.checksum = checksum_of_head(response, name.bucket, on_aws());
  return remote;
}

base::Result<std::vector<ObjectFacts>> S3::list(const std::string& bucket, const std::string& prefix,
                                                bool flat) const {
  const std::string what = "listing s3://" + bucket + "/" + prefix + "*";
  const auto read_page = [&](Listing& listing, const std::string& token) -> base::Result<std::string> {
    std::string query = "list-type=2&encoding-type=url&prefix=" + percent_encode(prefix);
    if (flat) query += "&delimiter=%2F";
    if (!token.empty()) query += "&continuation-token=" + percent_encode(token);
    SLUICE_TRY(const auto response, expect_ok({bucket, "", "s3"}, query, {}, what));
    return read_s3_page(response.body, listing);
  };
  return list_pages(Listing(what, prefix, flat), read_page);
}

base::Result<std::string> read_s3_page(const std::string& body, Listing& listing) {
  SLUICE_TRY(const auto xml, parse_xml(body, "ListBucketResult", listing.what()));
  const auto root = xml.child("ListBucketResult");
  const bool encoded = std::string(root.child_value("EncodingType")) == "url";
  for (const auto item : root.children("Contents")) {
    ObjectFacts facts;
    facts.name = item.child_value("Key");
    if (encoded) facts.name = decode(facts.name);
    facts.generation = item.child_value("ETag");
    facts.size = base::number_of<std::uint64_t>(item.child_value("Size")).value_or(0);
    SLUICE_OK(listing.add(std::move(facts)));
  }
  return std::string(root.child_value("NextContinuationToken"));
}

base::Result<std::string> S3::read_text(const ObjectName& name) const {
  HttpRequest request;
  request.headers = {"x-amz-checksum-mode: ENABLED"};
  SLUICE_TRY(auto response, expect_ok(name, "", std::move(request), name.url()));
  const auto expected = facts_of_object(name, response).crc32c;
  if (expected && *expected != base::crc32c(response.body.data(), response.body.size()))
    return base::fail(Code::kDataLoss, name.url(), ": its bytes do not fit its crc32c");
  return std::move(response.body);
}

base::Result<std::unique_ptr<Upload>> S3::start_upload(const ObjectName& name,
                                                       const UploadOptions& options) const {
  SLUICE_OK(check_written_name(name, "object"));
  return std::make_unique<S3Upload>(*this, name, options);
}

base::Result<ObjectFacts> S3::copy(const ObjectName& from, const ObjectName& to,
                                   const UploadOptions& options) const {
  const std::string what = "copying " + from.url() + " to " + to.url();
  SLUICE_TRY(const ObjectFacts source, stat(from, options.cancelled));
  if (source.size > kLargestCopy) {
    SLUICE_OK(copy_in_parts(from, to, source, options));
  } else {
    HttpRequest request;
    request.method = "PUT";
    request.headers = copy_headers(from, source);
    for (std::string& header : condition_headers(options)) request.headers.push_back(std::move(header));
    request.stall_timeout = 300;  // nothing arrives while the service copies
    request.cancelled = options.cancelled;
    SLUICE_TRY(const auto response, expect_ok(to, "", std::move(request), what));
    SLUICE_TRY([[maybe_unused]] const auto xml, parse_answer(response.body, what));
  }
  SLUICE_TRY(const ObjectFacts facts, stat(to, options.cancelled));
  if (facts.size == source.size && (!facts.crc32c || !source.crc32c || facts.crc32c == source.crc32c))
    return facts;
  return base::fail(Code::kDataLoss, what, ": the copy differs from the original");
}

base::Status S3::copy_in_parts(const ObjectName& from, const ObjectName& to, const ObjectFacts& facts,
                               const UploadOptions& options) const {
  S3Parts parts(*this, to, options);
  for (std::uint64_t begin = 0; begin < facts.size; begin += kCopiedPart)
    SLUICE_OK(parts.copy(from, facts, begin, std::min(begin + kCopiedPart, facts.size) - 1));
  const auto status = parts.complete(std::nullopt);
  if (status || !is_repetition(status.error().code())) return status;
  const auto found = stat(to, options.cancelled);
  if (found && found->size == facts.size && parts.made(*found)) return {};
  return status;
}

base::Result<ObjectFacts> S3::append(const std::string& path, std::uint64_t size, const ObjectName& name,
                                     const ObjectFacts& old) const {
  const std::string what = "appending to " + name.url();
  UploadOptions options;
  options.if_generation = old.generation;
  S3Parts parts(*this, name, options);
  // Equal parts: a rest of less than 5 MiB would be refused.
  const std::uint64_t copies = (old.size + kCopiedPart - 1) / kCopiedPart;
  for (std::uint64_t i = 0; i < copies; ++i)
    SLUICE_OK(parts.copy(name, old, old.size * i / copies, old.size * (i + 1) / copies - 1));
  std::optional<std::uint32_t> crc = old.crc32c;
  for (std::uint64_t at = old.size; at < size;) {
    SLUICE_TRY(const std::string piece,
               read_part(path, at, std::min<std::uint64_t>(size, at + options.chunk_bytes)));
    SLUICE_OK(parts.put(piece));
    if (crc) crc = base::crc32c(piece.data(), piece.size(), *crc);
    at += piece.size();
  }
  const auto status = parts.complete(crc);
  if (!status && !is_repetition(status.error().code())) return tl::unexpected<Error>(status.error());
  const auto facts = stat(name);
  if (!facts) return status ? facts : base::Result<ObjectFacts>(tl::unexpected<Error>(status.error()));
  const bool there = facts->size == size && (!crc || !facts->crc32c || facts->crc32c == crc);
  // After a failure: the object is this one if it has this checksum, or other bytes than before in these
  // parts.
  const bool made = (crc && facts->crc32c) || (facts->generation != old.generation && parts.made(*facts));
  if (there && (status || made)) return facts;
  if (!status) return tl::unexpected<Error>(status.error());
  return base::fail(Code::kDataLoss, what, ": the object has ", facts->size, " bytes, expected ", size,
                    ": does something else write there?");
}

base::Status S3::remove(const ObjectName& name, const std::string&) const {
  HttpRequest request;
  request.method = "DELETE";
  SLUICE_TRY([[maybe_unused]] const auto response,
             expect_ok(name, "", std::move(request), "removing " + name.url()));
  return {};
}

base::Result<Store*> shared_s3() {
  static SharedStore shared;
  return shared.get([](std::shared_ptr<Http> http) -> base::Result<Store*> {
    SLUICE_TRY(auto credentials, find_aws_credentials(http));
    SLUICE_TRY(S3Settings settings, s3_settings_of_environment());
    return new S3(std::move(settings), std::move(http), std::move(credentials));
  });
}

}  // namespace sluice::cloud
