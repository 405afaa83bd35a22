// What of a call's arguments identifies its instance, and what travels beside it.
#include "sluice/device/program/signature.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <gmock/gmock.h>

#include <limits>

#include "sluice/device/testing/recording.h"

namespace sluice::device::testing {
namespace {

using ::testing::ElementsAre;
using Kind = ArgumentKind;

std::vector<Kind> kinds_of(const std::string& row) {
  std::vector<Kind> kinds;
  for (const ArgumentRule& rule : signature_of(row).rules) kinds.push_back(rule.kind);
  return kinds;
}

TEST(Signature, HasTheKindsOfTheSchemasArguments) {
  EXPECT_THAT(kinds_of("aten::sum.dim_IntList"),
              ElementsAre(Kind::kTensor, Kind::kInts, Kind::kBool, Kind::kDType));
  EXPECT_THAT(kinds_of("aten::index.Tensor"), ElementsAre(Kind::kTensor, Kind::kTensors));
  EXPECT_THAT(kinds_of("aten::div.Tensor_mode"), ElementsAre(Kind::kTensor, Kind::kTensor, Kind::kText));
  // An element type decides what is computed; a layout, a device and pinned memory do not.
  EXPECT_THAT(kinds_of("aten::arange.start_step"),
              ElementsAre(Kind::kNumber, Kind::kNumber, Kind::kNumber, Kind::kDType, Kind::kIgnored,
                          Kind::kIgnored, Kind::kIgnored));
}

TEST(Signature, HasWhatTheRowSaysOfThem) {
  const Signature& addmm = signature_of("aten::addmm");
  EXPECT_THAT(addmm.names, ElementsAre("self", "mat1", "mat2", "beta", "alpha"));
  EXPECT_TRUE(addmm.rules[3].constant_if_zero && addmm.rules[3].constant_if_one && !addmm.rules[3].constant);
  EXPECT_TRUE(!addmm.rules[4].constant_if_zero && addmm.rules[4].constant_if_one);
  EXPECT_TRUE(signature_of("aten::pow.Tensor_Scalar").rules[1].constant);
  EXPECT_THAT(signature_of("aten::native_batch_norm").writes, ElementsAre(3, 4));
  EXPECT_EQ(signature_of("aten::bernoulli.p").generator, 2);
  EXPECT_EQ(addmm.generator, -1);
}

class Arguments : public Recording {
 protected:
  static InstanceKey key(const std::string& row, const std::vector<c10::IValue>& arguments) {
    return read_call(row, arguments).key;
  }
  const at::Tensor x = input({2, 3}), y = input({2, 3});
};

TEST_F(Arguments, RuntimeNumbersAreBesideTheKeyAndConstantsInIt) {
  EXPECT_EQ(key("aten::add.Tensor", {x, y, 2.0}), key("aten::add.Tensor", {y, x, 3.5}));
  EXPECT_EQ(read_call("aten::add.Tensor", {x, y, 3.5}).numbers[2].real, 3.5);
  EXPECT_NE(key("aten::add.Tensor", {x, y, 1.0}), key("aten::add.Tensor", {x, y, 2.0}));
  EXPECT_NE(key("aten::addmm", {x, x, y, 0.0, 2.0}), key("aten::addmm", {x, x, y, 0.5, 2.0}));
  EXPECT_NE(key("aten::pow.Tensor_Scalar", {x, 2.0}), key("aten::pow.Tensor_Scalar", {x, 3.0}));
}

// The category decides the result's type: an integer times 2.0 is a float, times 2 an integer.
TEST_F(Arguments, ANumbersCategoryIsInTheKey) {
  const std::vector<InstanceKey> keys = {key("aten::mul.Scalar", {x, 2}), key("aten::mul.Scalar", {x, 2.0}),
                                         key("aten::mul.Scalar", {x, true})};
  EXPECT_NE(keys[0], keys[1]);
  EXPECT_NE(keys[0], keys[2]);
  EXPECT_NE(keys[1], keys[2]);
}

TEST_F(Arguments, TypesAndAbsenceAreInTheKey) {
  const auto sum = [&](const at::Tensor& of, const c10::IValue& dims, bool keep, const c10::IValue& dtype) {
    return key("aten::sum.dim_IntList", {of, dims, keep, dtype});
  };
  const c10::IValue none, first = std::vector<int64_t>{0}, f64 = c10::ScalarType::Double;
  const InstanceKey one = sum(x, first, false, none);
  EXPECT_EQ(sum(y, first, false, none), one);
  for (const InstanceKey& other :
       {sum(input({3, 2}), first, false, none), sum(input({2, 3}, DType::kF64), first, false, none),
        sum(x, std::vector<int64_t>{1}, false, none), sum(x, std::vector<int64_t>{0, 1}, false, none),
        sum(x, none, false, none), sum(x, first, true, none), sum(x, first, false, f64)})
    EXPECT_NE(other, one);
  EXPECT_NE(key("aten::div.Tensor_mode", {x, y, "floor"}), key("aten::div.Tensor_mode", {x, y, "trunc"}));
}

TEST_F(Arguments, ANumberInAHostTensorIsARuntimeNumber) {
  const at::Tensor two = at::scalar_tensor(2.5), three = at::scalar_tensor(3.5);
  const Call call = read_call("aten::mul.Tensor", {x, two});
  EXPECT_EQ(call.key, key("aten::mul.Tensor", {x, three}));
  EXPECT_EQ(call.operands.size(), 1u);
  EXPECT_EQ(call.numbers[1].real, 2.5);
  // Its own element type counts, and whether it stands for a C++ number, which is weaker.
  EXPECT_NE(call.key, key("aten::mul.Tensor", {x, two.to(at::kDouble)}));
  at::Tensor wrapped = at::scalar_tensor(2.5);
  wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
  EXPECT_NE(call.key, key("aten::mul.Tensor", {x, wrapped}));
  const Instance& instance = instance_of("aten::mul.Tensor", {x, wrapped});
  EXPECT_TRUE(instance.args[1].from_slot && instance.args[1].wrapped);
  EXPECT_FALSE(instance.args[0].from_slot || instance.args[0].wrapped);
}

TEST_F(Arguments, AHostTensorWithDimensionsIsRefused) {
  EXPECT_THAT(
      [&] {
        read_call("aten::mul.Tensor", {x, at::ones({3})});
      },
      Refuses(Code::kInvalidArgument,
              "aten::mul.Tensor: expected every tensor on xla:0, found 'other' [3] on cpu; move it with "));
}

TEST_F(Arguments, NumbersOutsideOfTheIntegersSaturate) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [real, integer] : std::vector<std::pair<double, int64_t>>{
           {-2.75, -2}, {1e300, INT64_MAX}, {-infinity, INT64_MIN}, {std::nan(""), 0}}) {
    EXPECT_EQ(read_call("aten::add.Tensor", {x, y, real}).numbers[2].integer, integer) << real;
  }
}

TEST_F(Arguments, AComplexNumberIsPartOfTheCall) {
  const auto key = [&](double real, double imaginary) {
    return read_call("aten::add.Tensor", {x, y, c10::Scalar(c10::complex<double>(real, imaginary))}).key;
  };
  EXPECT_EQ(key(1, 2), key(1, 2));
  EXPECT_NE(key(1, 2), key(1, 3));
  EXPECT_NE(key(1, 2), key(3, 2));
}

TEST_F(Arguments, FillAnInstanceWithConstantsAndPlaces) {
  const auto& sum =
      instance_of("aten::sum.dim_IntList", {x, std::vector<int64_t>{1}, true, c10::ScalarType::Double}).args;
  EXPECT_EQ(sum[0].kind, ops::Arg::Kind::kTensor);
  EXPECT_THAT(sum[1].ints, ElementsAre(1));
  EXPECT_THAT(sum[2].ints, ElementsAre(1));
  EXPECT_EQ(sum[3].dtype, DType::kF64);
  const auto& power = instance_of("aten::pow.Tensor_Scalar", {x, 3}).args;
  EXPECT_TRUE(power[1].constant);
  EXPECT_EQ(power[1].integer, 3);
  EXPECT_EQ(power[1].category, ops::Category::kInt);
  const auto& scaled = instance_of("aten::add.Tensor", {x, y, 2.0}).args;
  EXPECT_FALSE(scaled[2].constant);
  // The element of an optional list that is absent, and the one that is there.
  c10::List<std::optional<at::Tensor>> indices;
  indices.push_back(std::nullopt);
  indices.push_back(input({4}, DType::kS64));
  const auto& picked = instance_of("aten::index.Tensor", {x, indices});
  EXPECT_THAT(picked.args[1].ints, ElementsAre(0, 1));
  EXPECT_THAT(picked.operands, ElementsAre(intern(DType::kF32, {2, 3}), intern(DType::kS64, {4})));
}

}  // namespace
}  // namespace sluice::device::testing
