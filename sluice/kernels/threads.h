// The threads that work on a call: the caller's, and helpers from the pool on which XLA runs the program's
// own code. One pool for both, so a helper that has just done a part of the one is awake for the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "sluice/pjrt/custom_call.h"

namespace sluice::kernels {

// How many work on each call: OMP_NUM_THREADS, or the cores divided by the run's processes on this machine
// (LOCAL_WORLD_SIZE), divided by the replicas of this process, which XLA's CPU plugin runs at the same time.
void share_threads(int local_replicas);
int threads_of_a_call();

// The parts of a call for each of its threads, at most: with more than one none waits long for another.
constexpr int64_t kMaxPartsPerThread = 4;
// As many parts as wanted, but the same number for each thread and one at least.
int64_t parts_of_a_call(int64_t wanted);

// Has another thread call task(data), soon or late; false when there is none.
using StartHelper = std::function<bool(void (*task)(void*), void* data)>;

// While it lives, the loops below have helpers on the calling thread, threads_of_a_call() with the caller,
// and oneDNN works on its caller's thread alone.
class UseThreads {
 public:
  // No helpers: the calling thread alone.
  UseThreads();
  explicit UseThreads(StartHelper start);
  // The helpers of the plugin. The call must outlive this.
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
// what no helper has begun, so it never waits for one to wake up. Loops inside the body have no helpers, but
// for those inside a loop of one. Helpers round and treat denormal numbers as the caller does. The body must
// not throw: what it throws ends the process.
void parallel_for(size_t count, const std::function<void(size_t)>& body);
// Calls body(turn, i) once for each turn in [0, turns) and i in [0, count), a turn when all of the one before
// are done. Helpers stay from turn to turn, and a thread takes the i that it had, whose data its cache has,
// before others. Loops inside the body never have helpers. Else as parallel_for.
void parallel_turns(size_t turns, size_t count, const std::function<void(size_t turn, size_t i)>& body);
// body(first, count) for the pieces of [0, extent), which are so long, but for the last one.
template <typename Body>
void parallel_pieces(size_t extent, size_t piece, const Body& body) {
  parallel_for((extent + piece - 1) / piece,
               [&](size_t i) { body(i * piece, std::min(piece, extent - i * piece)); });
}
// The same for what can fail: one of the errors, if there were any.
base::Status parallel_for_status(size_t count, const std::function<base::Status(size_t)>& body);

}  // namespace sluice::kernels
