// What a program's text may say of each call, and what is refused: every attribute, every operand and every
// dimension, changed one at a time.
#include "sluice/kernels/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "sluice/kernels/test_call.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {
namespace {

using stablehlo::Dims;
using stablehlo::DType;
using stablehlo::UpdateCode;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A call that is answered, and which of its changes are too.
struct Example {
  const char* name;
  TestCall call;
  std::set<std::string> free = {};
};
void PrintTo(const Example& example, std::ostream* out) { *out << example.name; }

// w -= rate * (decay * w + g), with the rate a unit and the decay one of the step's numbers.
UpdateCode sgd() {
  using Op = UpdateCode::Op;
  return {.tensors = 2,
          .units = 1,
          .numbers = 1,
          .steps = {{Op::kMultiply, 3, 0}, {Op::kAdd, 4, 1}, {Op::kMultiply, 2, 5}, {Op::kSubtract, 0, 6}},
          .results = {7}};
}

std::vector<TestTensor> tensors(std::initializer_list<Dims> all) {
  std::vector<TestTensor> made;
  for (const Dims& dims : all) made.push_back({dims});
  return made;
}

TestCall convolution(int64_t kind, std::initializer_list<Dims> operands,
                     std::initializer_list<Dims> results) {
  return {"sluice_convolution",
          tensors(operands),
          tensors(results),
          {{"kind", kind},
           {"stride", Dims{2, 2}},
           {"padding", Dims{1, 1}},
           {"dilation", Dims{1, 1}},
           {"groups", int64_t{1}},
           {"channels_first", int64_t{0}}}};
}

TestCall product(std::initializer_list<Dims> operands, const Dims& result) {
  return {"sluice_product",
          tensors(operands),
          tensors({result}),
          {{"transposed_a", int64_t{1}}, {"transposed_b", int64_t{0}}}};
}

const std::map<std::string, TestAttribute> kWindows = {
    {"kernel", Dims{2, 3}}, {"stride", Dims{2, 1}}, {"padding", Dims{0, 1}}, {"dilation", Dims{1, 1}}};
const std::map<std::string, TestAttribute> kLogarithm = {{"logarithm", int64_t{0}}};
const std::map<std::string, TestAttribute> kReverse = {{"reverse", int64_t{1}}};
const std::map<std::string, TestAttribute> kRectified = {{"reverse", int64_t{0}}, {"relu", int64_t{1}}};
const std::map<std::string, TestAttribute> kCausal = {{"causal", int64_t{1}}, {"scale", 0.5}};
const std::map<std::string, TestAttribute> kDropping = {
    {"causal", int64_t{0}}, {"scale", 0.5}, {"dropout", int64_t{1}}};

std::vector<Example> examples() {
  const Dims x = {2, 16, 13, 9}, w = {32, 16, 3, 3}, y = {2, 32, 7, 5};
  const Dims activation = {3, 4, 5}, channels = {4}, scalar = {};
  const Dims gates = {3, 2, 20}, weight = {20, 5}, steps = {3, 2, 5}, state = {2, 5};
  const Dims three_gates = {3, 2, 15}, of_three = {15, 5}, of_one = {5, 5};
  const Dims q = {2, 5, 3, 8}, k = {2, 6, 3, 8}, lse = {2, 3, 5}, packed = {2, 5, 72}, mask = {2, 1, 5, 6},
             own_mask = {2, 3, 5, 5}, seeds = {2, 2, 3, 5};
  TestCall rectified = product({{6, 8}, {6, 12}, {12}}, {8, 12});
  rectified.attributes.insert({{"rectified", int64_t{1}}, {"gated", int64_t{0}}});
  TestCall biased = convolution(0, {x, w, {32}}, {y}), biased_data = convolution(1, {y, w, {16}}, {x});
  biased.attributes["channels_first"] = biased_data.attributes["channels_first"] = int64_t{1};
  TestCall gated = product({{6, 8}, {6, 12}, {8, 12}}, {8, 12});
  gated.attributes.insert({{"rectified", int64_t{0}}, {"gated", int64_t{1}}});
  return {
      // With stride 2 x may have a last row and column that no window touches.
      {"forward", convolution(0, {x, w}, {y}), {"operand 0 dim 2", "operand 0 dim 3"}},
      {"data", convolution(1, {y, w}, {x}), {"result 0 dim 2", "result 0 dim 3"}},
      {"weights", convolution(2, {x, y}, {w}), {"operand 0 dim 2", "operand 0 dim 3"}},
      {"forward_with_bias", biased, {"operand 0 dim 2", "operand 0 dim 3", "last operand"}},
      {"data_with_bias", biased_data, {"result 0 dim 2", "result 0 dim 3", "last operand"}},
      {"backward", convolution(3, {x, w, y}, {x, w})},
      {"product", product({{6, 8}, {6, 12}}, {8, 12})},
      {"batch", product({{3, 6, 8}, {3, 6, 12}}, {3, 8, 12})},
      {"rectified", rectified},
      {"gated", gated},
      {"product_update",
       {"sluice_product_update",
        tensors({{8, 12}, {1}, {5}, {6, 8}, {6, 12}, {7}}),
        tensors({{8, 12}}),
        {{"code", sgd().to_words()},
         {"numbers", Dims{4}},
         {"product", int64_t{1}},
         {"transposed_a", int64_t{1}},
         {"transposed_b", int64_t{0}}},
        1},
       {"operand 1 rank", "operand 2 dim 0", "operand 5 dim 0", "operand 5 rank", "operand 5 type",
        "last operand"}},
      {"update",
       {"sluice_update",
        tensors({{3, 4}, {6}, {3, 4}, {6}, {1}, scalar, {5}}),
        tensors({{3, 4}, {6}}),
        {{"code", sgd().to_words()}, {"numbers", Dims{4, 0}}},
        2},
       {"operand 2 rank", "operand 3 rank", "operand 4 rank", "operand 5 rank", "operand 6 dim 0"}},
      {"moments",
       {"sluice_moments", tensors({activation, scalar}), tensors({channels, channels, channels})},
       {"operand 0 dim 0", "operand 0 dim 2", "operand 0 rank"}},
      {"running_moments",
       {"sluice_moments", tensors({activation, scalar, scalar, channels, channels}),
        tensors({channels, channels, channels, channels, channels})},
       {"operand 0 dim 0", "operand 0 dim 2", "operand 0 rank"}},
      {"channel_sums",
       {"sluice_channel_sums", tensors({activation, activation, channels, channels, channels, channels}),
        tensors({channels, channels})}},
      {"sum_of_rows", {"sluice_sum_of_rows", tensors({{6, 3, 4}}), tensors({{3, 4}})}, {"operand 0 dim 0"}},
      {"sum_of_planes",
       {"sluice_sum_of_planes", tensors({activation}), tensors({channels})},
       {"operand 0 dim 0", "operand 0 dim 2", "operand 0 rank"}},
      {"normalize",
       {"sluice_normalize", tensors({activation, channels, channels, channels, channels}),
        tensors({activation})}},
      {"normalize_sum",
       {"sluice_normalize",
        tensors({activation, channels, channels, channels, channels, activation, channels, channels, channels,
                 channels}),
        tensors({activation})}},
      {"normalization_gradient",
       {"sluice_normalization_gradient",
        tensors({activation, activation, channels, channels, channels, channels, channels, channels}),
        tensors({activation})},
       {"last operand"}},
      {"pooling",
       {"sluice_max_pooling", tensors({{2, 4, 4, 5}}), tensors({{2, 4, 2, 5}}), kWindows},
       {"operand 0 dim 2", "operand 0 dim 3", "result 0 dim 3"}},
      {"pooling_gradient",
       {"sluice_max_pooling_gradient", tensors({{2, 4, 4, 5}, {2, 4, 2, 5}}), tensors({{2, 4, 4, 5}}),
        kWindows},
       {"operand 1 dim 3"}},
      {"softmax", {"sluice_softmax", tensors({{3, 5}}), tensors({{3, 5}}), kLogarithm}},
      {"softmax_gradient",
       {"sluice_softmax_gradient", tensors({{3, 5}, {3, 5}}), tensors({{3, 5}}), kLogarithm}},
      {"layer_norm",
       {"sluice_layer_norm", tensors({{3, 4, 5}, scalar, {4, 5}, {4, 5}}),
        tensors({{3, 4, 5}, {3, 1, 1}, {3, 1, 1}})},
       {"last operand"}},
      {"layer_norm_gradient",
       {"sluice_layer_norm_gradient", tensors({{3, 5}, {3, 5}, {3, 1}, {3, 1}, {5}}),
        tensors({{3, 5}, {5}, {5}})},
       {"last operand"}},
      {"attention", {"sluice_attention", tensors({q, k, k}), tensors({q, lse}), kCausal}},
      {"masked_attention",
       {"sluice_attention", tensors({q, k, k, mask}), tensors({q, lse}), kCausal},
       {"last operand"}},
      {"masked_packed_attention",
       {"sluice_attention", tensors({packed, own_mask}), tensors({q, lse}), kCausal},
       {"last operand"}},
      {"masked_attention_gradient",
       {"sluice_attention_gradient", tensors({q, q, k, k, q, lse, mask}), tensors({q, k, k}), kCausal},
       {"last operand"}},
      {"masked_packed_attention_gradient",
       {"sluice_attention_gradient", tensors({q, packed, q, lse, own_mask}), tensors({packed}), kCausal},
       {"last operand"}},
      {"packed_attention", {"sluice_attention", tensors({packed}), tensors({q, lse}), kCausal}},
      {"attention_gradient",
       {"sluice_attention_gradient", tensors({q, q, k, k, q, lse}), tensors({q, k, k}), kCausal}},
      {"packed_attention_gradient",
       {"sluice_attention_gradient", tensors({q, packed, q, lse}), tensors({packed}), kCausal}},
      {"attention_with_dropout",
       {"sluice_attention", tensors({q, k, k, seeds, scalar}), tensors({q, lse}), kDropping}},
      {"masked_attention_with_dropout",
       {"sluice_attention", tensors({q, k, k, mask, seeds, scalar}), tensors({q, lse}), kDropping}},
      {"packed_attention_with_dropout_gradient",
       {"sluice_attention_gradient", tensors({q, packed, q, lse, seeds, scalar}), tensors({packed}),
        kDropping}},
      {"masked_attention_with_dropout_gradient",
       {"sluice_attention_gradient", tensors({q, q, k, k, q, lse, mask, seeds, scalar}), tensors({q, k, k}),
        kDropping}},
      {"lstm",
       {"sluice_lstm", tensors({gates, weight, state, state, {3}}), tensors({gates, steps, steps}), kReverse,
        1},
       {"last operand"}},
      {"lstm_of_rows",
       {"sluice_lstm", tensors({{6, 20}, weight, state, state}), tensors({{6, 20}, steps, steps}), kReverse,
        1}},
      {"lstm_gradient",
       {"sluice_lstm_gradient", tensors({gates, weight, state, steps, steps, state, state, {3}}),
        tensors({gates, state, state}), kReverse, 1},
       {"last operand"}},
      {"gru",
       {"sluice_gru", tensors({three_gates, of_three, state, {15}, {3}}), tensors({gates, steps}), kReverse},
       {"last operand"}},
      {"gru_gradient",
       {"sluice_gru_gradient", tensors({gates, of_three, state, steps, steps, state, {3}}),
        tensors({three_gates, three_gates, state}), kReverse},
       {"last operand"}},
      {"rnn",
       {"sluice_rnn", tensors({steps, of_one, state, {3}}), tensors({steps}), kRectified, 1},
       {"last operand"}},
      {"rnn_gradient",
       {"sluice_rnn_gradient", tensors({steps, of_one, steps, state, {3}}), tensors({steps, state}),
        kRectified},
       {"last operand"}},
      {"gelu", {"sluice_gelu", tensors({{3, 5}}), tensors({{3, 5}})}},
      {"gelu_gradient", {"sluice_gelu_gradient", tensors({{3, 5}, {3, 5}}), tensors({{3, 5}})}},
  };
}

const Row& row_of(const TestCall& call) {
  for (const Row& row : registry())
    if (row.target == call.target) return row;
  throw std::logic_error(call.target);
}

class EveryCall : public ::testing::TestWithParam<Example> {
 protected:
  void SetUp() override {
    if (const base::Status status = answer(GetParam().call);
        !status && status.error().code() == Code::kFailedPrecondition)
      GTEST_SKIP() << "no kernel for this CPU";
  }

  void expect(const TestCall& changed, const std::string& what) {
    const base::Status status = answer(changed);
    if (GetParam().free.contains(what)) {
      EXPECT_TRUE(status) << what << ": " << status.error().what();
      return;
    }
    ASSERT_FALSE(status) << what;
    EXPECT_EQ(status.error().code(), Code::kInvalidArgument) << what;
    EXPECT_THAT(status.error().what(), AllOf(HasSubstr(changed.target), HasSubstr("expected"))) << what;
  }
};

TEST_P(EveryCall, IsAnswered) {
  const base::Status status = answer(GetParam().call);
  EXPECT_TRUE(status) << status.error().what();
}

TEST_P(EveryCall, NeedsItsAttributes) {
  for (const Attribute& attribute : row_of(GetParam().call).attributes) {
    const std::string name(attribute.name);
    if (name.empty()) continue;
    TestCall changed = GetParam().call;
    changed.attributes.erase(name);
    if (!attribute.missing) {
      const base::Status status = answer(changed);
      ASSERT_FALSE(status) << name;
      EXPECT_THAT(status.error().what(), AllOf(HasSubstr(changed.target), HasSubstr(name + " is missing")));
    }
    changed.attributes[name] = std::string("yes");
    const base::Status status = answer(changed);
    ASSERT_FALSE(status) << name;
    EXPECT_THAT(status.error().what(), AllOf(HasSubstr(name + " is a string"), HasSubstr("expected an ")));
  }
}

TEST_P(EveryCall, RefusesNumbersOutOfRange) {
  for (const Attribute& attribute : row_of(GetParam().call).attributes) {
    const std::string name(attribute.name);
    if (name.empty() || attribute.type == Attribute::Type::kReal) continue;
    std::vector<int64_t> wrong;
    if (attribute.min > std::numeric_limits<int64_t>::min()) wrong.push_back(attribute.min - 1);
    if (attribute.max < std::numeric_limits<int64_t>::max()) wrong.push_back(attribute.max + 1);
    for (const int64_t number : wrong) {
      TestCall changed = GetParam().call;
      if (attribute.type == Attribute::Type::kList)
        std::get<Dims>(changed.attributes[name]).back() = number;
      else
        changed.attributes[name] = number;
      expect(changed, base::str(name, " ", number));
    }
    if (attribute.type != Attribute::Type::kList) continue;
    TestCall changed = GetParam().call;
    std::get<Dims>(changed.attributes[name]).pop_back();
    expect(changed, name + " shorter");
  }
}

TEST_P(EveryCall, RefusesOtherTensors) {
  const TestCall& call = GetParam().call;
  const auto change = [&](auto member, const char* kind) {
    for (size_t i = 0; i < (call.*member).size(); ++i) {
      const std::string what = base::str(kind, " ", i);
      TestCall changed = call;
      (changed.*member)[i].dtype = DType::kF64;
      expect(changed, what + " type");
      changed = call;
      (changed.*member)[i].dims.push_back(1);
      expect(changed, what + " rank");
      for (size_t d = 0; d < (call.*member)[i].dims.size(); ++d) {
        changed = call;
        ++(changed.*member)[i].dims[d];
        expect(changed, base::str(what, " dim ", d));
      }
    }
    TestCall changed = call;
    (changed.*member).pop_back();
    changed.in_place = std::min(changed.in_place, changed.results.size());
    expect(changed, base::str("last ", kind));
  };
  change(&TestCall::operands, "operand");
  change(&TestCall::results, "result");
}

INSTANTIATE_TEST_SUITE_P(All, EveryCall, ::testing::ValuesIn(examples()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(Registry, EachRowHasAnExample) {
  std::set<std::string> seen, rows;
  for (const Example& example : examples()) seen.insert(example.call.target);
  for (const Row& row : registry()) rows.emplace(row.target);
  EXPECT_EQ(seen, rows);
  EXPECT_EQ(rows.size(), registry().size());
}

// ---- What one change of a size does not reach ----

std::string refusal(const TestCall& call) {
  const base::Status status = answer(call);
  return status ? "answered" : status.error().what();
}

TestCall example(std::string_view name) {
  for (const Example& example : examples())
    if (example.name == name) return example.call;
  throw std::logic_error(std::string(name));
}

TEST(Registry, AnErrorSaysWhatWasFoundAndExpected) {
  TestCall call = example("softmax");
  call.attributes["logarithm"] = int64_t{2};
  EXPECT_EQ(
      refusal(call),
      "sluice_softmax: attribute logarithm is 2, expected an i64 from 0 to 1; a program must be made by "
      "the version of Sluice that runs it");
  call = example("attention");
  call.operands[2].dims[1] = 5;
  EXPECT_THAT(refusal(call), HasSubstr("operand 2 (q, k, v) is f32[2,5,3,8], expected f32[2,6,3,8]"));
  call = example("masked_attention");
  call.operands[1].dims[2] = call.operands[2].dims[2] = 2;
  EXPECT_THAT(refusal(call), HasSubstr("k has 2 heads, expected 3 or a divisor of it"));
}

TEST(Update, PositionsLieInTheNumbers) {
  for (const int64_t wrong : {int64_t{5}, int64_t{1} << 60, int64_t{-1}}) {
    TestCall call = example("update");
    call.attributes["numbers"] = Dims{4, wrong};
    EXPECT_THAT(refusal(call), AllOf(HasSubstr("numbers"), HasSubstr(std::to_string(wrong)))) << wrong;
    call = example("product_update");
    call.attributes["numbers"] = Dims{wrong};
    EXPECT_THAT(refusal(call), AllOf(HasSubstr("numbers"), HasSubstr(std::to_string(wrong)))) << wrong;
  }
}

TEST(Update, CodeThatReadsWhatIsNotThereIsRefused) {
  for (const char* name : {"update", "product_update"}) {
    UpdateCode code = sgd();
    code.steps[0].a = 99;
    TestCall call = example(name);
    call.attributes["code"] = code.to_words();
    EXPECT_THAT(refusal(call), HasSubstr("attribute code has"));
    code = sgd();
    code.results[0] = 0;  // a tensor, which no step makes
    call.attributes["code"] = code.to_words();
    EXPECT_THAT(refusal(call), HasSubstr("attribute code has"));
    call.attributes["code"] = Dims{};
    EXPECT_THAT(refusal(call), HasSubstr("attribute code has"));
    call.attributes["code"] = UpdateCode().to_words();  // of no registers
    EXPECT_THAT(refusal(call), HasSubstr(call.target));
  }
}

TEST(Lstm, HasAllSequencesRowsForEachStep) {
  TestCall call = example("lstm_of_rows");
  call.operands[0].dims = call.results[0].dims = {7, 20};
  EXPECT_THAT(refusal(call),
              HasSubstr("operand 0 (steps) has 7 rows, expected for each step the number of rows of "
                        "operand 2 (state), 2"));
}

TEST(Lstm, GatesTakeTheirMemory) {
  for (const char* name : {"lstm", "lstm_gradient"}) {
    TestCall call = example(name);
    call.in_place = 0;
    EXPECT_THAT(refusal(call), HasSubstr("result 0 is another tensor than operand 0"));
  }
}

// It is written where the operand lies.
TEST(Update, ResultsTakeTheirOperandsMemory) {
  for (const char* name : {"update", "product_update"}) {
    TestCall call = example(name);
    call.in_place = 0;
    EXPECT_THAT(refusal(call), HasSubstr("result 0 is another tensor than operand 0"));
  }
}

TEST(ProductUpdate, TheProductIsATensorThatIsNoResult) {
  for (const int64_t wrong : {int64_t{0}, int64_t{2}, std::numeric_limits<int64_t>::max()}) {
    TestCall call = example("product_update");
    call.attributes["product"] = wrong;
    EXPECT_THAT(refusal(call), HasSubstr(base::str("attribute product is ", wrong))) << wrong;
  }
}

TEST(Product, EmptyAndLopsidedOnesAreRefused) {
  EXPECT_THAT(refusal(product({{0, 8}, {0, 12}}, {8, 12})), HasSubstr("expected one element or more"));
  EXPECT_THAT(refusal(product({{6, 0}, {6, 12}}, {0, 12})), HasSubstr("expected one element or more"));
  EXPECT_THAT(refusal(product({{6, 8}, {6, 12}, {12}, {12}}, {8, 12})), HasSubstr("another bias"));
  EXPECT_THAT(refusal(product({{6, 8}, {6, 12}, {8, 12}, {8, 12}}, {8, 12})), HasSubstr("another matrix"));
  EXPECT_THAT(refusal(product({{3, 6, 8}, {3, 6, 12}, {12}}, {3, 8, 12})), HasSubstr("without a batch"));
}

TEST(Product, FlagsNeedTheirOperand) {
  TestCall call = example("gated");
  call.attributes["rectified"] = int64_t{1};
  EXPECT_THAT(refusal(call), HasSubstr("rectified is 1, expected a bias"));
  call = example("rectified");
  call.attributes["gated"] = int64_t{1};
  EXPECT_THAT(refusal(call), HasSubstr("gated is 1, expected a matrix"));
}

TEST(Convolution, ShapesFitTheirAttributes) {
  TestCall call = example("forward");
  call.attributes["groups"] = int64_t{2};
  EXPECT_THAT(refusal(call), HasSubstr("with 2 groups"));
  call = example("forward");
  call.attributes["stride"] = Dims{1, 1};
  EXPECT_THAT(refusal(call), HasSubstr("expected 13 results along dimension 2"));
  call = example("forward");
  call.attributes["dilation"] = Dims{1, 6};  // a window wider than the image
  EXPECT_THAT(refusal(call), HasSubstr("expected 0 results along dimension 3"));
  call = example("forward");
  for (const char* name : {"stride", "padding", "dilation"}) call.attributes[name] = Dims{1, 1, 1};
  EXPECT_THAT(refusal(call), HasSubstr("expected 5 dims each"));
}

TEST(Pooling, WindowsBeginInsideTheImage) {
  TestCall call = example("pooling");
  call.results[0].dims[2] = 3;
  EXPECT_THAT(refusal(call), HasSubstr("the last of 3 windows begins outside of dimension 2"));
}

TEST(Rows, EmptyTensorsAreRefused) {
  TestCall call = example("normalize");
  for (TestTensor& tensor : call.operands) tensor.dims[tensor.dims.size() == 1 ? 0 : 1] = 0;
  call.results[0].dims[1] = 0;
  EXPECT_THAT(refusal(call), HasSubstr("operand 0 (x) is f32[3,0,5], expected one element or more"));
  call = example("sum_of_rows");
  call.operands[0].dims = call.results[0].dims = {0};
  EXPECT_THAT(refusal(call), HasSubstr("expected one element or more"));
  call = example("attention");
  call.operands[1].dims[1] = call.operands[2].dims[1] = 0;
  EXPECT_THAT(refusal(call), HasSubstr("operand 1 (k) is f32[2,0,3,8], expected one element or more"));
}

}  // namespace
}  // namespace sluice::kernels
