// A gRPC server of a few unary calls, for tools that look at a training.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/cloud/listen.h"
#include "sluice/profile/service/grpc_connection.h"

namespace sluice::profile {

struct GrpcLimits {
  size_t connections = 16;    // what comes beyond these is closed at once
  double request = 5;         // seconds for a request to come whole
  double idle = 60;           // seconds that a connection may have no call
  double stall = 20;          // seconds in which a peer takes less than 1 MiB of its answers
  size_t unsent = 256 << 20;  // bytes of answers for all peers: whoever has most of them is closed beyond
};

// Serves on a thread of its own, which sleeps while nothing comes.
class GrpcServer {
 public:
  // `handler` is called on the server's thread and must not wait.
  GrpcServer(cloud::Listener listener, GrpcConnection::Handler handler, const GrpcLimits& limits = {});
  // Waits some seconds for answers that are on their way, and closes all connections; calls without an answer
  // are cancelled.
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  const cloud::ListenAddress& address() const { return listener_.address(); }

 private:
  class Peer;
  class Bell;
  void serve();
  void close_greedy(std::vector<std::unique_ptr<Peer>>& peers) const;

  const cloud::Listener listener_;
  const GrpcConnection::Handler handler_;
  const GrpcLimits limits_;
  const std::shared_ptr<Bell> bell_;  // calls may be answered when the server is gone
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace sluice::profile
