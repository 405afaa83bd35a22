// One connection to the store that process 0 keeps. Internal to this room.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>

#include "sluice/base/result.h"
#include "sluice/replica/patient_thread.h"

namespace sluice::replica {

// Calls of a store, none of which waits for another process, so that one that does not return means that
// process 0 is stopped or cut off: it fails after `patience` (0: never). Threads: any; calls wait for each
// other.
class StoreClient {
 public:
  // `leader` names process 0 in errors, all of which are kUnavailable: "lost process 0 of 4 (…)".
  StoreClient(c10::intrusive_ptr<c10d::Store> store, std::string leader, int count,
              std::chrono::milliseconds patience);

  base::Status set(const std::string& key, const std::string& value);
  base::Result<std::string> get(const std::string& key);         // of a key that is there
  base::Result<bool> has(const std::vector<std::string>& keys);  // all of them
  base::Result<int64_t> add(const std::string& key, int64_t value);
  base::Status remove(const std::string& key);
  // Keeps the value that is there already, and returns it.
  base::Result<std::string> set_first(const std::string& key, const std::string& value);
  base::Result<c10::intrusive_ptr<c10d::Store>> clone();

 private:
  using Store = c10::intrusive_ptr<c10d::Store>;
  // `call` owns what it uses: it may be given up.
  template <typename Call>
  auto ask(Call call) -> base::Result<decltype(call(std::declval<c10d::Store&>()))>;
  tl::unexpected<Error> lost(const std::string& sign) const;

  const Store store_;
  const std::string leader_;
  const int count_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  PatientThread thread_{"sluice-store"};
};

}  // namespace sluice::replica
