// The figures of a training over HTTP: /metrics for Prometheus, /status as JSON.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "sluice/base/result.h"

namespace sluice::monitor {

// Where it listens: "9100" is that port of the loopback interface, "0.0.0.0:9100" and "[::]:9100" say another
// one.
struct ListenAddress {
  std::string host = "127.0.0.1";
  int port = 0;
};
base::Result<ListenAddress> parse_listen_address(const std::string& text);

// Answers on a thread of its own, one request at a time, from what the processes of this training on this
// machine have written (process_status.h) and what libtpu says of its chips, both read when they are asked
// for. A connection that sends no request within 2 s, or one above 8 KiB, is closed.
class StatusServer {
 public:
  // `address` as parse_listen_address() takes it; port 0: one that is free. `process`: whose training it is.
  // kAlreadyExists: the port is in use.
  static base::Result<std::unique_ptr<StatusServer>> start(const std::string& address, int process);
  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;
  int port() const { return port_; }

 private:
  StatusServer(int listener, int port, int process);
  void serve();
  void answer(int connection);

  const int listener_, port_, process_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace sluice::monitor
