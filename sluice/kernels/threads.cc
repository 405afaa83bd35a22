#include "sluice/kernels/threads.h"

#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <vector>

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

// The threads that OpenMP gives to one calling thread.
class Team {
 public:
  void keep_away(int threads) {
    if (omp_get_proc_bind() != omp_proc_bind_false) return;  // the user has decided (OMP_PROC_BIND)
    const int core = ::sched_getcpu();
    const bool met = static_cast<size_t>(threads) == others_.size() + 1;
    if (core < 0 || (met && core == core_)) return;
    if (!met) meet(threads);
    core_ = core;
    cpu_set_t cores;
    if (::sched_getaffinity(0, sizeof cores, &cores) != 0 || CPU_COUNT(&cores) < threads) return;
    CPU_CLR(static_cast<size_t>(core), &cores);
    for (const pid_t thread : others_)
      if (thread != 0) ::sched_setaffinity(thread, sizeof cores, &cores);
  }

 private:
  void meet(int threads) {
    others_.assign(static_cast<size_t>(threads - 1), 0);
#pragma omp parallel num_threads(threads)
    if (omp_get_thread_num() > 0) others_[static_cast<size_t>(omp_get_thread_num() - 1)] = ::gettid();
  }

  int core_ = -1;
  std::vector<pid_t> others_;
};

}  // namespace

void share_threads(int local_replicas) { replicas = std::max(1, local_replicas); }
int threads_of_a_call() { return std::max(1, threads_of_the_process() / replicas.load()); }

UseThreads::UseThreads() : previous_(omp_get_max_threads()) {
  const int threads = threads_of_a_call();
  omp_set_num_threads(threads);
  thread_local Team team;
  // The main thread's team works for LibTorch too, and would stay away from a core that the main thread left.
  const bool is_main = ::gettid() == ::getpid();
  if (threads > 1 && !is_main) team.keep_away(threads);
}
UseThreads::~UseThreads() { omp_set_num_threads(previous_); }

}  // namespace sluice::kernels
