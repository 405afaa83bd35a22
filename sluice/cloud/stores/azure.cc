#include "sluice/cloud/stores/azure.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "sluice/base/formats/base64.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/credentials/token_request.h"
#include "sluice/cloud/listing.h"
#include "sluice/cloud/object_reader.h"
#include "sluice/cloud/stores/rest.h"

namespace sluice::cloud {
namespace {

std::string md5_in_base64(Digest& digest) { return base::base64(digest.bytes()); }

std::string md5_of(const std::string& bytes) {
  Digest digest(ChecksumKind::kMd5);
  digest.add(bytes.data(), bytes.size());
  return md5_in_base64(digest);
}

// Blocks are joined when all are sent; the blocks of an upload that is dropped expire in a week.
class BlockUpload : public Upload {
 public:
  BlockUpload(const Azure& store, ObjectName name, const UploadOptions& options)
      : Upload(options.chunk_bytes),
        store_(store),
        name_(std::move(name)),
        options_(options),
        digest_(ChecksumKind::kMd5) {}

  base::Result<ObjectFacts> finish() override {
    std::string md5;
    const bool small = blocks_.empty() && (!options_.grows || buffer_.empty());
    const auto status = small ? put_whole(md5) : join(md5);
    const bool repeated = !status && status.error().code() == Code::kFailedPrecondition;
    if (!status && !repeated) return tl::unexpected<Error>(status.error());
    SLUICE_TRY(const Remote remote, store_.find(name_, options_.cancelled));
    const bool there =
        remote.size == written_ && remote.checksum && remote.checksum->value == hexadecimal_of_base64(md5);
    // The blob may exist although its request failed: the answer was lost, and the repetition refused.
    if (!status && !there) return tl::unexpected<Error>(status.error());
    if (!there)
      return base::fail(Code::kDataLoss, "uploading ", name_.url(), ": the blob has ", remote.size,
                        " bytes, expected ", written_, " with the MD5 ", md5,
                        ": does something else write there?");
    return ObjectFacts{name_.object, remote.size, remote.version, std::nullopt};
  }

 private:
  base::Status send_chunk() override {
    char id[16];
    std::snprintf(id, sizeof id, "%09zu", blocks_.size());
    const std::string block = base::base64(std::string_view(id, 9));
    HttpRequest request = put(buffer_);
    request.headers = {"Content-MD5: " + md5_of(buffer_)};
    SLUICE_OK(send("comp=block&blockid=" + percent_encode(block), std::move(request)));
    blocks_.push_back(block);
    digest_.add(buffer_.data(), buffer_.size());
    buffer_.clear();
    return {};
  }

  base::Status put_whole(std::string& md5) {
    md5 = md5_of(buffer_);
    HttpRequest request = put(buffer_);
    request.headers = condition_headers(options_);
    request.headers.emplace_back("x-ms-blob-type: BlockBlob");
    request.headers.push_back("Content-MD5: " + md5);
    return send("", std::move(request));
  }

  base::Status join(std::string& md5) {
    SLUICE_OK(send_chunk());
    md5 = md5_in_base64(digest_);
    std::string body = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>";
    for (const std::string& block : blocks_) body += "<Uncommitted>" + block + "</Uncommitted>";
    body += "</BlockList>";
    HttpRequest request = put(body);
    request.headers = condition_headers(options_);
    request.headers.push_back("x-ms-blob-content-md5: " + md5);
    return send("comp=blocklist", std::move(request));
  }

  HttpRequest put(std::string_view body) const {
    HttpRequest request;
    request.method = "PUT";
    request.body = body;
    request.stall_timeout = kUploadPatience;
    request.cancelled = options_.cancelled;
    return request;
  }

  base::Status send(const std::string& query, HttpRequest request) const {
    request.headers.emplace_back("Content-Type: application/octet-stream");
    SLUICE_TRY([[maybe_unused]] const auto response,
               store_.expect_ok(name_, query, std::move(request), "uploading " + name_.url()));
    return {};
  }

  const Azure& store_;
  const ObjectName name_;
  const UploadOptions options_;
  Digest digest_;                    // of the blocks
  std::vector<std::string> blocks_;  // their ids
};

std::string account_in(const std::string& bucket) { return bucket.substr(0, bucket.find('/')); }

}  // namespace

Azure::Azure(AzureSettings settings, std::shared_ptr<Http> http)
    : settings_(std::move(settings)), http_(std::move(http)) {}

std::string Azure::address(const ObjectName& name) const {
  const std::string account = account_in(name.bucket);
  const std::string container = percent_encode(name.bucket.substr(account.size() + 1));
  return settings_.place_of(account) + "/" + container +
         (name.object.empty() ? "" : "/" + percent_encode_path(name.object));
}

Access Azure::access_to(const ObjectName& name) const {
  Access access{http_, nullptr};
  if (!settings_.endpoint.empty()) access.direct = is_loopback(host_of_url(settings_.endpoint).value_or(""));
  const std::string account = account_in(name.bucket);
  const std::lock_guard lock(mutex_);
  auto& signer = signers_[account];
  if (signer == nullptr) signer = std::make_shared<AzureSigner>(account, settings_);
  access.signer = signer;
  return access;
}

base::Result<HttpResponse> Azure::expect_ok(const ObjectName& name, const std::string& query,
                                            HttpRequest request, const std::string& what) const {
  request.url = address(name) + (query.empty() ? "" : "?" + query);
  const Access access = access_to(name);
  SLUICE_TRY(auto response, access.send(std::move(request), what));
  if (response.status / 100 != 2) return tl::unexpected<Error>(explain(response, what, access));
  return response;
}

base::Result<HttpResponse> Azure::head(const ObjectName& name, const std::atomic<bool>* cancelled) const {
  HttpRequest request;
  request.method = "HEAD";
  request.cancelled = cancelled;
  return expect_ok(name, "", std::move(request), name.url());
}

base::Result<ObjectFacts> Azure::stat(const ObjectName& name, const std::atomic<bool>* cancelled) const {
  SLUICE_TRY(const auto response, head(name, cancelled));
  return facts_of_head(name, response);
}

base::Result<Remote> Azure::find(const ObjectName& name, const std::atomic<bool>* cancelled) const {
  SLUICE_TRY(const auto response, head(name, cancelled));
  Remote remote = remote_of(name, address(name), facts_of_head(name, response), access_to(name));
  const std::string md5 = hexadecimal_of_base64(response.header("content-md5").value_or(""));
  if (md5.size() == 32) remote.checksum = Checksum{ChecksumKind::kMd5, md5};
  return remote;
}

base::Result<std::vector<ObjectFacts>> Azure::list(const std::string& bucket, const std::string& prefix,
                                                   bool flat) const {
  const ObjectName container{bucket, "", "az"};
  const std::string what = "listing az://" + bucket + "/" + prefix + "*";
  const auto read_page = [&](Listing& listing, const std::string& token) -> base::Result<std::string> {
    std::string query = "restype=container&comp=list&prefix=" + percent_encode(prefix);
    if (flat) query += "&delimiter=%2F";
    if (!token.empty()) query += "&marker=" + percent_encode(token);
    SLUICE_TRY(const auto response, expect_ok(container, query, {}, what));
    return read_azure_page(response.body, listing);
  };
  return list_pages(Listing(what, prefix, flat), read_page);
}

base::Result<std::string> read_azure_page(const std::string& body, Listing& listing) {
  SLUICE_TRY(const auto xml, parse_xml(body, "EnumerationResults", listing.what()));
  const auto root = xml.child("EnumerationResults");
  for (const auto item : root.child("Blobs").children("Blob")) {
    const auto properties = item.child("Properties");
    ObjectFacts facts;
    facts.name = item.child_value("Name");
    if (item.child("Name").attribute("Encoded").as_bool()) facts.name = percent_decode(facts.name);
    facts.size = base::number_of<std::uint64_t>(properties.child_value("Content-Length")).value_or(0);
    facts.generation = properties.child_value("Etag");
    if (!base::starts_with(facts.generation, "\"")) facts.generation = "\"" + facts.generation + "\"";
    SLUICE_OK(listing.add(std::move(facts)));
  }
  return std::string(root.child_value("NextMarker"));
}

base::Result<std::string> Azure::read_text(const ObjectName& name) const {
  SLUICE_TRY(auto response, expect_ok(name, "", {}, name.url()));
  const auto md5 = response.header("content-md5");
  if (md5 && *md5 != md5_of(response.body))
    return base::fail(Code::kDataLoss, name.url(), ": its bytes do not fit its MD5");
  return std::move(response.body);
}

base::Result<std::unique_ptr<Upload>> Azure::start_upload(const ObjectName& name,
                                                          const UploadOptions& options) const {
  SLUICE_OK(check_written_name(name, "blob"));
  return std::make_unique<BlockUpload>(*this, name, options);
}

bool Azure::copies(const ObjectName& from, const ObjectName& to) const {
  return from.scheme == to.scheme && account_in(from.bucket) == account_in(to.bucket);
}

base::Result<ObjectFacts> Azure::copy(const ObjectName& from, const ObjectName& to,
                                      const UploadOptions& options) const {
  const std::string what = "copying " + from.url() + " to " + to.url();
  SLUICE_TRY(const ObjectFacts source, stat(from, options.cancelled));
  HttpRequest request;
  request.method = "PUT";
  request.headers = condition_headers(options);
  // The signature is valid only for its own account.
  const bool ours = settings_.account.empty() || settings_.account == account_in(from.bucket);
  request.headers.push_back("x-ms-copy-source: " + address(from) +
                            (settings_.sas.empty() || !ours ? "" : "?" + settings_.sas));
  request.headers.push_back("x-ms-source-if-match: " + source.generation);
  request.cancelled = options.cancelled;
  SLUICE_TRY(auto response, expect_ok(to, "", std::move(request), what));
  while (response.header("x-ms-copy-status") == "pending") {
    http_->options().clock.sleep(1, options.cancelled);
    if (options.cancelled != nullptr && *options.cancelled) return cancelled_error(what);
    SLUICE_TRY(response, head(to, options.cancelled));
  }
  if (response.header("x-ms-copy-status") != "success")
    return base::fail(Code::kUnknown, what, ": the copy ended as '",
                      response.header("x-ms-copy-status").value_or(""), "'");
  SLUICE_TRY(const ObjectFacts facts, stat(to, options.cancelled));
  if (facts.size == source.size) return facts;
  return base::fail(Code::kDataLoss, what, ": the copy differs from the original");
}

base::Status Azure::remove(const ObjectName& name, const std::string& generation) const {
  HttpRequest request;
  request.method = "DELETE";
  if (!generation.empty()) request.headers = {"If-Match: " + generation};
  SLUICE_TRY([[maybe_unused]] const auto response,
             expect_ok(name, "", std::move(request), "removing " + name.url()));
  return {};
}

base::Result<Store*> shared_azure() {
  static SharedStore shared;
  return shared.get([](std::shared_ptr<Http> http) -> base::Result<Store*> {
    SLUICE_TRY(AzureSettings settings, azure_settings_of_environment(http));
    return new Azure(std::move(settings), std::move(http));
  });
}

}  // namespace sluice::cloud
