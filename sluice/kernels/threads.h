// The threads that a kernel may use: OpenMP's, which LibTorch and oneDNN share.
#pragma once

namespace sluice::kernels {

// How many each call uses: OMP_NUM_THREADS, or the cores divided by the run's processes on this machine
// (LOCAL_WORLD_SIZE), divided by the replicas of this process, which XLA's CPU plugin runs at the same time.
void share_threads(int local_replicas);
int threads_of_a_call();

// While it lives, OpenMP's regions that the calling thread opens have threads_of_a_call() threads. The others
// of these stay away from the core that the calling thread is on when it begins: each thread of XLA's that
// calls kernels has a team of its own, and with more threads than cores the system at times lets two of a
// team share one core while another has nothing to do. The main thread's are left as they are.
class UseThreads {
 public:
  UseThreads();
  ~UseThreads();
  UseThreads(const UseThreads&) = delete;
  UseThreads& operator=(const UseThreads&) = delete;

 private:
  int previous_;
};

}  // namespace sluice::kernels
