// How often each key of a set occurs, counted on the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/session/backend.h"

namespace sluice::metrics {

// Keys with the number of times that each occurs, by ascending key.
using SortedCounts = std::vector<std::pair<int64_t, int64_t>>;

// There is an entry for each key that occurs, so that memory grows with the number of such keys.
// Threads: one at a time.
class KeyCounts {
 public:
  // Counts the keys of a batch once they are on the host, and those before it that have come. `keys`: int64
  // [N] on each replica; negative ones do not count. Does not wait.
  void add(sessions::Pending keys);
  // Waits for the batches that are still on their way.
  void finish();
  void clear();
  SortedCounts sorted() const;

  // Appends the counts to `bytes`, for another process; read() takes them from the front of `bytes` and adds
  // them. Returns false if they are cut off or no counts.
  void append_to(std::string& bytes) const;
  bool read(std::string_view& bytes);

 private:
  void count(const sessions::Pending& keys);

  std::deque<sessions::Pending> coming_;
  std::unordered_map<int64_t, int64_t> counts_;
};

}  // namespace sluice::metrics
