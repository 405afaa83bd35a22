// Three threads for a test, whatever the machine has.
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
  // Read when the number is asked for the first time.
  static inline const int variable_set_ = ::setenv("OMP_NUM_THREADS", "3", 1);
  base::ThreadPool pool_{"helper", 2};
  UseThreads use_;
};

}  // namespace sluice::kernels
