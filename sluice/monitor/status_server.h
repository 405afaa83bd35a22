// The figures of a training over HTTP: /metrics for Prometheus, /status as JSON.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/cloud/listen.h"

namespace sluice::monitor {

// Answers on a thread of its own from what the processes of this training on this machine have written
// (process_status.h) and what libtpu says of its chips, both read when they are asked for. A connection that
// sends no request within 2 s, or one above 8 KiB, is closed; there are 32 at a time, of which the oldest
// makes room for the next. A request for another host's name than this one's is refused (421): a page in a
// browser cannot read the figures by giving this machine a name of its own.
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
  struct Connection;
  void serve();
  void accept_one();
  bool move(Connection& connection, bool ready) const;
  bool receive(Connection& connection) const;
  static bool send(Connection& connection);

  const cloud::Listener listener_;
  const int process_;
  std::vector<std::unique_ptr<Connection>> connections_;  // of the thread, the oldest first
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace sluice::monitor
