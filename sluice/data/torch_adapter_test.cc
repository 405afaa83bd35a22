#include "sluice/data/torch_adapter.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace sluice::data {
namespace {

TEST(TorchAdapter, SharesTheArraysMemory) {
  Array array(ElementType::kInt32, {2, 3});
  for (int i = 0; i < 6; ++i) array.data<std::int32_t>()[i] = i;
  const at::Tensor tensor = to_tensor(array);
  EXPECT_EQ(tensor.data_ptr(), array.data<void>());
  EXPECT_EQ(tensor.scalar_type(), c10::ScalarType::Int);
  EXPECT_EQ(tensor.sizes(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(tensor[1][2].item<std::int32_t>(), 5);
  array.data<std::int32_t>()[5] = 50;
  EXPECT_EQ(tensor[1][2].item<std::int32_t>(), 50);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % 64, 0u);
}

TEST(TorchAdapter, TheTensorKeepsTheMemoryAlive) {
  Array array = Array::zeros(ElementType::kFloat32, {4});
  const std::weak_ptr<void> memory = array.owner();
  at::Tensor tensor = to_tensor(array);
  array = Array();
  EXPECT_FALSE(memory.expired());
  EXPECT_EQ(tensor.sum().item<float>(), 0.0F);
  tensor = at::Tensor();
  EXPECT_TRUE(memory.expired());
}

TEST(TorchAdapter, EveryElementTypeHasItsPlace) {
  for (const ElementType type :
       {ElementType::kBool, ElementType::kUint8, ElementType::kInt8, ElementType::kInt16, ElementType::kInt32,
        ElementType::kInt64, ElementType::kFloat16, ElementType::kFloat32, ElementType::kFloat64}) {
    const at::Tensor tensor = to_tensor(Array::zeros(type, {3}));
    EXPECT_EQ(tensor.element_size(), size_of(type)) << name_of(type);
    EXPECT_EQ(tensor.numel(), 3);
  }
}

TEST(TorchAdapter, NothingGivesAnUndefinedTensor) { EXPECT_FALSE(to_tensor(Array()).defined()); }

}  // namespace
}  // namespace sluice::data
