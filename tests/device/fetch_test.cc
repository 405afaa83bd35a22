// sluice::fetch: copies to the host while the device continues.
#include "sluice/device/storage.h"
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

TEST(Fetch, DoesNotWaitAndKeepsTheValueOfItsMoment) {
  if (on_cpu()) GTEST_SKIP();
  torch::Tensor x = ramp({3}).to(test_device());
  torch::Tensor y = x * 2;
  int64_t cuts = counters().cuts;
  Fetch fetched = fetch(y);
  EXPECT_EQ(counters().cuts, cuts);
  y.add_(100);
  sync();
  y.add_(100);
  sync();
  expect_same(fetched.get().at(0), ramp({3}) * 2, 0);
  expect_same(y, ramp({3}) * 2 + 200, 0);
}

// A checkpoint is fetched while the next step runs. That must need no memory for a second copy of the
// weights.
TEST(Fetch, LeavesTheMemoryToWhatReplacesTheValue) {
  if (on_cpu()) GTEST_SKIP();
  constexpr int64_t kElements = 1 << 20;
  torch::Tensor x = torch::zeros({kElements}, test_device());
  sync();
  for (int i = 0; i < 20; ++i) {
    const device::Data* const memory = device::LazyStorage::of(x)->data.get();
    const Fetch fetched = fetch(x);
    x.add_(1);
    sync();
    EXPECT_EQ(device::LazyStorage::of(x)->data.get(), memory) << "round " << i;
    const std::vector<torch::Tensor> found = fetched.get();
    for (const torch::Tensor& value : found)
      expect_same(value, torch::full({kElements}, static_cast<float>(i)), 0);
  }
}

// AddressSanitizer sees a copy to memory that is free.
TEST(Fetch, MayBeDroppedBeforeItHasArrived) {
  if (on_cpu()) GTEST_SKIP();
  torch::Tensor x = torch::full({128, 128}, 0.01, test_device());
  for (int i = 0; i < 50; ++i) {
    x = x.mm(x).clamp(0.001, 0.1);
    sync();
    (void)fetch(x);
  }
  EXPECT_EQ(x.cpu().numel(), 128 * 128);
}

}  // namespace
}  // namespace sluice::tests
