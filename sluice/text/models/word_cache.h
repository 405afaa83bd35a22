// A cache for the ids of words that were already encoded.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/formats/hash.h"

namespace sluice::text {

// Holds up to about 40,000 words and 4 MB; a full cache is cleared. Threads: one at a time.
class WordCache {
 public:
  static constexpr std::size_t kMaxWord = 64, kMaxIds = 64;  // longer words are not cached

  struct Found {
    const std::uint32_t* ids = nullptr;  // null: not cached. Valid until the next put()
    std::size_t count = 0;
  };

  static std::uint64_t hash(std::string_view word) {
    std::uint64_t hash = word.size();
    const char* at = word.data();
    std::size_t left = word.size();
    for (; left >= 8; left -= 8, at += 8) {
      std::uint64_t piece;
      std::memcpy(&piece, at, 8);
      hash = base::mix_word(hash, piece);
    }
    std::uint64_t rest = 0;
    for (std::size_t i = 0; i < left; ++i) rest = rest << 8 | static_cast<unsigned char>(at[i]);
    return base::mix_word(hash, rest);
  }

  Found find(std::string_view word, std::uint64_t hash) const {
    const Slot& slot = slots_[place_of(word, hash)];
    if (slot.count == 0) return {};
    return {slot.count == 1 ? &slot.ids : ids_.data() + slot.ids, slot.count};
  }

  // Stores `count` ids, at least one.
  void put(std::string_view word, std::uint64_t hash, const std::uint32_t* ids, std::size_t count) {
    if (used_ == kSlots / 2 || texts_.size() > kMaxTexts || ids_.size() > kMaxTexts / 4) clear();
    Slot& slot = slots_[place_of(word, hash)];
    slot.hash = static_cast<std::uint32_t>(hash >> 32);
    slot.text = static_cast<std::uint32_t>(texts_.size());
    slot.length = static_cast<std::uint8_t>(word.size());
    slot.count = static_cast<std::uint8_t>(count);
    slot.ids = count == 1 ? ids[0] : static_cast<std::uint32_t>(ids_.size());
    texts_ += word;
    if (count > 1) ids_.insert(ids_.end(), ids, ids + count);
    ++used_;
  }

 private:
  static constexpr std::size_t kSlots = 1 << 16, kMaxTexts = 2 << 20;
  struct Slot {
    std::uint32_t hash = 0, text = 0;
    std::uint32_t ids = 0;  // where the ids begin in ids_, or the only id
    std::uint8_t length = 0, count = 0;
  };

  std::size_t place_of(std::string_view word, std::uint64_t hash) const {
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    std::size_t place = hash & (kSlots - 1);
    while (slots_[place].count != 0) {
      const Slot& slot = slots_[place];
      if (slot.hash == tag && slot.length == word.size() &&
          std::memcmp(texts_.data() + slot.text, word.data(), word.size()) == 0)
        break;
      place = (place + 1) & (kSlots - 1);
    }
    return place;
  }

  void clear() {
    slots_.assign(kSlots, Slot());
    texts_.clear();
    ids_.clear();
    used_ = 0;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
  std::string texts_;
  std::vector<std::uint32_t> ids_;
  std::size_t used_ = 0;
};

}  // namespace sluice::text
