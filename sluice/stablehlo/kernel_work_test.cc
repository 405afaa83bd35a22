#include "sluice/stablehlo/kernel_work.h"

#include <gtest/gtest.h>

#include <map>

#include "sluice/stablehlo/kernel_library.h"

namespace sluice::stablehlo {
namespace {

std::optional<double> flops(std::string_view target, std::vector<Dims> operands, std::vector<Dims> results,
                            const std::map<std::string, Dims>& attributes = {}) {
  return flops_of({target, std::move(operands), std::move(results), [&](std::string_view name) {
                     const auto found = attributes.find(std::string(name));
                     return found == attributes.end() ? Dims() : found->second;
                   }});
}

// The multiplications of a convolution's formula, one by one.
double count_convolution(const Dims& y, const Dims& w) {
  double count = 0;
  for (int64_t n = 0; n < y[0]; ++n)
    for (int64_t o = 0; o < y[1]; ++o)
      for (int64_t at = 0; at < y[2] * y[3]; ++at)
        for (int64_t c = 0; c < w[1]; ++c)
          for (int64_t tap = 0; tap < w[2] * w[3]; ++tap) ++count;
  return count;
}

TEST(Flops, OfAConvolutionAreThoseOfItsFormula) {
  const Dims x = {2, 8, 13, 9}, y = {2, 6, 7, 5}, w = {6, 4, 3, 3};  // two groups, stride 2
  const double once = 2 * count_convolution(y, w);
  const auto of = [](int64_t kind) { return std::map<std::string, Dims>{{"kind", {kind}}}; };
  EXPECT_EQ(flops("sluice_convolution", {x, w}, {y}, of(0)), once);
  EXPECT_EQ(flops("sluice_convolution", {y, w}, {x}, of(1)), once);
  EXPECT_EQ(flops("sluice_convolution", {x, y}, {w}, of(2)), once);
  EXPECT_EQ(flops("sluice_convolution", {x, w, y}, {x, w}, of(3)), 2 * once);
}

TEST(Flops, OfAProductDoNotDependOnHowItLies) {
  for (const int64_t a : {0, 1})
    for (const int64_t b : {0, 1}) {
      const std::map<std::string, Dims> attributes = {{"transposed_a", {a}}, {"transposed_b", {b}}};
      const Dims left = a != 0 ? Dims{5, 3} : Dims{3, 5}, right = b != 0 ? Dims{7, 5} : Dims{5, 7};
      EXPECT_EQ(flops("sluice_product", {left, right, {7}}, {{3, 7}}, attributes), 2.0 * 3 * 5 * 7);
      Dims batch_left = left, batch_right = right;
      batch_left.insert(batch_left.begin(), 4);
      batch_right.insert(batch_right.begin(), 4);
      EXPECT_EQ(flops("sluice_product", {batch_left, batch_right}, {{4, 3, 7}}, attributes),
                2.0 * 4 * 3 * 5 * 7);
    }
}

TEST(Flops, OfAProductWithAnUpdateLeaveOutTheUpdate) {
  const UpdateCode code = {.tensors = 2,
                           .units = 1,
                           .numbers = 1,
                           .steps = {{UpdateCode::Op::kMultiply, 2, 1}, {UpdateCode::Op::kSubtract, 0, 4}},
                           .results = {5}};
  const std::map<std::string, Dims> attributes = {{"code", code.to_words()}, {"transposed_a", {1}}};
  EXPECT_EQ(flops("sluice_product_update", {{8, 12}, {1}, {5}, {6, 8}, {6, 12}}, {{8, 12}}, attributes),
            2.0 * 8 * 6 * 12);
}

TEST(Flops, OfAttentionCountWhatEachQuerySees) {
  const Dims q = {2, 5, 3, 8}, k = {2, 6, 3, 8}, lse = {2, 3, 5}, packed = {2, 5, 72};
  double seen = 0;
  for (int64_t query = 0; query < 5; ++query)
    for (int64_t key = 0; key < 6; ++key) seen += key <= query ? 1 : 0;
  const double all = 2.0 * 3 * 8 * 4;  // of a query and a key, in all batches and heads
  EXPECT_EQ(flops("sluice_attention", {q, k, k}, {q, lse}), all * 5 * 6);
  EXPECT_EQ(flops("sluice_attention", {q, k, k}, {q, lse}, {{"causal", {1}}}), all * seen);
  EXPECT_EQ(flops("sluice_attention", {packed}, {q, lse}), all * 5 * 5);
  EXPECT_EQ(flops("sluice_attention_gradient", {q, q, k, k, q, lse}, {q, k, k}), 2 * all * 5 * 6);
  EXPECT_EQ(flops("sluice_attention_gradient", {q, packed, q, lse}, {packed}), 2 * all * 5 * 5);
}

TEST(Flops, OfARecurrentLayerAreThoseOfItsStates) {
  const Dims gates = {3, 2, 20}, weight = {20, 5}, steps = {3, 2, 5}, state = {2, 5};
  EXPECT_EQ(flops("sluice_lstm", {gates, weight, state, state}, {gates, steps, steps}), 2.0 * 3 * 2 * 20 * 5);
  EXPECT_EQ(flops("sluice_lstm", {{6, 20}, weight, state, state}, {{6, 20}, steps, steps}),
            2.0 * 3 * 2 * 20 * 5);
  EXPECT_EQ(flops("sluice_lstm", {gates, weight, state, state, {3}}, {gates, steps, steps}), std::nullopt)
      << "how long the sequences are is not known";
  EXPECT_EQ(flops("sluice_rnn_gradient", {steps, {5, 5}, steps, state}, {steps, state}), 2.0 * 3 * 2 * 5 * 5);
}

TEST(Flops, OfTheRestAreNotCounted) {
  EXPECT_EQ(flops("sluice_softmax", {{3, 5}}, {{3, 5}}), std::nullopt);
  EXPECT_EQ(flops("somebody_elses", {{3, 5}}, {{3, 5}}), std::nullopt);
}

}  // namespace
}  // namespace sluice::stablehlo
