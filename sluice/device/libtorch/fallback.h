// Operations without a row run on the CPU: counted, warned about once, refused in strict mode.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

namespace sluice::device {

// Runs the call on host copies and writes back the arguments that it mutates. `why` is the reason that it has
// no program.
void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::string& why);

}  // namespace sluice::device
