// Each pattern from text to text: a program before it and after it, in golden/NAME.before.mlir and
// golden/NAME.after.mlir.
//
// SLUICE_UPDATE_GOLDEN=1 rewrites the files; look at the difference before committing it.
#include <gtest/gtest.h>

#include <filesystem>

#include "sluice/patterns/loops/loops.h"
#include "sluice/patterns/table.h"
#include "sluice/patterns/testing/rows.h"
#include "sluice/stablehlo/testing/golden.h"

namespace sluice::patterns {
namespace {

const Dims kImages = {8, 4, 32, 32}, kRows = {128, 256};

// The results of a small program in which the pattern has something to do.
Values program_of(const std::string& pattern, Rows& r) {
  const auto linear = [&] {
    const Values p = r.parameters({{40, 48}, {48, 64}, {64}});
    return r.add(r.mm(p[0], p[1]), p[2]);
  };
  const auto two = [&](const Dims& x, const Dims& y) { return r.parameters({x, y}); };
  if (pattern == "attention") {
    const Value x = r.parameter({2, 4, 64, 64});
    Values all = r.attention(x);
    for (const Value more : r.attention_with_dropout(x)) all.push_back(more);
    return all;
  }
  if (pattern == "attention_in_groups") return r.attention_with_dropout(r.parameter({2, 6, 8, 4}));
  if (pattern == "convolution") {
    const Values p = two(kImages, {8, 4, 3, 3});
    return {r.convolution(p[0], p[1])};
  }
  if (pattern == "bias_of_convolution") {
    const Values p = r.parameters({kImages, {8, 4, 3, 3}, {8}});
    const Value y = r.convolution(p[0], p[1]);
    return {r.b.add(y, r.b.broadcast_in_dim(p[2], y.dims(), {1}))};
  }
  if (pattern == "max_pooling") return {r.max_pooling(r.parameter(kImages))};
  if (pattern == "batch_norm_statistics" || pattern == "relu_of_batch_norm") {
    const Values p = two(kImages, kImages);
    return {r.relu(r.add(r.normalize(p[0])[0], p[1]))};
  }
  if (pattern == "batch_norm_gradient") {
    const Values p = two(kImages, kImages);
    const Values y = r.normalize(p[0]);
    const Value gradient = r.relu_gradient(p[1], r.relu(y[0]));
    return r.normalization_gradient(gradient, p[0], y);
  }
  if (pattern == "layer_norm") return r.layer_norm(r.parameter(kRows));
  if (pattern == "recurrent") {
    Values all = r.lstm({5, 8, 16});
    for (const Values& layer : {r.gru({5, 8, 16}), r.rnn({5, 8, 16})})
      all.insert(all.end(), layer.begin(), layer.end());
    return all;
  }
  if (pattern == "softmax") return {r.softmax(r.parameter(kRows))};
  if (pattern == "gelu") return {r.gelu(r.parameter(kRows))};
  if (pattern == "sum_of_rows") return {r.b.reduce_sum(r.parameter(kRows), {0})};
  if (pattern == "product") {
    const Values p = two({40, 48}, {64, 48});
    return {r.mm(p[0], r.b.transpose(p[1], {1, 0}))};
  }
  if (pattern == "bias_of_product") return {linear()};
  if (pattern == "relu_of_product") return {r.relu(linear())};
  if (pattern == "residual_of_product") {
    const Value x = linear();
    return {r.add(x, r.parameter({40, 64}))};
  }
  if (pattern == "relu_gradient_of_product") {
    const Values p = r.parameters({{40, 48}, {48, 64}, {40, 64}});
    return {r.relu_gradient(r.mm(p[0], p[1]), p[2])};
  }
  if (pattern == "optimizer_update") {
    const Values p = r.parameters({{256, 256}, {1}, {256, 256}});
    const Value rate = r.b.broadcast(r.b.reshape(p[1], {}), p[0].dims());
    return {r.b.subtract(p[0], r.b.multiply(p[2], rate))};
  }
  if (pattern == "cross_entropy_gradient") return {r.cross_entropy_gradient(r.parameter(kRows))};
  if (pattern == "broadcast_index") {
    const Dims x = {4, 9, 32}, rows = {4, 7};
    const Value places = r.b.parameter({stablehlo::DType::kS64, rows});
    const Value index = r.b.broadcast_in_dim(places, {4, 7, 32}, {0, 1}),
                read = r.gather(r.parameter(x), index);
    return {read, r.scatter_add(r.parameter(x), index, read)};
  }
  if (pattern == "label_scores") return {r.negative_log_likelihood(r.parameter(kRows))};
  if (pattern == "loops") {
    // g = r[i] + rate * g; out[i] = g
    const Values p = r.parameters({{6}, {}, {6}});
    Value g = r.b.splat(0, p[1].type()), out = p[2];
    for (int64_t i = 5; i >= 0; --i) {
      g = r.add(r.b.reshape(r.b.slice_dim(p[0], 0, i, i + 1), {}), r.b.multiply(p[1], g));
      const Value at[] = {r.b.splat(i, {stablehlo::DType::kS64, {}})};
      out = r.b.dynamic_update_slice(out, r.b.reshape(g, {1}), at);
    }
    return {out, g};
  }
  if (pattern == "folds") {
    const Values p = two({3, 4}, {3});
    const Value e = r.b.exp(p[0]), f = r.b.broadcast_in_dim(r.b.exp(p[1]), {3, 4}, {0});
    return {r.b.log(f),         r.b.power(e, p[0]),  r.b.sqrt(r.b.multiply(e, e)),
            r.b.multiply(e, f), r.b.divide(e, p[0]), r.b.log(p[0])};
  }
  return {};
}

void compare(const std::string& name, const std::string& text) {
  stablehlo::testing::expect_golden(std::filesystem::path(SLUICE_GOLDEN_DIR) / (name + ".mlir"), text);
}

// Rewrites by the table as far as this pattern.
std::string after(const std::string& pattern) {
  Rows r;
  const TestLibrary all(true);
  std::vector<stablehlo::Donation> donations;
  const Values results = program_of(pattern, r);
  if (pattern == "optimizer_update") {
    donations.resize(3);
    donations[0] = {stablehlo::Donation::Kind::kAliasOutput, 0};
  }
  Rewriter rewriter(r.b, results, donations);
  if (pattern == "cross_entropy_gradient") {
    cross_entropy_gradient(rewriter);
  } else if (pattern == "broadcast_index") {
    broadcast_index(rewriter);
  } else if (pattern == "label_scores") {
    label_scores(rewriter);
  } else if (pattern == "folds") {
    folds(rewriter);
  } else if (pattern == "attention_in_groups") {
    attention_in_groups(rewriter, {1024});  // two of the six heads
  } else if (pattern == "loops") {
    loops(rewriter, {4});
  } else {
    for (const Pattern& p : kernel_patterns()) {
      p.apply(rewriter, all);
      if (p.name == pattern) break;
    }
  }
  return r.b.finish(rewriter.finish(), donations);
}

void check(const std::string& pattern) {
  Rows r;
  const Values results = program_of(pattern, r);
  ASSERT_FALSE(results.empty()) << "no program for the pattern " << pattern << ": add one to program_of()";
  compare(pattern + ".before", r.b.finish(results, {}));
  compare(pattern + ".after", after(pattern));
}

TEST(Golden, EachPatternIsFromTextToText) {
  for (const Pattern& pattern : kernel_patterns()) {
    SCOPED_TRACE(pattern.name);
    check(std::string(pattern.name));
  }
  check("attention_in_groups");
  check("cross_entropy_gradient");
  check("broadcast_index");
  check("folds");
  check("label_scores");
  check("loops");
}

}  // namespace
}  // namespace sluice::patterns
