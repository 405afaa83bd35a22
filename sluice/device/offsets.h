// Which views begin at places that change from one program to the next: image i of a batch that is copied to
// the host, the row of a cache that a loop writes. Each place as a constant would be a program of its own; as
// a run-time number all are one. A constant place makes the better program (it is sliced, not gathered), so a
// view is one until it has moved a few times.
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sluice/device/types.h"

namespace sluice::device {

// Belongs to the trace's lock.
class Offsets {
 public:
  // The process's.
  static Offsets& get();
  // Notes that this trace has a view with a constant offset, by its instance.
  void place(uint32_t instance);
  // Whether that offset is constant for good: two traces had it, or this one has.
  bool stays(uint32_t instance) const;
  // For a view whose offset does not stay: whether it should be a run-time number, because kConstant traces
  // have brought new ones. `known`: the offset is not new, one trace had it, as when a ring that was filled
  // within one trace is written again row by row. `geometry`: everything but the offset.
  bool moves(const char* row, TypeRef type, c10::ArrayRef<int64_t> geometry, bool known = false);

  // With the instances, from which is known which offsets there were.
  void forget() {
    places_.clear();
    placed_in_.clear();
  }

  // A training's first steps differ, and so does its test.
  static constexpr int kConstant = 4;

 private:
  struct Key {
    const char* row;
    TypeRef type;
    std::vector<int64_t> geometry;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const;
  };
  struct Places {
    uint64_t last_trace = 0;  // that brought a new one
    int traces = 0;           // that did
  };
  static constexpr uint64_t kSeveral = ~uint64_t{0};
  std::unordered_map<Key, Places, Hash> places_;
  std::vector<uint64_t> placed_in_;  // by instance: the one trace that had it, kSeveral, or 0
};

}  // namespace sluice::device
