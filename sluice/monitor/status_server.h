// The figures of a training over HTTP: /metrics for Prometheus, /status as JSON.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "sluice/base/result.h"
#include "sluice/cloud/listen.h"

namespace sluice::monitor {

// Answers on a thread of its own, one request at a time, from what the processes of this training on this
// machine have written (process_status.h) and what libtpu says of its chips, both read when they are asked
// for. A connection that sends no request within 2 s, or one above 8 KiB, is closed.
class StatusServer {
 public:
  // `address` as cloud::parse_listen_address() takes it. `process`: whose training it is. kAlreadyExists: the
  // port is in use.
  static base::Result<std::unique_ptr<StatusServer>> start(const std::string& address, int process);
  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;
  int port() const { return listener_.address().port; }

 private:
  StatusServer(cloud::Listener listener, int process);
  void serve();
  void answer(int connection);

  const cloud::Listener listener_;
  const int process_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace sluice::monitor
