// Three threads for a test, on any machine.
#pragma once

#include <cstdlib>

#include "sluice/base/thread.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {

class TestThreads {
 public:
  TestThreads()
      : use_([this](void (*task)(void*), void* data) {
          pool_.submit([task, data] { task(data); });
          return true;
        }) {}

 private:
  // Set before the number of threads is read, at its first use.
  static inline const int variable_set_ = ::setenv("OMP_NUM_THREADS", "3", 1);
  base::ThreadPool pool_{"helper", 2};
  UseThreads use_;
};

}  // namespace sluice::kernels
