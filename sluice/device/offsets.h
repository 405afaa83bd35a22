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
  // For a view with an offset that it never had: whether it should be a run-time number, because kConstant
  // traces have brought new ones. `geometry`: everything but the offset.
  bool moves(const char* row, TypeRef type, c10::ArrayRef<int64_t> geometry);

  // With the instances, from which is known which offsets there were.
  void forget() { places_.clear(); }

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
  std::unordered_map<Key, Places, Hash> places_;
};

}  // namespace sluice::device
