// Keys for random operations.
//
// A random operation records one 64-bit key, drawn from LibTorch's CPU generator (or the one that the caller
// gives) when it is recorded. So torch::manual_seed restarts the numbers, the state of that generator is all
// that a checkpoint needs, and the numbers do not depend on where the graph is cut.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/ivalue.h>

#include "sluice/device/program/signature.h"

namespace sluice::device {

// Returns the next key of this generator.
int64_t random_key(at::Generator generator);
// Returns the key of a call, from its generator.
Number random_key(c10::ArrayRef<c10::IValue> arguments, const Signature& signature);
// Returns whether this thread is inside a SharedRandom scope.
bool shared_random();
bool set_shared_random(bool shared);

}  // namespace sluice::device
