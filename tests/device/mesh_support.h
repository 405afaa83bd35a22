// The helpers that the tests of a mesh share: a device of several virtual devices for each test, the bytes
// that one of them holds, and errors relative to a tensor's largest value.
#pragma once

#include "sluice/device/sharding/shard.h"
#include "sluice/device/storage.h"
#include "tests/device/support.h"

namespace sluice::tests {

// Restarts the device with a mesh, such as "data=2,fsdp=2" (the disk cache is off).
inline void open_mesh(const std::string& mesh, DeviceOptions options = {}) {
  if (is_initialized()) shutdown();
  options.cache = false;
  init(Mesh::parse(mesh), options);
}

// The bytes of a tensor's value on device 0, once it is computed.
inline int64_t bytes_on_device(const torch::Tensor& tensor) {
  sync_and_wait();
  return static_cast<int64_t>(device::LazyStorage::of(tensor)->data->buffers.front().type().bytes());
}

// The largest difference relative to the largest value, or to `least` if all values are smaller.
inline double relative_error(const torch::Tensor& found, const torch::Tensor& wanted, double least = 0) {
  return ((found - wanted).abs().max() / wanted.abs().max().clamp_min(least)).item<double>();
}

// A test opens the meshes that it needs; the device ends after it.
class MeshTest : public testing::Test {
 protected:
  void SetUp() override {
    if (on_cpu()) GTEST_SKIP() << "LibTorch's CPU has no mesh";
    torch::set_num_threads(1);
  }
  void TearDown() override {
    if (is_initialized()) shutdown();
  }
};

}  // namespace sluice::tests
