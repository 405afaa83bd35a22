// What a peer sends to the profiler's port: HTTP/2, gRPC's frames and the messages.
#include <algorithm>
#include <memory>
#include <vector>

#include "sluice/profile/service/grpc_connection.h"
#include "sluice/profile/service/profiler_messages.h"
#include "tests/fuzz/demand.h"

namespace {

using namespace sluice;

constexpr size_t kPiece = 97, kMaxOutput = 4 << 20;

// Some calls are answered at once, others later, or never.
void handle(const std::shared_ptr<profile::GrpcCall>& call,
            std::vector<std::shared_ptr<profile::GrpcCall>>& open) {
  fuzz::demand(call->message.size() <= (64 << 10), "a message is bounded");
  if (const auto request = profile::parse_profile_request(call->message)) {
    fuzz::demand(request->duration_ms >= 0 && request->start_ns >= 0, "times are not negative");
    static_cast<void>(profile::text_of(*request));
  }
  static_cast<void>(profile::parse_monitor_request(call->message));
  static_cast<void>(profile::parse_terminate_request(call->message));
  static_cast<void>(profile::parse_profile_response(call->message));
  if (call->method == profile::kProfileMethod)
    open.push_back(call);
  else if (call->method == profile::kMonitorMethod)
    call->answer(profile::monitor_response("text", {}));
  else
    call->answer(base::fail(Code::kUnimplemented, "there is no ", call->method));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::shared_ptr<profile::GrpcCall>> open;
  {
    profile::GrpcConnection connection([&](const auto& call) { handle(call, open); }, [] {});
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    size_t sent = 0;
    bool goes_on = true;
    for (size_t at = 0; goes_on && at < bytes.size(); at += kPiece) {
      goes_on = connection.receive(bytes.substr(at, kPiece));
      fuzz::demand(connection.calls() <= 16, "calls at once are bounded");
      if (open.size() == 1 && !open[0]->is_cancelled()) open[0]->answer(std::string(100'000, 'x'));
      connection.flush();
      for (std::string_view out = connection.output(); !out.empty(); out = connection.output()) {
        sent += out.size();
        connection.sent(out.size());
      }
      goes_on = goes_on && !connection.is_over();
    }
    fuzz::demand(sent <= kMaxOutput, "a small request has no large answer");
    fuzz::demand(connection.incomplete() <= connection.calls(), "what is incomplete is a call");
  }
  fuzz::demand(std::all_of(open.begin(), open.end(), [](const auto& call) { return call->is_cancelled(); }),
               "what the connection leaves open is cancelled");
  return 0;
}
