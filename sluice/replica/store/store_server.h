// The store where the processes of a run meet. Internal to this room.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/replica/store/store_table.h"
#include "sluice/replica/transport/sockets.h"

namespace sluice::replica {

// Answers, on a thread of its own, clients that have the run's key (run_key.h); without a key, all clients
// except other users of this machine. Others receive only the greeting: they have five seconds and 72 bytes,
// at most 256 of them are connected (the oldest makes room for the next), and nothing that they send is kept
// or written anywhere.
class StoreServer {
 public:
  static constexpr int kMaxStrangers = 256;
  static constexpr double kPatience = 5;  // seconds for a handshake
  static constexpr char kPurpose[] = "store";

  static base::Result<std::unique_ptr<StoreServer>> start(Listening listening, const std::string& key);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  // The endpoint for processes of this machine.
  const Endpoint& endpoint() const { return endpoint_; }

 private:
  struct Connection;
  StoreServer(Listening listening, const std::string& key, Descriptor events, Descriptor stop);
  void serve();
  void accept_from(int listener);
  // These return false if the connection is to be closed.
  bool move(Connection& connection);
  bool read(Connection& connection);
  bool write(Connection& connection);
  bool take(Connection& connection);
  bool shake_hands(Connection& connection);
  bool answer(Connection& connection, const std::string& message);
  void close_late_strangers();
  void drop(Connection& connection);

  const Listening listening_;
  const std::string key_;
  const Descriptor events_, stop_;
  Endpoint endpoint_;
  // Only for the thread:
  StoreTable table_;
  std::vector<std::unique_ptr<Connection>> connections_;  // by descriptor
  std::vector<Connection*> strangers_;                    // oldest first
  bool refused_one_ = false;
  std::thread thread_;
};

}  // namespace sluice::replica
