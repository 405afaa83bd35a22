#include "sluice/cloud/upload.h"

#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"

namespace sluice::cloud {

ResumableUpload::ResumableUpload(const Storage& storage, ObjectName name, std::string session,
                                 const UploadOptions& options)
    : Upload(options.chunk_bytes),
      storage_(storage),
      name_(std::move(name)),
      session_(std::move(session)),
      options_(options) {}

ResumableUpload::~ResumableUpload() {
  if (finished_) return;
  // Best effort: an unfinished session expires by itself in a week, and holds no object's name.
  HttpRequest request;
  request.method = "DELETE";
  request.url = session_;
  request.direct = storage_.access().direct;
  request.total_timeout = 5;
  (void)storage_.access().once(std::move(request));
}

base::Status ResumableUpload::send_chunk() {
  SLUICE_TRY([[maybe_unused]] const auto none, send(false));
  return {};
}

base::Result<HttpResponse> ResumableUpload::put(std::string_view body, const std::string& content_range) {
  HttpRequest request;
  request.method = "PUT";
  request.url = session_;
  request.headers = {"Content-Range: " + content_range};
  request.body = body;
  request.direct = storage_.access().direct;
  request.stall_timeout = 60;  // the server needs a while for the end of a large object
  request.cancelled = options_.cancelled;
  return storage_.access().once(std::move(request));
}

// Returns the number of bytes that the server has, by its "308 Resume Incomplete".
base::Result<std::uint64_t> ResumableUpload::committed(const HttpResponse& response) const {
  const auto range = response.header("range");
  if (!range) return std::uint64_t{0};
  const std::size_t dash = range->find('-');
  const auto last = dash == std::string::npos
                        ? std::nullopt
                        : base::number_of<std::uint64_t>(std::string_view(*range).substr(dash + 1));
  if (!base::starts_with(*range, "bytes=0-") || !last)
    return base::fail(Code::kUnknown, "uploading ", name_.url(), ": the server says to have '", *range,
                      "': expected bytes=0-LAST");
  return *last + 1;
}

// Sends the buffer; returns the answer if the object is complete.
base::Result<std::optional<HttpResponse>> ResumableUpload::send(bool last) {
  const std::uint64_t begin = sent_, end = sent_ + buffer_.size();
  const std::string total = last ? std::to_string(end) : "*";
  const std::string what = "uploading " + name_.url();
  Backoff again = storage_.access().http->backoff(options_.cancelled);
  bool ask = false;  // after a failure: ask how much arrived
  while (true) {
    const std::string_view rest = std::string_view(buffer_).substr(sent_ - begin);
    const bool nothing = ask || rest.empty();
    const std::string range =
        nothing ? "bytes */" + total : base::str("bytes ", sent_, "-", end - 1, "/", total);
    const auto response = put(nothing ? std::string_view() : rest, range);
    const int status = response ? response->status : 0;
    if (response && (status == 200 || status == 201)) {
      if (!last) return base::fail(Code::kUnknown, what, ": the server took it for complete too early");
      return std::optional(*response);
    }
    if (response && status == 308) {
      SLUICE_TRY(const std::uint64_t have, committed(*response));
      if (have < sent_ || have > end)
        return base::fail(Code::kAborted, what, ": the server has ", have, " bytes, but had ", sent_, " of ",
                          end, " before");
      const bool moved = have > sent_;
      sent_ = have;
      if (moved) again.progress();
      if (sent_ == end && !last) {
        buffer_.clear();
        return std::optional<HttpResponse>();
      }
      if (moved || (ask && !rest.empty())) {
        ask = false;
        continue;
      }
    }
    if (response && (status == 404 || status == 410))
      return base::fail(Code::kAborted, what, ": the server has forgotten the upload (status ", status, ")");
    if (response && status != 308 && !is_transient(status))
      return tl::unexpected<Error>(explain(*response, what, storage_.access()));
    if (!response && response.error().code() != Code::kUnavailable) return base::fail_at(response, what);
    const Error cause = !response ? Error(Code::kUnavailable, what + ": " + response.error().what())
                                  : status_error(*response, what);
    SLUICE_OK(again.wait(cause, response ? retry_after(*response) : std::nullopt));
    ask = true;
  }
}

base::Result<ObjectFacts> ResumableUpload::check(const HttpResponse& response) {
  SLUICE_TRY(const ObjectFacts facts, parse_object(response.body, "uploading " + name_.url()));
  if (facts.size == written_ && (!facts.crc32c || *facts.crc32c == crc_)) return facts;
  // The stored object differs from what was sent: it must not stay.
  const auto removed = storage_.remove(name_, facts.generation);
  return base::fail(Code::kDataLoss, "uploading ", name_.url(), ": the object arrived damaged: ", facts.size,
                    " bytes with crc32c ", base64_of_crc32c(facts.crc32c.value_or(0)), " of ", written_,
                    " with ", base64_of_crc32c(crc_),
                    removed ? "; it was removed again" : "; it could not be removed: do not use it");
}

base::Result<ObjectFacts> ResumableUpload::finish() {
  SLUICE_TRY(const auto response, send(true));
  finished_ = true;
  return check(*response);
}

}  // namespace sluice::cloud
