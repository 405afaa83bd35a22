// Which views begin at places that change from one program to the next: rows of a data set that are picked at
// random, image i of a batch that is copied to the host, the row of a cache that a loop writes. Each place as
// a constant would be a program of its own; as a run-time number all are one. A constant place makes the
// better program (it is sliced, not gathered).
//
// Views of one geometry are a family, and the n-th of them in a trace is compared with the n-th of the traces
// before. Where one moves, the program changes anyway. So whatever may have stayed by chance until then moves
// with it, in the same trace: a loop over random rows has two programs, whichever rows it picks.
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sluice/device/types.h"

namespace sluice::device {

struct Instance;

// Belongs to the trace's lock.
class Offsets {
 public:
  // The process's.
  static Offsets& get();

  // A view that is about to be recorded.
  struct View {
    const char* row;
    TypeRef type;                     // of the value of which it is a part
    c10::ArrayRef<int64_t> geometry;  // everything but the offset
    int64_t offset = 0;
    int64_t choices = 1;                 // about as many places of this size are there
    bool picked = false;                 // rows of it may be picked at random, as of a data set
    const Instance* constant = nullptr;  // the view with a constant offset, if there was one before
  };
  // Whether its offset is to be a run-time number. If not, constant_at() must follow.
  bool moves(const View& view);
  // The view was recorded with a constant offset: the trace's latest node.
  void constant_at(const View& view);

  // With the instances, from which is known which families they are of.
  void forget();

  // A place that so many traces in a row had is no chance.
  static constexpr uint32_t kProven = 8;

 private:
  // The n-th view of a family in a trace.
  struct Place {
    int64_t offset = 0;
    uint32_t same = 1, others = 0;  // traces that had this offset, and that had another one
    bool moving = false;
  };
  struct Family {
    std::vector<Place> places;  // by their order in a trace
    double choices = 1;
    bool moved = false;     // some place of it did
    bool wandered = false;  // also one that was taken for a constant behind that
    uint64_t trace = 0;     // the latest that had one
    size_t next = 0;        // in places, in that trace
    uint64_t scanned = 0;   // the latest trace whose constants were looked through for it
  };
  struct Key {
    const char* row;
    TypeRef type;
    std::vector<int64_t> geometry;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const;
  };
  // A view of the current trace with a constant offset.
  struct Constant {
    uint32_t node;
    Family* family;
    size_t place;
    const char* row;
    bool picked;
  };

  Family& family_of(const View& view);
  // How likely it is that random places would have stayed so far: this one or one of its family; all of the
  // family.
  static double chance_of(const Family& family, const Place& place);
  static double chance_of_all(const Family& family);
  static bool may_be_chance(const Family& family, const Place& place);
  // Notes that a place of this family moves, and turns what may be chance of this trace into run-time
  // numbers.
  void move(Family& family, Place& place);

  std::unordered_map<Key, std::unique_ptr<Family>, Hash> families_;
  std::vector<Family*> family_by_instance_;  // of views with constant offsets
  std::vector<Constant> constants_;          // of the current trace
  uint64_t trace_ = 0;                       // the number of that
  bool trace_moves_ = false;                 // a place moved in it for the first time
  Family* latest_ = nullptr;                 // of the view that moves() was asked of last
};

// The view `constant` of this row with a run-time offset (trace.cc).
const Instance& with_run_time_offset(const char* row, const Instance& constant);

}  // namespace sluice::device
