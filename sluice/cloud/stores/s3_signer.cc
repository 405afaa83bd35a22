#include "sluice/cloud/stores/s3_signer.h"

#include <curl/curl.h>

#include <ctime>

#include "sluice/base/log.h"
#include "sluice/cloud/stores/rest.h"

namespace sluice::cloud {

base::Result<HttpResponse> S3Signer::once(Http& http, HttpRequest request) {
  request.exact_path = true;
  if (credentials_->anonymous()) return http.once(request);
  const std::size_t headers = request.headers.size();
  for (int round = 0;; ++round) {
    SLUICE_TRY(const AwsKeys keys, credentials_->keys());
    request.headers.resize(headers);
    // A signature is valid only for this request, so it may go by http to a store in the local network, as
    // with AWS' own tools. A session token is sent with every request.
    request.secret = {};
    if (!keys.session.empty())
      request.secret = {"the session token of " + credentials_->who(), endpoint_from_};
    sign_for_aws(request, keys, region_, "s3", std::time(nullptr) + clock_is_behind_);
    auto response = http.once(request);
    if (round > 0 || !response || response->status / 100 != 4 || !mended(*response, keys)) return response;
  }
}

bool S3Signer::mended(const HttpResponse& response, const AwsKeys& keys) {
  const std::string code = service_error(response.body).code;
  if (code == "ExpiredToken" || code == "ExpiredTokenException") {
    credentials_->reject(keys);
    return true;
  }
  if (code == "RequestTimeout") return true;  // the body came too slowly, though the status is 400
  if (code != "RequestTimeTooSkewed") return false;
  const std::time_t there = curl_getdate(response.header("date").value_or("").c_str(), nullptr);
  if (there <= 0) return false;
  const std::time_t behind = there - std::time(nullptr);
  if (clock_is_behind_.exchange(behind) == 0)
    base::warn("this machine's clock is ", behind > 0 ? behind : -behind, " s ",
               behind > 0 ? "behind" : "ahead of",
               " S3's: requests are signed with S3's time; set the clock");
  return true;
}

Error S3Signer::explain(const HttpResponse& response, const std::string& what) const {
  const Error error = service_status_error(response, what);
  const std::string code = service_error(response.body).code;
  const std::string by = ". The request was made by " + credentials_->who();
  std::string advice;
  Code meaning = error.code();
  if (code == "NoSuchBucket") {
    advice = " (no such bucket: check its name, and AWS_ENDPOINT_URL for a store that is not AWS')";
  } else if (meaning == Code::kNotFound) {
    advice = " (no such object or bucket)";
  } else if (code == "InvalidAccessKeyId" || code == "SignatureDoesNotMatch") {
    advice = by + ": its id or its secret is wrong for this endpoint";
  } else if (code == "ExpiredToken" || code == "InvalidToken") {
    advice = by + ": get a new session, for example with 'aws sso login'";
    meaning = Code::kPermissionDenied;
  } else if (code == "RequestTimeTooSkewed") {
    advice = ". Set this machine's clock";
  } else if (response.status == 301 || code == "AuthorizationHeaderMalformed") {
    advice = base::str(". The request was made for the region ", region_,
                       ": set AWS_REGION to the bucket's, or AWS_ENDPOINT_URL to its store");
    meaning = Code::kInvalidArgument;
  } else if (meaning == Code::kPermissionDenied && credentials_->anonymous()) {
    advice = by + ". Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run 'aws configure'";
  } else if (meaning == Code::kPermissionDenied) {
    advice =
        by +
        ": it needs s3:GetObject (to read), s3:PutObject (to write) and s3:ListBucket, without which missing "
        "objects look forbidden, too";
  }
  return Error(meaning, error.what() + advice);
}

}  // namespace sluice::cloud
