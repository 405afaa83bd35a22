// AWS Signature Version 4. libcurl has it too, but 7.88 (Debian 12) signs neither queries nor the headers of
// S3 as the service requires.
#pragma once

#include <ctime>
#include <string>

#include "sluice/cloud/http.h"

namespace sluice::cloud {

struct AwsKeys {
  std::string id, secret;   // never in a message or a log, except the id
  std::string session;      // the session token; may be ""
  std::time_t expires = 0;  // seconds since 1970; 0: never
};

// Adds Authorization and its x-amz- headers. The request's host, path, query, all its x-amz- headers and its
// body are signed. The URL must be percent-encoded as by percent_encode.
void sign_for_aws(HttpRequest& request, const AwsKeys& keys, const std::string& region,
                  const std::string& service, std::time_t now);

}  // namespace sluice::cloud
