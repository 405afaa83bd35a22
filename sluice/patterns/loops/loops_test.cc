// Which rounds become loops, by the text of the programs. What the loops compute is in tests/device.
#include "sluice/patterns/loops/loops.h"

#include <gtest/gtest.h>

#include <functional>

#include "sluice/patterns/patterns.h"

namespace sluice::patterns {
namespace {

using stablehlo::Builder;
using stablehlo::Dims;
using stablehlo::DType;
using stablehlo::Type;
using stablehlo::Value;
using stablehlo::Values;

constexpr size_t kRounds = 8;  // or more become a loop here
const Type kNumber{DType::kF32, {}}, kVector{DType::kF32, {64}};

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::string rewritten(const std::function<Values(Builder&)>& program, const LoopRule& rule = {kRounds}) {
  Builder b;
  const Values results = rewrite(b, program(b), {}, nullptr, nullptr, rule);
  return b.finish(results, {});
}

size_t loops_in(const std::string& text) { return count(text, "\"stablehlo.while\""); }
size_t loops_of(const std::function<Values(Builder&)>& program) { return loops_in(rewritten(program)); }

Value element(Builder& b, Value x, int64_t i) { return b.reshape(b.slice_dim(x, 0, i, i + 1), {}); }

// state = x[i] + rate * state
Value step(Builder& b, Value x, Value rate, Value state, int64_t i) {
  return b.add(element(b, x, i), b.multiply(rate, state));
}

struct Inputs {
  Value x, rate, state;
  explicit Inputs(Builder& b)
      : x(b.parameter(kVector)), rate(b.parameter(kNumber)), state(b.parameter(kNumber)) {}
};

Values chain(Builder& b, int64_t rounds) {
  const Inputs in(b);
  Value state = in.state;
  for (int64_t i = 0; i < rounds; ++i) state = step(b, in.x, in.rate, state, i);
  return {state};
}

TEST(Loops, SoManyRoundsOrMore) {
  for (const auto& [rounds, loops] : {std::pair(1, 0), {2, 0}, {7, 0}, {8, 1}, {9, 1}, {64, 1}})
    EXPECT_EQ(loops_of([&](Builder& b) { return chain(b, rounds); }), loops) << rounds;
  EXPECT_EQ(loops_in(rewritten([](Builder& b) { return chain(b, 64); }, {0})), 0);
  EXPECT_EQ(loops_in(rewritten([](Builder& b) { return chain(b, 2); }, {2})), 1);
}

TEST(Loops, TheTextHasOneRound) {
  const auto lines = [](int64_t rounds) {
    return count(rewritten([&](Builder& b) { return chain(b, rounds); }), "\n");
  };
  EXPECT_EQ(lines(64), lines(16));
  EXPECT_LT(lines(64), 40);
}

TEST(Loops, RoundsOfWhichNothingIsHandedOnStay) {
  EXPECT_EQ(loops_of([](Builder& b) {
              const Inputs in(b);
              Values all;
              for (int64_t i = 0; i < 64; ++i) all.push_back(step(b, in.x, in.rate, in.state, i));
              return all;
            }),
            0);
}

TEST(Loops, EachRoundsResultIsARowOfAStack) {
  const auto program = [](Builder& b) {
    const Inputs in(b);
    Values all = {in.state};
    for (int64_t i = 0; i < 64; ++i) all.push_back(step(b, in.x, in.rate, all.back(), i));
    return all;
  };
  const std::string text = rewritten(program);
  EXPECT_EQ(loops_in(text), 1);
  EXPECT_EQ(count(text, "\"stablehlo.slice\""), 64);
  EXPECT_EQ(count(text, "\"stablehlo.multiply\""), 1);
}

TEST(Loops, RowsOfAStackAreJoinedAtOnce) {
  for (const bool backwards : {false, true}) {
    const std::string text = rewritten([&](Builder& b) {
      const Inputs in(b);
      Value state = in.state;
      Values all;
      for (int64_t i = 0; i < 64; ++i)
        all.push_back(b.reshape(state = step(b, in.x, in.rate, state, i), {1}));
      if (backwards) std::reverse(all.begin(), all.end());
      return Values{b.concatenate(all, 0)};
    });
    EXPECT_EQ(loops_in(text), 1);
    EXPECT_EQ(count(text, "\"stablehlo.concatenate\""), 0);
    EXPECT_EQ(count(text, "\"stablehlo.reverse\""), backwards ? 1 : 0);
  }
}

// What one of 64 rounds does otherwise.
size_t loops_with(const std::function<Value(Builder& b, const Inputs& in, Value state)>& other) {
  return loops_of([&](Builder& b) {
    const Inputs in(b);
    Value state = in.state;
    for (int64_t i = 0; i < 64; ++i) state = i == 30 ? other(b, in, state) : step(b, in.x, in.rate, state, i);
    return Values{state};
  });
}

TEST(Loops, ARoundThatDiffersParts) {
  EXPECT_EQ(loops_with([](Builder& b, const Inputs& in, Value state) {
              return b.exp(step(b, in.x, in.rate, state, 30));
            }),
            2);
  EXPECT_EQ(
      loops_with([](Builder& b, const Inputs& in, Value state) { return step(b, in.x, in.rate, state, 7); }),
      2);
  EXPECT_EQ(
      loops_with([](Builder& b, const Inputs& in, Value) { return step(b, in.x, in.rate, in.state, 30); }),
      1);  // nobody reads what was before
}

TEST(Loops, OtherValuesInEachRound) {
  const auto layers = [](int64_t width) {
    return [width](Builder& b) {
      Value x = b.parameter({DType::kF32, {width}});
      for (int64_t i = 0; i < 20; ++i) x = b.tanh(b.multiply(x, b.parameter(x.type())));
      return Values{x};
    };
  };
  const std::string text = rewritten(layers(8));
  EXPECT_EQ(loops_in(text), 1);
  EXPECT_EQ(count(text, "\"stablehlo.concatenate\""), 1);
  // Weights of layers are not put together.
  EXPECT_EQ(loops_of(layers(100'000)), 0);
}

TEST(Loops, PlacesWithoutARule) {
  const std::string text = rewritten([](Builder& b) {
    const Inputs in(b);
    Value state = in.state;
    for (int64_t i = 0; i < 64; ++i) state = step(b, in.x, in.rate, state, i * i % 64);
    return Values{state};
  });
  EXPECT_EQ(loops_in(text), 1);
  EXPECT_EQ(count(text, "\"stablehlo.multiply\""), 1);
}

TEST(Loops, ValuesOfSeveralRoundsBefore) {
  const std::string text = rewritten([](Builder& b) {
    const Inputs in(b);
    Values all = {in.rate, in.state};
    for (int64_t i = 0; i < 30; ++i) all.push_back(b.tanh(b.add(all[all.size() - 1], all[all.size() - 2])));
    return Values{all.back()};
  });
  EXPECT_EQ(loops_in(text), 1);
  EXPECT_EQ(count(text, "\"stablehlo.tanh\""), 1);
}

// The gradient of x[i]: a row in zeros, added to the sum of the rounds before.
TEST(Loops, APartInZerosIsAddedInPlace) {
  const auto program = [](double around) {
    return [around](Builder& b) {
      const Inputs in(b);
      Value sum = in.x, state = in.state;
      const Value zero = b.splat(around, kNumber);
      for (int64_t i = 63; i >= 32; --i) {
        state = b.multiply(in.rate, state);
        sum = b.add(sum, b.pad(b.reshape(state, {1}), zero, {i}, {63 - i}));
      }
      return Values{sum};
    };
  };
  const std::string text = rewritten(program(0));
  EXPECT_EQ(loops_in(text), 1u);
  EXPECT_EQ(count(text, "\"stablehlo.dynamic_slice\""), 1u);
  EXPECT_EQ(count(text, "(tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>"), 0u);
  // Another number around the part is added to all elements.
  EXPECT_EQ(count(rewritten(program(1)), "(tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>"), 1u);
}

TEST(Loops, LoopsInLoops) {
  const std::string text = rewritten([](Builder& b) {
    const Inputs in(b);
    Value state = in.state;
    for (int64_t i = 0; i < 20; ++i) {
      for (int64_t k = 0; k < 30; ++k) state = step(b, in.x, in.rate, state, i + k);
      state = b.exp(state);
    }
    return Values{state};
  });
  EXPECT_EQ(loops_in(text), 2);
  EXPECT_EQ(count(text, "\"stablehlo.exponential\""), 1);
}

TEST(Loops, ALoopBehindALoopReadsItsStack) {
  const std::string text = rewritten([](Builder& b) {
    const Inputs in(b);
    Values all = {in.state};
    for (int64_t i = 0; i < 64; ++i) all.push_back(step(b, in.x, in.rate, all.back(), i));
    Value gradient = in.rate;
    for (int64_t i = 63; i > 0; --i) gradient = b.multiply(b.tanh(gradient), all[static_cast<size_t>(i)]);
    return Values{gradient};
  });
  EXPECT_EQ(loops_in(text), 2);
  EXPECT_EQ(count(text, "\"stablehlo.tanh\""), 1);
  EXPECT_LT(count(text, "\n"), 60);
}

TEST(Loops, WhatHasAnEffectStays) {
  EXPECT_EQ(loops_of([](Builder& b) {
              Value x = b.parameter(kNumber);
              for (int i = 0; i < 64; ++i) x = b.custom_call("effect", std::array{x}, {kNumber}, {})[0];
              return Values{x};
            }),
            0);
}

TEST(Loops, OperationsWithBodies) {
  const std::string text = rewritten([](Builder& b) {
    Value x = b.parameter(kVector);
    for (int i = 0; i < 64; ++i) x = b.multiply(x, b.broadcast(b.reduce_sum(x, {0}), x.dims()));
    return Values{x};
  });
  EXPECT_EQ(loops_in(text), 1);
  EXPECT_EQ(count(text, "\"stablehlo.reduce\""), 1);
}

TEST(Loops, ManyRounds) {
  const std::string text = rewritten([](Builder& b) {
    const Value x = b.parameter({DType::kF32, {20'000}}), rate = b.parameter(kNumber);
    Value state = rate;
    for (int64_t i = 0; i < 20'000; ++i) state = step(b, x, rate, state, i);
    return Values{state};
  });
  EXPECT_LT(text.size(), 5000);
}

}  // namespace
}  // namespace sluice::patterns
