#include "sluice/device/offsets.h"

#include "sluice/device/device.h"
#include "sluice/device/testing/recording.h"

namespace sluice::device::testing {
namespace {

at::Tensor row_of(const at::Tensor& tensor, int64_t row) {
  at::Tensor part = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(tensor.storage()), c10::DispatchKeySet(c10::DispatchKey::XLA), tensor.dtype());
  part.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes().slice(1), tensor.strides().slice(1),
                                                    row * tensor.stride(0));
  return part;
}

// Which views of the next trace get a constant offset ('c') and which a run-time one ('m'), by their final
// instances. Each asks for row `offset` of the first dimension.
std::string recorded(const at::Tensor& tensor, const std::vector<int64_t>& rows) {
  Trace& trace = Trace::get();
  trace.clear();
  for (const int64_t row : rows) read(row_of(tensor, row));
  std::string kinds;
  for (const Node& node : trace.nodes) kinds += node.instance->slots.empty() ? 'c' : 'm';
  return kinds;
}

class Places : public ::testing::Test {
 protected:
  void SetUp() override {
    TearDown();  // another test's trace may have opened the device
    DeviceOptions options;
    options.cache = false;
    init(options);
  }
  void TearDown() override {
    Trace::get().clear();
    shutdown();
  }
};

TEST_F(Places, MoveFromTheSecondTraceOn) {
  const at::Tensor x = input({1000, 3});
  EXPECT_EQ(recorded(x, {5, 7}), "cc");
  EXPECT_EQ(recorded(x, {5, 7}), "cc");
  EXPECT_EQ(recorded(x, {6, 8}), "mm");
  EXPECT_EQ(recorded(x, {5, 7}), "mm");
  EXPECT_EQ(recorded(x, {5, 7, 7}), "mmm");
  EXPECT_EQ(recorded(input({1000, 4}), {5}), "c");
}

TEST_F(Places, ThatStayByChanceMoveWithTheOthers) {
  const at::Tensor few = input({4, 3}), many = input({100'000, 3});
  EXPECT_EQ(recorded(few, {1, 2, 3}), "ccc");
  EXPECT_EQ(recorded(few, {1, 2, 0}), "mmm");  // also those that came before the first that moved
  EXPECT_EQ(recorded(many, {1, 2, 3}), "ccc");
  EXPECT_EQ(recorded(many, {1, 2, 0}), "ccm");  // no chance
  EXPECT_EQ(recorded(many, {1, 2, 7}), "ccm");
  EXPECT_EQ(recorded(many, {9, 2, 7}), "mmm");  // but one of them did, and so may the other
}

TEST_F(Places, ThatAreProvenKeepTheirConstant) {
  const at::Tensor x = input({1000, 3});
  for (uint32_t i = 0; i < Offsets::kProven; ++i) EXPECT_EQ(recorded(x, {5}), "c");
  for (uint32_t i = 0; i < Offsets::kProven; ++i) {
    EXPECT_EQ(recorded(x, {6 + i}), "m");
    if (i == 2) {
      EXPECT_EQ(recorded(x, {5}), "c");
    }
  }
  EXPECT_EQ(recorded(x, {5}), "c");
  for (uint32_t i = 0; i < Offsets::kProven; ++i) EXPECT_EQ(recorded(x, {6 + i}), "m");
  EXPECT_EQ(recorded(x, {5}), "m");  // most traces had another one
}

}  // namespace
}  // namespace sluice::device::testing
