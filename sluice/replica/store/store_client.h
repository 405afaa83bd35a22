// One connection to the store that process 0 keeps. Internal to this room.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/replica/run_key.h"
#include "sluice/replica/store/store_table.h"
#include "sluice/replica/transport/sockets.h"

namespace sluice::replica {

// A connection to the store on which both ends have proved that they have the run's key. Threads: one at a
// time.
class StoreConnection {
 public:
  // kPermissionDenied: the listener does not have the key.
  static base::Result<StoreConnection> open(const std::vector<Endpoint>& endpoints, const std::string& key,
                                            const Patience& patience);
  // Returns the store's answer; errors: those of the connection, and a refusal (kResourceExhausted).
  base::Result<StoreAnswer> ask(const StoreRequest& request, const Patience& patience);
  Endpoint endpoint() const { return peer_endpoint(socket_.number()); }

 private:
  explicit StoreConnection(Descriptor socket) : socket_(std::move(socket)) {}
  Descriptor socket_;
  Seal to_server_, from_server_;
};

// Calls of a store. None waits for another process, so a call that does not return means that process 0 is
// stopped or cut off: it fails after `patience` (0: never). Threads: any; calls wait for each other.
class StoreClient {
 public:
  // All keys get the prefix of a meeting's name. `leader` names process 0 in errors, which are kUnavailable,
  // "lost process 0 of 4 (…)", except if the store is full.
  StoreClient(StoreConnection connection, std::string meeting, std::string leader, int count,
              std::chrono::milliseconds patience);

  base::Status set(const std::string& key, const std::string& value);
  base::Result<std::string> get(const std::string& key);         // of an existing key
  base::Result<bool> has(const std::vector<std::string>& keys);  // whether all exist
  base::Result<int64_t> add(const std::string& key, int64_t value);
  base::Status remove(const std::string& key);
  // Keeps an existing value, and returns it.
  base::Result<std::string> set_first(const std::string& key, const std::string& value);

 private:
  base::Result<StoreAnswer> ask(StoreOrder order, std::vector<std::string> words);
  tl::unexpected<Error> lost(const std::string& sign) const;

  StoreConnection connection_;
  const std::string meeting_, leader_;
  const int count_;
  const std::chrono::milliseconds patience_;
  std::string broken_;  // the sign of the first failure: later calls fail too
  std::mutex mutex_;
};

}  // namespace sluice::replica
