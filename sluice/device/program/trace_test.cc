// What recording keeps: nodes, leaves, pending storages, and where values begin to differ.
#include "sluice/device/program/trace.h"

#include <gmock/gmock.h>

#include "sluice/device/testing/recording.h"

namespace sluice::device::testing {
namespace {

using ::testing::ElementsAre;

class Traces : public Recording {
 protected:
  uint32_t add(const std::string& name, const std::vector<Operand>& operands) {
    std::vector<c10::IValue> tensors;
    for (const Operand& operand : operands) tensors.emplace_back(input(operand.type->type.dims));
    if (name == "aten::add.Tensor") tensors.emplace_back(1);
    return trace.add(instance_of(name, tensors), operands, {});
  }
  std::vector<const LazyStorage*> pending() const {
    std::vector<const LazyStorage*> all;
    for (const LazyStorage* s = trace.first_pending(); s != nullptr; s = s->next) all.push_back(s);
    return all;
  }
};

TEST_F(Traces, ANodeReadsItsOperandsAndNumbers) {
  const Operand x = trace.leaf(typed_data({3}));
  const uint32_t exp = add("aten::exp", {x});
  const Operand e = trace.result(exp, 0);
  EXPECT_EQ(e.ref, (Ref{exp, 0}));
  EXPECT_EQ(e.type, intern(DType::kF32, {3}));
  const Instance& scaled = instance_of("aten::add.Tensor", {input({3}), input({3}), 2.0});
  const Node& sum = trace.nodes[trace.add(scaled, {e, x}, Number{2.5, 2})];
  EXPECT_EQ(trace.inputs[sum.first_input], e.ref);
  EXPECT_EQ(trace.inputs[sum.first_input + 1], x.ref);
  EXPECT_EQ(trace.numbers[sum.first_number].real, 2.5);
}

TEST_F(Traces, DataIsOneLeafOfEachTrace) {
  const DataPtr x = typed_data({3}), y = typed_data({3});
  EXPECT_TRUE(trace.leaf(x).ref.leaf());
  EXPECT_EQ(trace.leaf(y).ref, (Ref{1, Ref::kLeaf}));
  EXPECT_EQ(trace.leaf(x).ref, (Ref{0, Ref::kLeaf}));
  EXPECT_EQ(trace.leaves.size(), 2u);
  const uint64_t number = trace.number;
  trace.clear();
  EXPECT_NE(trace.number, number);
  EXPECT_EQ(trace.leaf(y).ref, (Ref{0, Ref::kLeaf}));
  EXPECT_EQ(trace.leaves.size(), 1u);
}

TEST_F(Traces, AClearedTraceHoldsNothing) {
  const DataPtr x = typed_data({3});
  trace.layer = Names::add("fc.weight");
  trace.owner = std::this_thread::get_id();
  add("aten::exp", {trace.leaf(x)});
  EXPECT_EQ(x.use_count(), 2u);
  trace.clear();
  EXPECT_EQ(x.use_count(), 1u);
  EXPECT_TRUE(trace.nodes.empty() && trace.inputs.empty() && trace.numbers.empty() && trace.leaves.empty());
  EXPECT_EQ(trace.layer, 0u);
  EXPECT_EQ(trace.owner, std::thread::id());
}

// Runs before the tests that start threads.
using TracesDeathTest = Traces;

TEST_F(TracesDeathTest, AWaitingStorageIsNotForgotten) {
  EXPECT_DEATH(
      {
        const at::Tensor y = record("aten::exp", {input({3})});
        trace.clear();
      },
      "a trace was cleared while a storage waits for its value");
}

TEST_F(Traces, TheNextTraceIsExpectedToGoAsThisOne) {
  const Operand x = trace.leaf(typed_data({5}));
  const std::vector<c10::IValue> of = {input({5})};
  std::vector<const Instance*> instances;
  for (const char* name : {"aten::exp", "aten::sin", "aten::exp", "aten::cos", "aten::tanh", "aten::neg",
                           "aten::sqrt", "aten::abs", "aten::log"})
    instances.push_back(&instance_of(name, of));
  for (const Instance* instance : instances) trace.add(*instance, x, {});
  trace.clear();
  const Operand y = trace.leaf(typed_data({5}));
  EXPECT_EQ(trace.expected(), instances[0]);
  trace.add(*instances[0], y, {});
  EXPECT_EQ(trace.expected(), instances[1]);
  trace.add(instance_of("aten::tan", of), y, {});  // one more than before
  EXPECT_EQ(trace.expected(), instances[1]);
  trace.add(*instances[3], y, {});  // two are missing
  EXPECT_EQ(trace.expected(), instances[4]);
  trace.clear();  // three operations tell nothing of the next step
  EXPECT_EQ(trace.expected(), instances[0]);
  for (const Instance* instance : instances) trace.add(*instance, trace.leaf(typed_data({5})), {});
  EXPECT_EQ(trace.expected(), nullptr);
}

TEST_F(Traces, StoragesWaitInTheOrderInWhichTheyBecamePending) {
  const at::Tensor x = input({3});
  at::Tensor a = record("aten::exp", {x}), b = record("aten::sin", {x}), c = record("aten::cos", {x});
  EXPECT_THAT(pending(), ElementsAre(LazyStorage::of(a), LazyStorage::of(b), LazyStorage::of(c)));
  b.reset();
  EXPECT_THAT(pending(), ElementsAre(LazyStorage::of(a), LazyStorage::of(c)));
  // A storage that waits already keeps its place.
  write(a, read(c));
  EXPECT_THAT(pending(), ElementsAre(LazyStorage::of(a), LazyStorage::of(c)));
  c.reset();
  const at::Tensor d = record("aten::tanh", {x});
  EXPECT_THAT(pending(), ElementsAre(LazyStorage::of(a), LazyStorage::of(d)));
  a.reset();
  EXPECT_THAT(pending(), ElementsAre(LazyStorage::of(d)));
}

TEST_F(Traces, AResultIsAsMuchTheSameAsTheWeakestOperand) {
  const Operand global = trace.leaf(typed_data({3})),
                process = trace.leaf(typed_data({3}, DType::kF32, Sameness::kProcess)),
                different = trace.leaf(typed_data({3}, DType::kF32, Sameness::kDifferent));
  const auto sum = [&](const Operand& a, const Operand& b) {
    return trace.result(add("aten::add.Tensor", {a, b}), 0).sameness;
  };
  EXPECT_EQ(sum(global, global), Sameness::kGlobal);
  EXPECT_EQ(sum(global, process), Sameness::kProcess);
  EXPECT_EQ(sum(different, process), Sameness::kDifferent);
  EXPECT_EQ(sum(process, different), Sameness::kDifferent);
}

// A batch differs from the start, so the first operation that reads it is named, not those behind it.
TEST_F(Traces, TheOriginIsTheFirstOperationThatMadeADifference) {
  trace.layer = Names::add("fc.weight");
  const Operand weight = trace.leaf(typed_data({3})),
                batch = trace.leaf(typed_data({3}, DType::kF32, Sameness::kDifferent));
  const uint32_t first = add("aten::add.Tensor", {weight, batch});
  trace.layer = Names::add("head.weight");
  const uint32_t later = add("aten::exp", {trace.result(first, 0)});
  EXPECT_EQ(since(trace.origin(Ref{later, 0})), "different since aten::add.Tensor in layer fc.weight");
  EXPECT_EQ(since(trace.origin(batch.ref)), "it came from the host so: a batch");
}

TEST_F(Traces, ANodeMayMakeTheDifferenceOrTakeItAway) {
  const Operand x = trace.leaf(typed_data({3}));
  const uint32_t drawn = add("aten::exp", {x});
  trace.set_sameness(drawn, Sameness::kDifferent);
  const uint32_t averaged = add("aten::sin", {trace.result(drawn, 0)});
  EXPECT_EQ(since(trace.origin(Ref{averaged, 0})), "different since aten::exp");
  trace.set_sameness(averaged, Sameness::kGlobal);
  EXPECT_EQ(trace.result(averaged, 0).sameness, Sameness::kGlobal);
  EXPECT_EQ(trace.result(drawn, 0).sameness, Sameness::kDifferent);
}

TEST_F(Traces, TheDevicesOwnOperationsShareInstancesToo) {
  const Operand a = record_internal("sluice::zeros", {}, {6}, DType::kF32);
  const Operand b = record_internal("sluice::zeros", {}, {6}, DType::kF32);
  const Operand c = record_internal("sluice::zeros", {}, {7}, DType::kF32);
  const Operand d = record_internal("sluice::zeros", {}, {6}, DType::kS64);
  EXPECT_EQ(a.type, intern(DType::kF32, {6}));
  EXPECT_EQ(d.type, intern(DType::kS64, {6}));
  const auto instance = [&](const Operand& value) { return trace.nodes[value.ref.node].instance; };
  EXPECT_EQ(instance(a), instance(b));
  EXPECT_NE(instance(a), instance(c));
  EXPECT_NE(instance(a), instance(d));
}

TEST(Names, OneNumberForEachName) {
  const uint32_t number = Names::add("encoder.0.weight");
  EXPECT_NE(number, 0u);
  EXPECT_EQ(Names::add("encoder.0.weight"), number);
  EXPECT_NE(Names::add("encoder.1.weight"), number);
  EXPECT_EQ(Names::name(number), "encoder.0.weight");
  EXPECT_EQ(Names::name(0), "");
  EXPECT_EQ(Names::add(""), 0u);
}

TEST(Names, ManyKeepTheirNumbers) {
  const auto name_of = [](uint32_t i) { return "layer." + std::to_string(i) + ".weight"; };
  constexpr uint32_t kNames = 20000;
  const uint32_t first = Names::add(name_of(0));
  for (uint32_t i = 1; i < kNames; ++i) ASSERT_EQ(Names::add(name_of(i)), first + i);
  for (uint32_t i = 0; i < kNames; ++i) {
    ASSERT_EQ(Names::add(name_of(i)), first + i);
    ASSERT_EQ(Names::name(first + i), name_of(i));
  }
}

}  // namespace
}  // namespace sluice::device::testing
