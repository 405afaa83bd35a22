// A gRPC server with a few unary calls, for tools that observe a training.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/cloud/listen.h"
#include "sluice/profile/service/grpc_connection.h"

namespace sluice::profile {

struct GrpcLimits {
  size_t connections = 16;    // further connections are closed at once
  double request = 5;         // seconds for a complete request to arrive
  double idle = 60;           // seconds without a call until a connection is closed
  double stall = 20;          // seconds in which a peer must take 1 MiB of its answers
  size_t unsent = 256 << 20;  // bytes of answers for all peers; above, the peer with most of them is closed
};

// Serves on its own thread, which sleeps while nothing arrives.
class GrpcServer {
 public:
  // `handler` is called on the server's thread and must not wait.
  GrpcServer(cloud::Listener listener, GrpcConnection::Handler handler, const GrpcLimits& limits = {});
  // Waits some seconds for answers under way, and closes all connections; calls without an answer are
  // cancelled.
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
  const std::shared_ptr<Bell> bell_;  // calls may be answered after the server is gone
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace sluice::profile
