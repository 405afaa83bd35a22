#include "sluice/metrics/key_counts.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

namespace sluice::metrics {

void KeyCounts::add(sessions::Pending keys) {
  coming_.push_back(std::move(keys));
  for (; !coming_.empty() && coming_.front().ready(); coming_.pop_front()) count(coming_.front());
}

void KeyCounts::finish() {
  for (; !coming_.empty(); coming_.pop_front()) count(coming_.front());
}

void KeyCounts::clear() {
  coming_.clear();
  counts_.clear();
}

SortedCounts KeyCounts::sorted() const {
  SortedCounts all(counts_.begin(), counts_.end());
  std::sort(all.begin(), all.end());
  return all;
}

void KeyCounts::append_to(std::string& bytes) const {
  const SortedCounts all = sorted();
  const auto append = [&](int64_t number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  append(static_cast<int64_t>(all.size()));
  for (const auto& [key, number] : all) {
    append(key);
    append(number);
  }
}

bool KeyCounts::read(std::string_view& bytes) {
  const auto next = [&] {
    int64_t number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    bytes.remove_prefix(sizeof number);
    return number;
  };
  if (bytes.size() < sizeof(int64_t)) return false;
  const int64_t size = next();
  if (size < 0 || static_cast<uint64_t>(size) > bytes.size() / (2 * sizeof(int64_t))) return false;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t key = next(), number = next();
    if (key < 0 || number < 0) return false;
    int64_t& count = counts_[key];
    if (__builtin_add_overflow(count, number, &count)) return false;
  }
  return true;
}

void KeyCounts::count(const sessions::Pending& keys) {
  for (const at::Tensor& of_replica : keys.get()) {
    const at::Tensor flat = of_replica.contiguous();
    const auto* const all = flat.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < flat.numel(); ++i)
      if (all[i] >= 0) ++counts_[all[i]];
  }
}

}  // namespace sluice::metrics
