// Matrix products. Internal to this room.
#pragma once

#include "sluice/pjrt/custom_call.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// A product of one shape. Threads: any, under UseThreads.
class ProductKernel {
 public:
  virtual ~ProductKernel() = default;
  virtual base::Status run(void* a, void* b, void* c) const = 0;
};

// Null where there is no fast kernel. Made once, valid as long as the process.
const ProductKernel* find_product(const stablehlo::ProductCall& call);

// Whether there is a kernel that is worth a call of its own.
bool has_product(const stablehlo::ProductCall& call);
// The handler.
base::Status call_product(const pjrt::CustomCall& call);

}  // namespace sluice::kernels
