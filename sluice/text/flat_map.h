// A hash table of 64-bit keys in one block of memory, for look-ups of merges and trie edges.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/base/formats/hash.h"

namespace sluice::text {

// Value must be small and cheap to copy. Threads: any number of them may call find().
template <typename Value>
class FlatMap {
 public:
  FlatMap() { resize(16); }

  // Returns the value of a key other than 2^64 − 1, which is inserted as Value() if it is missing.
  Value& operator[](std::uint64_t key) {
    if ((used_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slots_[place_of(key)];
    if (slot.key == kEmpty) {
      slot.key = key;
      slot.value = Value();
      ++used_;
    }
    return slot.value;
  }
  // Returns null if the key is missing.
  const Value* find(std::uint64_t key) const {
    const Slot& slot = slots_[place_of(key)];
    return slot.key == kEmpty ? nullptr : &slot.value;
  }
  std::size_t size() const { return used_; }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t key = kEmpty;
    Value value{};
  };

  std::size_t place_of(std::uint64_t key) const {
    std::size_t place = (key * 0x9E3779B97F4A7C15ull) >> shift_;
    while (slots_[place].key != key && slots_[place].key != kEmpty) place = (place + 1) & (slots_.size() - 1);
    return place;
  }
  void resize(std::size_t slots) {
    slots_.assign(slots, Slot());
    shift_ = 64;
    for (; slots > 1; slots /= 2) --shift_;
  }
  void grow() {
    std::vector<Slot> old = std::move(slots_);
    resize(old.size() * 2);
    for (const Slot& slot : old)
      if (slot.key != kEmpty) slots_[place_of(slot.key)] = slot;
  }

  std::vector<Slot> slots_;  // their number is a power of two, and at most half of them are used
  std::size_t used_ = 0;
  int shift_ = 64;
};

}  // namespace sluice::text
