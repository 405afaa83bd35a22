// The views that begin at places that change from one program to the next: rows of a data set that are picked
// at random, image i of a batch that is copied to the host, the row of a cache that a loop writes. With
// constant places, each place would need its own program; with run-time numbers, one program serves all. A
// constant place makes the better program (it is sliced, not gathered).
//
// Views of one geometry are a family, and the n-th of them in a trace is compared with the n-th of earlier
// traces. If one place moves, the program changes anyway. So all places that may have stayed by chance until
// then move in the same trace: a loop over random rows has two programs, no matter which rows it picks.
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
  // The one object of the process.
  static Offsets& get();

  // A view that is about to be recorded.
  struct View {
    const char* row;
    TypeRef type;                     // the type of the value that the view is a part of
    c10::ArrayRef<int64_t> geometry;  // everything but the offset
    int64_t offset = 0;
    int64_t choices = 1;                 // the approximate number of places of this size in the value
    bool picked = false;                 // rows may be picked at random, as from a data set
    const Instance* constant = nullptr;  // the view with a constant offset, if there was one before
  };
  // Returns whether the view's offset is to be a run-time number. If not, constant_at() must follow.
  bool moves(const View& view);
  // Notes that the view was recorded with a constant offset, as the trace's latest node.
  void constant_at(const View& view);

  // Forgets everything. Call it when the instances are forgotten, because the families are known by instance.
  void forget();

  // A place that stayed in this number of traces is not there by chance.
  static constexpr uint32_t kProven = 8;

 private:
  // The n-th view of a family in a trace.
  struct Place {
    int64_t offset = 0;
    uint32_t same = 1, others = 0;  // traces that had this offset, and that had another
    bool moving = false;
  };
  struct Family {
    std::vector<Place> places;  // in the order of the views in a trace
    double choices = 1;
    bool moved = false;     // some place of the family moved
    bool wandered = false;  // another place moved after the first
    uint64_t trace = 0;     // the latest trace with a view of the family
    size_t next = 0;        // the index in `places` of the next view in that trace
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
  // The probability that random places would have stayed so far: this place, or any of its family; all places
  // of the family.
  static double chance_of(const Family& family, const Place& place);
  static double chance_of_all(const Family& family);
  static bool may_be_chance(const Family& family, const Place& place);
  // Notes that a place of this family moves, and turns this trace's constants that may be chance into
  // run-time numbers.
  void move(Family& family, Place& place);

  std::unordered_map<Key, std::unique_ptr<Family>, Hash> families_;
  std::vector<Family*> family_by_instance_;  // for the instances of views with constant offsets
  std::vector<Constant> constants_;          // the constant views of the current trace
  uint64_t trace_ = 0;                       // the number of the current trace
  bool trace_moves_ = false;                 // a place moved in it for the first time
  Family* latest_ = nullptr;                 // the family of the view last given to moves()
};

// Returns the instance of the view `constant` of this row with a run-time offset (trace.cc).
const Instance& with_run_time_offset(const char* row, const Instance& constant);

}  // namespace sluice::device
