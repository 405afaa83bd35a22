// What of a trace becomes a program: its live part, its signature, its text.
#include "sluice/device/program/lower.h"

#include <gmock/gmock.h>

#include <functional>

#include "sluice/device/testing/recording.h"

namespace sluice::device::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class Plans : public Recording {
 protected:
  Plan plan(const World& world = {}) {
    output_of.clear();
    return make_plan(trace, world, output_of);
  }
  // Of what a step keeps, recorded into a trace of its own.
  using Step = std::function<std::vector<at::Tensor>()>;
  std::vector<uint64_t> signature(const Step& step) {
    std::vector<uint64_t> found;
    {
      const auto kept = step();
      found = plan().signature;
    }
    trace.clear();
    return found;
  }
  uint64_t canonical(const Step& step) {
    uint64_t found = 0;
    {
      const auto kept = step();
      found = canonical_hash(trace, plan());
    }
    trace.clear();
    return found;
  }
  std::vector<uint32_t> output_of;
};

TEST_F(Plans, LeavesOutWhatNobodyKeeps) {
  const at::Tensor unused = input({3}), x = input({4});
  record("aten::exp", {unused});
  const at::Tensor kept = record("aten::cos", {record("aten::sin", {x})});
  record("aten::tanh", {kept});
  const Plan found = plan();
  EXPECT_THAT(found.nodes, ElementsAre(1, 2));
  EXPECT_THAT(found.leaves, ElementsAre(1));
  EXPECT_THAT(found.outputs, ElementsAre(Ref{2, 0}));
  EXPECT_THAT(output_of, ElementsAre(0));
}

TEST_F(Plans, StoragesOfOneValueShareItsResult) {
  const auto largest = record_all("aten::max.dim", {input({2, 3}), 1, false});
  const at::Tensor same = make_tensor(read(largest[0]));
  const Plan found = plan();
  EXPECT_THAT(found.outputs, ElementsAre(Ref{0, 0}, Ref{0, 1}));
  EXPECT_THAT(output_of, ElementsAre(0, 1, 0));
}

TEST_F(Plans, ALeafThatIsReadTwiceIsOneParameter) {
  const at::Tensor x = input({4}), y = input({4});
  const at::Tensor a = record("aten::add.Tensor", {y, x, 1}), b = record("aten::add.Tensor", {x, y, 1});
  EXPECT_THAT(plan().leaves, ElementsAre(0, 1));
}

TEST_F(Plans, ReplacedDataGivesItsMemoryToTheNewValue) {
  const at::Tensor weight = input({4}), gradient = input({4});
  write(weight, read(record("aten::add.Tensor", {weight, gradient, -0.5})));
  EXPECT_THAT(plan().aliases, ElementsAre(0, -1));
}

TEST_F(Plans, MemoryIsGivenOnceAndOnlyToItsOwnType) {
  const at::Tensor a = input({4}), b = input({4}), c = input({2, 2});
  const at::Tensor sum = record("aten::add.Tensor", {a, b, 1}), square = record("aten::exp", {c});
  write(a, read(sum));
  write(b, read(sum));                          // the same result
  set_pending(*LazyStorage::of(c), read(sum));  // of another shape
  const Plan found = plan();
  EXPECT_THAT(found.outputs, ElementsAre(Ref{0, 0}, Ref{1, 0}));
  EXPECT_THAT(found.aliases, ElementsAre(0, -1, -1));
}

TEST_F(Plans, DataThatNothingReadsHasNoMemoryToGive) {
  const at::Tensor weight = input({4});
  write(weight, read(record("aten::exp", {input({4})})));
  EXPECT_THAT(plan().aliases, ElementsAre(-1));
}

TEST_F(Plans, TheSameComputationHasTheSameSignature) {
  const auto step = [](double alpha) {
    const at::Tensor x = input({4}), y = input({4});
    return std::vector{record("aten::add.Tensor", {record("aten::exp", {x}), y, alpha})};
  };
  const auto one = signature([&] { return step(2); });
  EXPECT_EQ(signature([&] { return step(3); }), one);
  EXPECT_EQ(signature([&] {
              record("aten::sin", {input({7})});  // dead
              return step(2);
            }),
            one);
}

TEST_F(Plans, EachDifferenceOfProgramsIsInTheSignature) {
  const auto exp_and_sum = [](bool keep_exp, bool same_operand, int64_t size) {
    const at::Tensor x = input({size}), y = input({size}), e = record("aten::exp", {x});
    std::vector kept = {record("aten::add.Tensor", {e, same_operand ? x : y, 1})};
    if (keep_exp) kept.push_back(e);
    return kept;
  };
  const auto power = [](double exponent) {
    return std::vector{record("aten::pow.Tensor_Scalar", {input({4}), exponent})};
  };
  const auto update = [](bool in_place) {
    const at::Tensor x = input({4}), y = record("aten::exp", {x});
    if (in_place) write(x, read(y));
    return std::vector{in_place ? x : y};
  };
  const std::vector<Step> steps = {
      [&] { return exp_and_sum(false, false, 4); },
      [&] { return exp_and_sum(true, false, 4); },
      [&] { return exp_and_sum(false, true, 4); },
      [&] { return exp_and_sum(false, false, 5); },
      [&] { return power(2); },
      [&] { return power(3); },
      [&] { return update(false); },
      [&] { return update(true); },
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      EXPECT_NE(signature(steps[i]), signature(steps[k])) << i << " and " << k;
      EXPECT_NE(canonical(steps[i]), canonical(steps[k])) << i << " and " << k;
    }
  }
}

// Another process makes its instances in another order and at other addresses.
TEST_F(Plans, TheCanonicalHashIsFreeOfTheInstancesNumbers) {
  const auto exp_known_as = [&](uint64_t key_word) {
    InstanceKey key;
    key.push_back(key_word);
    const TypeRef types[] = {intern(DType::kF32, {4})};
    const Instance& instance = find_instance(key, types, [](Instance& made) {
      made.row = ops::find_row("aten::exp");
      made.names = &signature_of("aten::exp").names;
      made.args.resize(1);
      made.args[0].kind = ops::Arg::Kind::kTensor;
    });
    const uint32_t node = trace.add(instance, trace.leaf(typed_data({4})), {});
    return std::vector{make_tensor(trace.result(node, 0))};
  };
  const Step here = [&] { return exp_known_as(1); }, there = [&] { return exp_known_as(3); };
  EXPECT_NE(signature(here), signature(there));
  EXPECT_EQ(canonical(here), canonical(there));
}

using Lower = Plans;

// Sums of three types, each with a run-time number, and one that nobody keeps.
std::vector<at::Tensor> sums_with_numbers() {
  const at::Tensor f = input({4}), n = input({4}, DType::kS64), d = input({4}, DType::kF64);
  record("aten::add.Tensor", {f, f, 9.0});
  return {record("aten::add.Tensor", {f, f, 2.5}), record("aten::add.Tensor", {n, n, 7}),
          record("aten::add.Tensor", {d, d, 0.125})};
}

TEST_F(Lower, LeavesComeFirstThenTheNumbersOfEachClass) {
  const auto kept = sums_with_numbers();
  const Plan found = plan();
  EXPECT_THAT(found.scalars, ElementsAre(1, 1, 1));
  EXPECT_THAT(lower(trace, found, {}, false).text,
              ContainsRegex("@main\\([^:]+: tensor<4xf32>, [^:]+: tensor<4xi64>, [^:]+: tensor<4xf64>, "
                            "[^:]+: tensor<1xf32>, [^:]+: tensor<1xi64>, [^:]+: tensor<1xf64>\\)"));
  Scalars scalars;
  gather_scalars(trace, found, {}, scalars);
  EXPECT_THAT(scalars.f32, ElementsAre(2.5F));
  EXPECT_THAT(scalars.i64, ElementsAre(7));
  EXPECT_THAT(scalars.f64, ElementsAre(0.125));
}

// Programs that do not span processes learn from a number which replicas they are.
TEST_F(Lower, TheFirstReplicasNumberComesBeforeTheOthers) {
  World world;
  world.processes = 2;
  world.local_replicas = 3;
  world.process_index = 1;
  const auto kept = sums_with_numbers();
  const Plan found = plan(world);
  EXPECT_THAT(found.scalars, ElementsAre(1, 2, 1));
  Scalars scalars;
  gather_scalars(trace, found, world, scalars);
  EXPECT_THAT(scalars.i64, ElementsAre(3, 7));
  EXPECT_THAT(lower(trace, found, world, false).text, HasSubstr("mhlo.num_replicas = 3"));
  world.spans_processes = true;
  const Plan spanning = plan(world);
  EXPECT_THAT(spanning.scalars, ElementsAre(1, 1, 1));
  EXPECT_THAT(lower(trace, spanning, world, false).text, HasSubstr("mhlo.num_replicas = 6"));
}

TEST_F(Lower, DonationsAreInTheTextWhereTheyAreWanted) {
  const at::Tensor weight = input({4}), gradient = input({4});
  write(weight, read(record("aten::add.Tensor", {weight, gradient, 1})));
  const Plan found = plan();
  EXPECT_THAT(
      lower(trace, found, {}, true).text,
      ContainsRegex(
          "@main\\([^:]+: tensor<4xf32> \\{tf.aliasing_output = 0 : i32\\}, [^:]+: tensor<4xf32>\\)"));
  EXPECT_THAT(lower(trace, found, {}, false).text, Not(HasSubstr("tf.aliasing_output")));
}

TEST_F(Lower, OperationsCarryTheirLayerAndRow) {
  const at::Tensor x = input({4});
  record("aten::sin", {x});
  trace.layer = Names::add("fc.weight");
  const at::Tensor kept = record("aten::exp", {x});
  EXPECT_THAT(lower(trace, plan(), {}, false).text,
              AllOf(HasSubstr("stablehlo.exponential"), HasSubstr("loc(\"fc.weight/aten::exp\""),
                    Not(HasSubstr("stablehlo.sine"))));
}

}  // namespace
}  // namespace sluice::device::testing
