// The threads that work on a call: the caller's, and helpers from the pool on which XLA runs the program's
// own code. Both use one pool, so a helper that has just finished a part of one is awake for the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "sluice/pjrt/program/custom_call.h"

namespace sluice::kernels {

// Sets the number of threads for each call: OMP_NUM_THREADS, or the cores divided by the run's processes on
// this machine (LOCAL_WORLD_SIZE), divided by the replicas of this process, which XLA's CPU plugin runs at
// the same time.
void share_threads(int local_replicas);
int threads_of_a_call();

// The most parts of a call for each of its threads: with more than one, no thread waits long for another.
constexpr int64_t kMaxPartsPerThread = 4;
// Returns a number of parts near `wanted`, at most kMaxPartsPerThread and at least one for each thread, equal
// for all.
int64_t parts_of_a_call(int64_t wanted);

// Makes another thread call task(data) at some later time; false if there is no other thread.
using StartHelper = std::function<bool(void (*task)(void*), void* data)>;

// While it lives, the loops below use helpers on the calling thread, threads_of_a_call() threads with the
// caller, and oneDNN uses only its caller's thread.
class UseThreads {
 public:
  // Uses no helpers, only the calling thread.
  UseThreads();
  explicit UseThreads(StartHelper start);
  // Uses the helpers of the plugin. The call must outlive this object.
  explicit UseThreads(const pjrt::CustomCall& call);
  ~UseThreads();
  UseThreads(const UseThreads&) = delete;
  UseThreads& operator=(const UseThreads&) = delete;

 private:
  StartHelper start_;
  const StartHelper* outer_;
  int library_threads_;
};

// Calls body(i) once for each i in [0, count), in any order, and returns when all are done. The caller takes
// every index that no helper has begun, so it never waits for a helper to wake up. Loops inside the body have
// no helpers, unless the outer loop has only one index. Helpers round and treat denormal numbers as the
// caller does. The body must not throw: an exception ends the process.
void parallel_for(size_t count, const std::function<void(size_t)>& body);
// Calls body(turn, i) once for each turn in [0, turns) and i in [0, count); a turn begins when the turn
// before is done. Helpers stay from turn to turn, and a thread prefers the i that it had before, because its
// cache has the data. Loops inside the body never have helpers. Otherwise as parallel_for.
void parallel_turns(size_t turns, size_t count, const std::function<void(size_t turn, size_t i)>& body);
// Calls body(first, count) for the pieces of [0, extent), which are `piece` long except for the last one.
template <typename Body>
void parallel_pieces(size_t extent, size_t piece, const Body& body) {
  parallel_for((extent + piece - 1) / piece,
               [&](size_t i) { body(i * piece, std::min(piece, extent - i * piece)); });
}
// As parallel_for, for a body that can fail: returns one of the errors, if there were any.
base::Status parallel_for_status(size_t count, const std::function<base::Status(size_t)>& body);

}  // namespace sluice::kernels
