// Places in a gzip stream from which unpacking can begin, so that many readers of a packed shard do not
// unpack it from its start.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace sluice::data {

// The places of one shard; each takes about 40 kB. Threads: all members from any thread.
class UnpackPlaces {
 public:
  struct State;  // of the unpacker, in unpack.cc
  struct Place {
    std::uint64_t unpacked = 0, packed = 0;  // bytes before it
    std::shared_ptr<const State> state;
  };

  // Returns the last place at or before an offset in the unpacked bytes.
  std::optional<Place> last_before(std::uint64_t unpacked) const;
  // Whether a place at this offset is wanted: 256 KiB after the one before, or more if there are many.
  bool wants(std::uint64_t unpacked) const;
  void add(Place place);

  // Returns the bytes that this process has unpacked from gzip.
  static std::uint64_t unpacked_bytes();
  static void count_unpacked(std::uint64_t bytes);

 private:
  static constexpr std::size_t kMaxPlaces = 128;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Place> places_;  // by their offsets
  std::uint64_t spacing_ = 1 << 18;
};

}  // namespace sluice::data
