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

// Answers on its own thread, from the files of this training's processes on this machine (process_status.h)
// and libtpu's metrics of its chips, both read for each request. A connection that sends no request within 2
// s, or one above 8 KiB, is closed. There are at most 32 connections; a further one closes the oldest. A
// request for a host name other than this one's is refused (421), so that a page in a browser cannot read the
// figures by giving this machine a name of its own.
class StatusServer {
 public:
  // `address` is as in cloud::parse_listen_address(). `process` belongs to the training that is shown.
  // kAlreadyExists: the port is in use.
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
  std::vector<std::unique_ptr<Connection>> connections_;  // used by the thread, the oldest first
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace sluice::monitor
