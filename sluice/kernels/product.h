// Matrix products by oneDNN. Internal to this room.
#pragma once

#include "sluice/pjrt/custom_call.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// A product of one shape; null where the library has no fast kernel for it. Made once, valid as long as the
// process. Threads: any, under UseThreads.
class ProductKernel;
const ProductKernel* find_product(const stablehlo::ProductCall& call);
base::Status run_product(const ProductKernel& kernel, void* a, void* b, void* c);

// Whether there is a kernel that is worth a call of its own.
bool has_product(const stablehlo::ProductCall& call);
// The handler.
base::Status call_product(const pjrt::CustomCall& call);

}  // namespace sluice::kernels
