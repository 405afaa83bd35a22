// The value of a storage: none, recorded in the trace, or data on the device.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/device/types.h"
#include "sluice/ops/row.h"
#include "sluice/pjrt/buffer.h"

namespace sluice::device {

// How far a value is known to be equal: on all replicas of all processes, on this process's replicas, or not
// at all.
enum class Sameness : uint8_t { kGlobal = 0, kProcess = 1, kDifferent = 2 };

inline Sameness weakest(Sameness a, Sameness b) { return a > b ? a : b; }

// The operation and layer where a value began to differ between replicas. Without a row, it came from the
// host (a batch).
struct Origin {
  const ops::Row* row = nullptr;
  uint32_t layer = 0;  // the layer's number in Names
};

// host_copy.h
struct HostCopy;

// sharding/layouts.h
struct InternedLayout;
// How a value lies over the mesh; null: every device has all of it.
using LayoutRef = const InternedLayout*;

// The facts that are known of a value besides its buffers.
struct ValueFacts {
  TypeRef type = nullptr;
  Sameness sameness = Sameness::kGlobal;
  Origin origin;   // where it began to differ, unless it is global
  Origin made_by;  // for messages: the operation that made it; no row if it came from the host
  LayoutRef layout = nullptr;
};

// The place of a value among the current trace's leaves, when `leaf_trace` is that trace's number.
struct LeafPlace {
  uint64_t leaf_trace = 0;
  uint32_t leaf = 0;
};

// One value on the device: a PJRT buffer for each local replica, or with a mesh one for each local device,
// which holds its block. Every storage that holds the value (clones, copies) and every trace that reads it
// share it, and it is immutable while they do; a value with only one holder may become the value that
// replaces it. The members that each read uses come first, next to each other, because a step finds few of
// them in the processor's caches.
struct Data : c10::intrusive_ptr_target, LeafPlace, ValueFacts {
  Data();
  ~Data() override;
  // Becomes the value that a launch has made; the caller sets the buffers.
  void renew(const ValueFacts& facts, int64_t launch);

  uint64_t serial;                    // values that are made later have larger ones
  std::vector<pjrt::Buffer> buffers;  // [replica or device]; empty if programs are only compiled
  // For errors about memory (alive.h): the name, in Names, of the parameter or optimizer state that holds it;
  // 0: none.
  uint32_t name = 0;
  int64_t launch = 0;                 // the launch that made it; 0 if it came from the host
  uint64_t opening;                   // Runtime::opening of the device that holds it
  std::shared_ptr<HostCopy> on_host;  // set once it was read, or is on its way
  bool with_host = false;             // values made from it stay with the host (operators/host_shapes.h)
  bool alive = false;
  Data *previous_alive = nullptr, *next_alive = nullptr;
};
using DataPtr = c10::intrusive_ptr<Data>;

// A value inside the current trace: result `output` of node `node`, or leaf `node`.
struct Ref {
  static constexpr uint16_t kLeaf = 0xffff;
  uint32_t node = 0;
  uint16_t output = 0;
  bool leaf() const { return output == kLeaf; }
  bool operator==(const Ref&) const = default;
};

}  // namespace sluice::device
