// Kernels that are made once for each shape. Internal to this room.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace sluice::kernels {

// A table that only grows: pointers to its kernels stay valid. Threads: any.
template <typename Kernel>
class Prepared {
 public:
  // Returns the kernel for the key, made by `make` at the first request; null if `make` returned null.
  const Kernel* find(const std::vector<int64_t>& key, const std::function<std::unique_ptr<Kernel>()>& make) {
    std::lock_guard lock(mutex_);
    const auto [entry, is_new] = kernels_.try_emplace(key);
    if (is_new) entry->second = make();
    return entry->second.get();
  }

 private:
  std::mutex mutex_;
  std::map<std::vector<int64_t>, std::unique_ptr<Kernel>> kernels_;
};

}  // namespace sluice::kernels
