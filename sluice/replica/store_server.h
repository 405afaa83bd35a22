// The store at which the processes of a run meet. Internal to this room.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/replica/sockets.h"
#include "sluice/replica/store_table.h"

namespace sluice::replica {

// Answers, on a thread of its own, those that have the run's key (run_key.h); where there is none, whoever is
// not another user of this machine. Others get no word but the greeting: they have five seconds and 72 bytes,
// are at most 256 at a time, of which the oldest makes room for the next, and nothing of what they send is
// kept or written anywhere.
class StoreServer {
 public:
  static constexpr int kMaxStrangers = 256;
  static constexpr double kPatience = 5;  // seconds for a handshake
  static constexpr char kPurpose[] = "store";

  static base::Result<std::unique_ptr<StoreServer>> start(Listening listening, const std::string& key);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  // Where a process of this machine reaches it.
  const Endpoint& endpoint() const { return endpoint_; }

 private:
  struct Connection;
  StoreServer(Listening listening, const std::string& key, Descriptor events, Descriptor stop);
  void serve();
  void accept_from(int listener);
  // False when the connection is to be closed.
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
  // Of the thread:
  StoreTable table_;
  std::vector<std::unique_ptr<Connection>> connections_;  // by descriptor
  std::vector<Connection*> strangers_;                    // the oldest first
  bool refused_one_ = false;
  std::thread thread_;
};

}  // namespace sluice::replica
