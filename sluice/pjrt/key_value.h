// The store through which the plugins of several processes find each other.
#pragma once

#include <chrono>
#include <string>

#include "sluice/base/result.h"
#include "sluice/pjrt/c_api.h"

namespace sluice::pjrt {

// Texts under keys, the same for all processes of a run. Threads: any, several at the same time.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;
  virtual base::Status put(const std::string& key, const std::string& value) = 0;
  // kNotFound for a missing key.
  virtual base::Result<std::string> try_get(const std::string& key) = 0;
  // Waits for the key; kDeadlineExceeded if it does not come.
  virtual base::Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) = 0;
};

// Gives the plugin that creates a client this store, which must outlive the client.
void offer_store(KeyValueStore& store, c::PJRT_Client_Create_Args& args);

}  // namespace sluice::pjrt
