// The threads that a kernel may use: OpenMP's, which LibTorch and oneDNN share.
#pragma once

namespace sluice::kernels {

// How many each call uses. XLA's CPU plugin runs the replicas of a process at the same time, so each gets its
// part of the cores: set once for the number of local replicas.
void share_threads(int local_replicas);
int threads_of_a_call();

// While it lives, OpenMP's regions that the calling thread opens have threads_of_a_call() threads.
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
