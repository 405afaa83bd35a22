// Unary calls of gRPC without TLS: one message in each direction, over HTTP/2.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "sluice/cloud/http.h"

namespace sluice::cloud {

// Returns a message in its wire form: a byte for "not compressed", its length in four bytes, the message.
std::string grpc_frame(std::string_view message);
// Returns the message in exactly one frame. kDataLoss for another text, kUnimplemented if it is compressed.
base::Result<std::string_view> grpc_message(std::string_view frame);

struct GrpcRequest {
  std::string address;            // host:port
  std::string method;             // "/package.Service/Method"
  std::string_view message = {};  // must stay valid until the answer arrives
  double timeout = 10;            // seconds, for the whole call
  size_t max_answer = 1 << 20;    // bytes
  const std::atomic<bool>* cancelled = nullptr;
};

// Returns the answer's message. Errors: the service's own status as our code, with its message; kUnavailable
// if nobody listens or the listener does not speak gRPC, kDeadlineExceeded, kCancelled, kDataLoss.
base::Result<std::string> call_grpc(Http& http, const GrpcRequest& request);

}  // namespace sluice::cloud
