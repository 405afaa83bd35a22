// The device that a test compares with LibTorch on the CPU: `xla`, or `cpu` to check the test itself.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sluice::tests {

// "xla" or "cpu"; throws std::runtime_error for another name. Call once, before the others.
void start(const std::string& device, int replicas = 1);
// Opens xla with a mesh of devices, such as "data=2,fsdp=2". Call once, in place of start().
void start_mesh(const std::string& mesh);
at::Device device();
bool is_xla();
// Cuts the graph and waits; throws what the program threw. Nothing on the CPU.
void sync();
// Ends the device before the process ends.
void finish();

// Calls that ran on the CPU instead, by operation, so far.
std::vector<std::pair<std::string, int64_t>> fallbacks();
int64_t fallback_total();
// Programs compiled or loaded so far.
int64_t programs();
// The tensor's value on a replica, as a CPU tensor that owns its memory.
at::Tensor value_on(const at::Tensor& tensor, int replica);

}  // namespace sluice::tests
