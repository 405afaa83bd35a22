// Random numbers that depend only on their keys: the same on every machine, for every compiler and thread
// count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "sluice/base/formats/hash.h"

namespace sluice::base {

// Mixes a 64-bit value well (the finaliser of SplitMix64).
constexpr uint64_t mix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// Combines several keys to one, in their order: key({seed, epoch, shard}).
constexpr uint64_t key(std::initializer_list<uint64_t> parts) {
  uint64_t hash = 0x736C75696365ull;
  for (uint64_t part : parts) hash = mix64(hash ^ mix64(part));
  return hash;
}

// Makes a key of a text, for names of shards and samples.
constexpr uint64_t key(std::string_view text) { return mix64(hash_text(text)); }

// A xoshiro256** generator, seeded by keys. Its whole state is four words, which a checkpoint can keep.
// Threads: one at a time.
class Random {
 public:
  using result_type = uint64_t;
  struct State {
    uint64_t words[4];
    bool operator==(const State&) const = default;
  };

  // Two generators with different keys give unrelated numbers: Random({seed, epoch, worker}).
  explicit Random(std::initializer_list<uint64_t> parts) : Random(key(parts)) {}
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_.words) {
      word = mix64(seed);
      seed += 0x9E3779B97F4A7C15ull;
    }
  }
  explicit Random(const State& state) : state_(state) {}

  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }
  uint64_t operator()() {
    uint64_t* s = state_.words;
    const uint64_t result = rotate(s[1] * 5, 7) * 9;
    const uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
  }

  // Returns a uniform number in [0, bound), without bias; 0 for bound 0.
  uint64_t below(uint64_t bound) {
    if (bound == 0) return 0;
    const uint64_t rejected = (0 - bound) % bound;  // 2^64 mod bound
    while (true) {
      const uint64_t value = (*this)();
      if (value >= rejected) return value % bound;
    }
  }
  // Returns a uniform number in [0, 1) with 53 random bits.
  double uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  bool chance(double probability) { return uniform() < probability; }

  // Shuffles with every order equally likely (std::shuffle's result would depend on the C++ library).
  template <typename Container>
  void shuffle(Container& items) {
    for (size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[static_cast<size_t>(below(i))]);
    }
  }

  const State& state() const { return state_; }

 private:
  static constexpr uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  State state_{};
};

}  // namespace sluice::base
