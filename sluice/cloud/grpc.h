// gRPC's unary calls without TLS: one message there, one back, over HTTP/2.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "sluice/cloud/http.h"

namespace sluice::cloud {

// A message as it travels: a byte that says "not compressed", its length in four bytes, and the message.
std::string grpc_frame(std::string_view message);
// The message in exactly one frame. kDataLoss for what is none, kUnimplemented for a compressed one.
base::Result<std::string_view> grpc_message(std::string_view frame);

struct GrpcRequest {
  std::string address;            // host:port
  std::string method;             // "/package.Service/Method"
  std::string_view message = {};  // must stay until the answer is there
  double timeout = 10;            // seconds, for all of it
  size_t max_answer = 1 << 20;    // bytes
  const std::atomic<bool>* cancelled = nullptr;
};

// The answer's message. Errors: the service's own status as our code, with its message; kUnavailable where
// nobody listens or what listens does not speak gRPC, kDeadlineExceeded, kCancelled, kDataLoss.
base::Result<std::string> call_grpc(Http& http, const GrpcRequest& request);

}  // namespace sluice::cloud
