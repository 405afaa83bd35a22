#include "sluice/kernels/threads.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace sluice::kernels {
namespace {

std::atomic<int> replicas = 1;

// The processes of the run on this machine, as `sluice run` and torchrun tell them.
int processes_here() {
  const char* const text = std::getenv("LOCAL_WORLD_SIZE");
  int count = 1;
  if (text != nullptr) std::from_chars(text, text + std::string_view(text).size(), count);
  return std::max(1, count);
}

// OMP_NUM_THREADS, or this process's part of the cores that it may run on.
int threads_of_the_process() {
  static const int threads = std::getenv("OMP_NUM_THREADS") != nullptr
                                 ? omp_get_max_threads()
                                 : std::max(1, omp_get_num_procs() / processes_here());
  return threads;
}

}  // namespace

void share_threads(int local_replicas) { replicas = std::max(1, local_replicas); }
int threads_of_a_call() { return std::max(1, threads_of_the_process() / replicas.load()); }

UseThreads::UseThreads() : previous_(omp_get_max_threads()) { omp_set_num_threads(threads_of_a_call()); }
UseThreads::~UseThreads() { omp_set_num_threads(previous_); }

}  // namespace sluice::kernels
