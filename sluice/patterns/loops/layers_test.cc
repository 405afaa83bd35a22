// Loops of equal layers, in training steps of a small decoder. What the loops compute is in tests/device.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "sluice/patterns/loops/loops.h"
#include "sluice/patterns/testing/decoder.h"

namespace sluice::patterns {
namespace {

constexpr LoopRule kSmallLayers{32, 100};

size_t parts_in(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}
size_t operations_in(const std::string& text, const std::string& name) {
  return parts_in(text, "\"stablehlo." + name + "\"(");
}

std::string step_of(const DecoderOptions& options, const LoopRule& rule = kSmallLayers) {
  stablehlo::Builder b;
  const Decoder decoder(b, options);
  stablehlo::Rewriter r(b, decoder.results, decoder.donations);
  loops(r, rule);
  return b.finish(r.finish(), decoder.donations);
}

// What the loops of a program carry from round to round.
std::string state_of_loops(const std::string& text) {
  std::istringstream lines(text);
  std::string all;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("    ^bb0(%b")) all += line + "\n";
  return all;
}

TEST(Layers, TheLoopsDoNotGrowWithTheLayers) {
  std::vector<size_t> lines;
  for (const int64_t layers : {6, 12, 24, 48}) {
    const std::string text = step_of({.layers = layers});
    EXPECT_EQ(operations_in(text, "while"), 2u) << layers;
    // Three of the embedding and two of the head, 6 of a layer forward and 12 backward.
    EXPECT_EQ(operations_in(text, "dot_general"), 23u) << layers;
    EXPECT_EQ(operations_in(text, "exponential"), 1u) << layers;
    EXPECT_EQ(operations_in(text, "dynamic_update_slice"), 24u) << layers;
    lines.push_back(parts_in(text, "\n"));
  }
  // Outside are the updates of each layer's 12 parameters: 14 operations each, and two for the row of a
  // gradient's or a weight's stack.
  EXPECT_EQ(lines[1] - lines[0], 6u * 192);
  EXPECT_EQ(lines[2] - lines[1], 12u * 192);
  EXPECT_EQ(lines[3] - lines[2], 24u * 192);
}

TEST(Layers, OneAfterTheOtherWithoutTheRule) {
  const std::string text = step_of({}, kLongLoops);
  EXPECT_EQ(operations_in(text, "while"), 0u);
  EXPECT_EQ(operations_in(text, "dot_general"), 5u + 6 * 18);
  EXPECT_EQ(operations_in(step_of({.layers = 3}), "while"), 0u);
}

TEST(Layers, ARuleHoldsForManyRoundsOrManyOperations) {
  EXPECT_TRUE(kLongLoops.holds(1, 32));
  EXPECT_FALSE(kLongLoops.holds(1000, 31));
  EXPECT_TRUE(kLayerLoops.holds(1, 32));
  EXPECT_TRUE(kLayerLoops.holds(100, 5));
  EXPECT_FALSE(kLayerLoops.holds(99, 5));
  EXPECT_FALSE(kLayerLoops.holds(10'000, 3));
}

TEST(Layers, WeightsOfBothLoopsAreCopiedOnce) {
  const std::string text = step_of({});
  // 12 kinds of weight; five keys of dropout and the gradient of q, k and v are concatenations, too.
  EXPECT_EQ(operations_in(text, "concatenate"), 12u + 5 + 1);
}

TEST(Layers, MasksAndViewsAreMadeAgain) {
  const std::string state = state_of_loops(step_of({.batch = 3}));
  EXPECT_EQ(parts_in(state, "xi1>"), 0u) << "masks of dropout";
  EXPECT_EQ(parts_in(state, "xui32>"), 0u) << "their random words";
  // The probabilities and attention's result, each once; the state stands at the condition and at the body.
  EXPECT_EQ(parts_in(state, "tensor<6x3x2x8x8xf32>"), 2u * 2);
}

TEST(Layers, WeightsAreConvertedBeforeTheLoop) {
  const std::string state = state_of_loops(step_of({.batch = 3, .bf16 = true}));
  EXPECT_EQ(parts_in(state, "tensor<6x48x16xf32>"), 0u);
  EXPECT_GT(parts_in(state, "tensor<6x48x16xbf16>"), 0u) << "gradients are kept as they are computed";
}

TEST(Layers, ALayerThatDiffersPartsTheLoops) {
  EXPECT_EQ(operations_in(step_of({.layers = 9, .other = 4}), "while"), 4u);
  const std::string text = step_of({.layers = 9, .other = 8});
  EXPECT_EQ(operations_in(text, "while"), 2u);
  EXPECT_EQ(operations_in(text, "dot_general"), 23u + 18);
}

TEST(Layers, FrozenLayersAreOnlyInTheForwardLoop) {
  const std::string text = step_of({.layers = 10, .frozen = 4});
  EXPECT_EQ(operations_in(text, "while"), 2u);
  // The gradients of the first layer with one go no further, so that it is not in the loop.
  EXPECT_EQ(operations_in(text, "dot_general"), 34u);
  const std::string state = state_of_loops(text);
  EXPECT_EQ(parts_in(state, "tensor<10x2x2x8x8xf32>"), 0u) << "nothing is kept of frozen layers";
}

}  // namespace
}  // namespace sluice::patterns
