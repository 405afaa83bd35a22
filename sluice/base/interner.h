// A table that keeps each value once, so that values can be compared by their addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace sluice::base {

// Entries keep their addresses and are never removed. Threads: any.
template <typename Entry>
class Interner {
 public:
  // Returns the entry for which same(entry) holds, among the entries with that hash. If there is none, keeps
  // make(number), where `number` counts the entries before it.
  template <typename Same, typename Make>
  const Entry& find(uint64_t hash, const Same& same, const Make& make) {
    std::lock_guard lock(mutex_);
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto found = first; found != last; ++found) {
      if (same(*found->second)) return *found->second;
    }
    const Entry& added = entries_.emplace_back(make(entries_.size()));
    by_hash_.emplace(hash, &added);
    return added;
  }

 private:
  std::mutex mutex_;
  std::deque<Entry> entries_;
  std::unordered_multimap<uint64_t, const Entry*> by_hash_;
};

}  // namespace sluice::base
