#include "sluice/cloud/grpc.h"

#include <algorithm>

#include "sluice/base/clock.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"

namespace sluice::cloud {

constexpr size_t kHead = 5;  // bytes of a frame before its message

std::string grpc_frame(std::string_view message) {
  const auto size = static_cast<uint32_t>(message.size());
  std::string frame;
  frame.reserve(kHead + message.size());
  frame += '\0';
  for (const int shift : {24, 16, 8, 0}) frame += static_cast<char>(size >> shift & 0xff);
  return frame.append(message);
}

base::Result<std::string_view> grpc_message(std::string_view frame) {
  if (frame.size() < kHead)
    return base::fail(Code::kDataLoss, "expected one gRPC message, found ", frame.size(), " bytes");
  if (frame[0] == '\1') return base::fail(Code::kUnimplemented, "the gRPC message is compressed");
  size_t size = 0;
  for (size_t i = 1; i < kHead; ++i) size = size << 8 | static_cast<unsigned char>(frame[i]);
  if (frame[0] != '\0' || size != frame.size() - kHead)
    return base::fail(Code::kDataLoss, "expected a gRPC message of ", size, " bytes, found ",
                      frame.size() - kHead);
  return frame.substr(kHead);
}

base::Result<std::string> call_grpc(Http& http, const GrpcRequest& call) {
  const std::string body = grpc_frame(call.message);
  std::string answer;
  HttpRequest request;
  request.method = "POST";
  request.url = base::str("http://", call.address, call.method);
  request.headers = {"content-type: application/grpc", "te: trailers"};
  request.body = body;
  request.on_body = [&](const HttpResponse&, const char* bytes, size_t size) {
    answer.append(bytes, size);
    return answer.size() <= call.max_answer + kHead;
  };
  request.http2 = request.direct = true;
  request.total_timeout = std::max(call.timeout, 0.01);
  request.stall_timeout = request.total_timeout + 1;  // the service may be slow within the total time
  request.cancelled = call.cancelled;
  const base::Stopwatch watch;
  auto sent = http.once(request);
  if (!sent && sent.error().code() == Code::kAborted)
    return base::fail(Code::kResourceExhausted, call.address, call.method, ": the answer has more than ",
                      call.max_answer, " bytes");
  if (!sent && sent.error().code() == Code::kUnavailable && watch.seconds() >= request.total_timeout)
    return base::fail(Code::kDeadlineExceeded, call.address, call.method, ": no answer within ",
                      request.total_timeout, " s");
  SLUICE_TRY(const HttpResponse response, std::move(sent));
  const auto status = response.header("grpc-status");
  const auto code = base::number_of<int>(status.value_or(""));
  if (!code || *code < 0)
    return base::fail(Code::kUnavailable, call.address, " answered with HTTP status ", response.status,
                      " and no gRPC status");
  if (*code > 0)
    return base::fail(
        *code <= static_cast<int>(Code::kDataLoss) ? static_cast<Code>(*code) : Code::kUnknown,
        percent_decode(
            response.header("grpc-message").value_or(base::str("it answered with gRPC status ", *code))));
  SLUICE_TRY(const std::string_view message, grpc_message(answer));
  return std::string(message);
}

}  // namespace sluice::cloud
