#include "sluice/cloud/stores/s3_upload.h"

#include "sluice/base/formats/crc32c.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/stores/rest.h"

namespace sluice::cloud {
namespace {

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text)
    result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '"' ? "&quot;" : std::string(1, c);
  return result;
}

}  // namespace

std::vector<std::string> copy_headers(const ObjectName& from, const ObjectFacts& facts) {
  return {"x-amz-copy-source: " + percent_encode(from.bucket) + "/" + percent_encode(from.object),
          "x-amz-copy-source-if-match: " + facts.generation};
}

S3Parts::~S3Parts() {
  if (id_.empty()) return;
  // Best effort: the parts of an unfinished upload cost money until the bucket's rules remove them.
  HttpRequest request;
  request.method = "DELETE";
  request.total_timeout = 5;
  (void)store_.send(name_, "uploadId=" + percent_encode(id_), std::move(request), "ending an upload");
}

base::Status S3Parts::begin() {
  const std::string what = "uploading " + name_.url();
  HttpRequest request;
  request.method = "POST";
  request.headers = {"Content-Type: application/octet-stream", "x-amz-checksum-algorithm: CRC32C"};
  if (store_.on_aws()) request.headers.push_back("x-amz-checksum-type: FULL_OBJECT");
  request.cancelled = options_.cancelled;
  SLUICE_TRY(const auto response, store_.expect_ok(name_, "uploads=", std::move(request), what));
  SLUICE_TRY(const auto xml, parse_answer(response.body, what));
  id_ = xml.document_element().child_value("UploadId");
  if (id_.empty()) return base::fail(Code::kUnknown, what, ": the server gave no UploadId");
  return {};
}

base::Result<HttpResponse> S3Parts::send(std::vector<std::string> headers, const std::string& bytes) {
  if (id_.empty()) SLUICE_OK(begin());
  HttpRequest request;
  request.method = "PUT";
  request.headers = std::move(headers);
  request.body = bytes;
  request.stall_timeout = kUploadPatience;
  request.cancelled = options_.cancelled;
  const std::string query = base::str("partNumber=", tags_.size() + 1, "&uploadId=", percent_encode(id_));
  return store_.expect_ok(name_, query, std::move(request), "uploading " + name_.url());
}

base::Status S3Parts::put(const std::string& bytes) {
  const std::string sum = base64_of_crc32c(base::crc32c(bytes.data(), bytes.size()));
  SLUICE_TRY(const auto response, send({"x-amz-checksum-crc32c: " + sum}, bytes));
  tags_.push_back(response.header("etag").value_or(""));
  sums_.push_back(sum);
  return {};
}

base::Status S3Parts::copy(const ObjectName& from, const ObjectFacts& facts, std::uint64_t first,
                           std::uint64_t last) {
  auto headers = copy_headers(from, facts);
  headers.push_back(base::str("x-amz-copy-source-range: bytes=", first, "-", last));
  SLUICE_TRY(const auto response, send(std::move(headers), ""));
  SLUICE_TRY(const auto xml, parse_answer(response.body, "copying to " + name_.url()));
  tags_.emplace_back(xml.document_element().child_value("ETag"));
  sums_.emplace_back(xml.document_element().child_value("ChecksumCRC32C"));
  return {};
}

base::Status S3Parts::complete(std::optional<std::uint32_t> crc32c) {
  const std::string what = "uploading " + name_.url();
  std::string body = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (std::size_t i = 0; i < tags_.size(); ++i) {
    body += base::str("<Part><PartNumber>", i + 1, "</PartNumber><ETag>", escaped(tags_[i]), "</ETag>");
    if (!sums_[i].empty()) body += "<ChecksumCRC32C>" + sums_[i] + "</ChecksumCRC32C>";
    body += "</Part>";
  }
  body += "</CompleteMultipartUpload>";
  HttpRequest request;
  request.method = "POST";
  request.headers = condition_headers(options_);
  request.headers.push_back("Content-Type: application/xml");
  if (crc32c && store_.on_aws()) {
    request.headers.push_back("x-amz-checksum-crc32c: " + base64_of_crc32c(*crc32c));
    request.headers.push_back("x-amz-checksum-type: FULL_OBJECT");
  }
  request.body = body;
  request.stall_timeout = kUploadPatience;
  request.cancelled = options_.cancelled;
  SLUICE_TRY(auto response,
             store_.expect_ok(name_, "uploadId=" + percent_encode(id_), std::move(request), what));
  if (const auto xml = parse_answer(response.body, what); !xml)
    return base::fail_at(xml, response.body.substr(0, 200));
  id_.clear();
  return {};
}

bool is_repetition(Code code) {
  return code == Code::kFailedPrecondition || code == Code::kNotFound || code == Code::kAlreadyExists;
}

bool S3Parts::made(const ObjectFacts& facts) const {
  const std::string end = base::str("-", tags_.size());
  return !tags_.empty() &&
         (base::ends_with(facts.generation, end + "\"") || base::ends_with(facts.generation, end));
}

base::Status S3Upload::send_chunk() {
  SLUICE_OK(parts_.put(buffer_));
  buffer_.clear();
  return {};
}

base::Status S3Upload::put_whole() {
  HttpRequest request;
  request.method = "PUT";
  request.headers = condition_headers(options_);
  request.headers.push_back("Content-Type: application/octet-stream");
  request.headers.emplace_back("x-amz-sdk-checksum-algorithm: CRC32C");
  request.headers.push_back("x-amz-checksum-crc32c: " + base64_of_crc32c(crc_));
  request.body = buffer_;
  request.stall_timeout = kUploadPatience;
  request.cancelled = options_.cancelled;
  SLUICE_TRY([[maybe_unused]] const auto response,
             store_.expect_ok(name_, "", std::move(request), "uploading " + name_.url()));
  return {};
}

base::Result<ObjectFacts> S3Upload::finish() {
  base::Status status;
  if (parts_.empty()) {
    status = put_whole();
  } else {
    status = parts_.put(buffer_);
    if (status) status = parts_.complete(crc_);
  }
  // The object may exist although its request failed: the answer was lost, and the repetition refused.
  if (!status && !is_repetition(status.error().code())) return tl::unexpected<Error>(status.error());
  const auto facts = store_.stat(name_, options_.cancelled);
  const bool there = facts && facts->size == written_ && facts->crc32c.value_or(crc_) == crc_;
  if (there && (status || facts->crc32c || parts_.made(*facts))) return facts;
  if (!status) return tl::unexpected<Error>(status.error());
  if (!facts) return facts;
  return base::fail(Code::kDataLoss, "uploading ", name_.url(), ": the object has ", facts->size,
                    " bytes, expected ", written_, " with crc32c ", base64_of_crc32c(crc_),
                    ": does something else write there?");
}

}  // namespace sluice::cloud
