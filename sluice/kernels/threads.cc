#include "sluice/kernels/threads.h"

#include <omp.h>

#include <algorithm>
#include <atomic>

namespace sluice::kernels {
namespace {

std::atomic<int> replicas = 1;

}  // namespace

void share_threads(int local_replicas) { replicas = std::max(1, local_replicas); }
int threads_of_a_call() { return std::max(1, omp_get_num_procs() / replicas.load()); }

UseThreads::UseThreads() : previous_(omp_get_max_threads()) { omp_set_num_threads(threads_of_a_call()); }
UseThreads::~UseThreads() { omp_set_num_threads(previous_); }

}  // namespace sluice::kernels
