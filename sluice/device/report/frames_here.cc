// Walking the stack is slow: libgcc looks up each frame in a list of all code that was compiled at run time,
// which XLA extends by several entries for each program. So a thread remembers its walks, together with the
// places on the stack where the return addresses were. If all these places still hold them, the walk would
// find the same.
#include "sluice/device/report/frames.h"

#include <execinfo.h>
#include <unwind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace sluice::device {
namespace {

constexpr size_t kFrames = 48;
thread_local size_t walks_of_thread = 0;

#if defined(__x86_64__)

using FrameSlot = void* const*;

struct StackWalk {
  Frames frames;
  std::vector<FrameSlot> slots;  // where the stack has the frames
};

// Collects the frames from the caller of frames_here() on, whose address is at `begin`.
struct FrameCollector {
  FrameSlot begin;
  StackWalk walk;
  bool whole = true;  // each frame was found on the stack
};

// A frame's address was put on the stack by a call, just below what the called function found there.
_Unwind_Reason_Code collect(_Unwind_Context* context, void* data) {
  FrameCollector& collector = *static_cast<FrameCollector*>(data);
  const auto frame = reinterpret_cast<void*>(_Unwind_GetIP(context));
  const auto slot = reinterpret_cast<FrameSlot>(_Unwind_GetCFA(context)) - 1;
  if (slot < collector.begin) return _URC_NO_REASON;  // frames_here() itself
  if (frame == nullptr || collector.walk.frames.size() == kFrames) return _URC_END_OF_STACK;
  collector.whole = collector.whole && *slot == frame;
  collector.walk.frames.push_back(frame);
  collector.walk.slots.push_back(slot);
  return _URC_NO_REASON;
}

// The slots have higher addresses than the caller's frame, so they are a part of this thread's stack. The
// sanitizers do not know them.
__attribute__((no_sanitize("address", "thread"))) bool is_still_there(const StackWalk& walk) {
  for (size_t i = 0; i < walk.slots.size(); ++i) {
    if (*walk.slots[i] != walk.frames[i]) return false;
  }
  return true;
}

// The walks of this thread, by the place of their first slot.
struct StackWalks {
  static constexpr size_t kLimit = 4096;
  std::unordered_map<FrameSlot, std::vector<StackWalk>> by_begin;
  size_t count = 0;
};

}  // namespace

__attribute__((noinline)) Frames frames_here() {
  thread_local StackWalks walks;
  const FrameSlot begin = reinterpret_cast<FrameSlot>(__builtin_dwarf_cfa()) - 1;
  std::vector<StackWalk>& here = walks.by_begin[begin];
  const auto known = std::find_if(here.begin(), here.end(), is_still_there);
  if (known != here.end()) return known->frames;

  ++walks_of_thread;
  FrameCollector collector{begin, {}};
  _Unwind_Backtrace(collect, &collector);
  if (!collector.whole || collector.walk.frames.empty()) return std::move(collector.walk.frames);
  if (++walks.count > StackWalks::kLimit) {
    walks.by_begin.clear();
    walks.count = 1;
  }
  return walks.by_begin[begin].emplace_back(std::move(collector.walk)).frames;
}

#else

}  // namespace

Frames frames_here() {
  ++walks_of_thread;
  void* frames[kFrames];
  return Frames(frames, frames + backtrace(frames, kFrames));
}

#endif

size_t stack_walks() { return walks_of_thread; }

}  // namespace sluice::device
