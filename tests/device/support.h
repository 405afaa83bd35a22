// What the device's tests share: the device under test, restarts with other options, comparing tensors.
//
// SLUICE_TEST_DEVICE=cpu runs the tests with LibTorch's CPU in the device's place, to check the tests
// themselves. SLUICE_TEST_ROUNDS=n multiplies the number of generated programs.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "sluice/device/device.h"

namespace sluice::tests {

inline bool on_cpu() {
  const char* name = std::getenv("SLUICE_TEST_DEVICE");
  return name != nullptr && std::string(name) == "cpu";
}

// The device under test. The device is initialised with the default options by the first call.
inline torch::Device test_device() {
  torch::set_num_threads(1);
  if (on_cpu()) return torch::kCPU;
  if (!is_initialized()) {
    DeviceOptions options;
    options.cache = false;
    init(options);
  }
  return torch::Device(torch::kXLA, 0);
}

// A fresh start with these options (the disk cache is off).
inline void restart(DeviceOptions options = {}) {
  if (on_cpu()) return;
  if (is_initialized()) shutdown();
  options.cache = false;
  init(options);
}

inline void cut() {
  if (!on_cpu()) sync_and_wait();
}

inline int rounds(int count) {
  const char* text = std::getenv("SLUICE_TEST_ROUNDS");
  return text == nullptr ? count : count * std::max(1, std::atoi(text));
}

// Small positive and negative multiples of `scale`.
inline torch::Tensor ramp(std::vector<int64_t> sizes, double scale = 0.25) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return ((torch::arange(count, torch::kFloat) * 7).remainder(11) - 5).mul(scale).reshape(sizes);
}

// The message of what the call throws; "" when it throws nothing.
inline std::string thrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// What is written to stderr meanwhile.
inline std::string warned(const std::function<void()>& work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

inline size_t count_of(const std::string& part, const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// "" when the tensors (of any devices) have one shape and type and agree within the tolerance.
inline std::string differs(const torch::Tensor& found, const torch::Tensor& expected, double tolerance) {
  torch::Tensor a = found.detach().cpu(), b = expected.detach().cpu();
  if (a.sizes() != b.sizes()) return c10::str("shape ", a.sizes(), ", expected ", b.sizes());
  if (a.scalar_type() != b.scalar_type())
    return c10::str("type ", a.scalar_type(), ", expected ", b.scalar_type());
  if (tolerance == 0
          ? torch::equal(a, b)
          : torch::allclose(a.to(torch::kDouble), b.to(torch::kDouble), tolerance, tolerance, true)) {
    return "";
  }
  return c10::str("values\n", a, "\nexpected\n", b);
}

inline void expect_same(const torch::Tensor& found, const torch::Tensor& expected, double tolerance = 1e-5,
                        const std::string& where = "") {
  EXPECT_EQ(differs(found, expected, tolerance), "") << where;
}

inline void expect_same(const std::vector<torch::Tensor>& found, const std::vector<torch::Tensor>& expected,
                        double tolerance, const std::string& where = "") {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    expect_same(found[i], expected[i], tolerance, c10::str(where, " tensor ", i));
  }
}

}  // namespace sluice::tests
