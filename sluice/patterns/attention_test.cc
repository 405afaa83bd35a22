// How much of attention in groups is computed. tests/device/attention_dropout_test.cc compares its values.
#include <gtest/gtest.h>

#include "sluice/ops/attention/formula.h"
#include "sluice/patterns/table.h"
#include "sluice/patterns/testing/library.h"
#include "sluice/stablehlo/composites.h"
#include "sluice/stablehlo/flops.h"

namespace sluice::patterns {
namespace {

struct Shape {
  int64_t queries, keys;
  bool causal = true;
  int64_t batch = 2, heads = 4, heads_of_keys = 2, size = 16;
};

// Returns the FLOPs of attention, or of its gradient, after attention_in_groups().
double flops_of(const Shape& shape, bool gradient, const attention::Groups& groups) {
  Builder b;
  const auto parameter = [&](const Dims& dims) { return b.parameter({kF32, dims}); };
  const Dims queries = {shape.batch, shape.heads, shape.queries, shape.size};
  const Dims keys = {shape.batch, shape.heads_of_keys, shape.keys, shape.size};
  attention::Operands in{.q = parameter(queries), .k = parameter(keys), .v = parameter(keys)};
  in.causal = shape.causal;
  Values results;
  if (gradient) {
    const attention::Given given{parameter(queries), parameter(queries),
                                 parameter({shape.batch, shape.heads, shape.queries})};
    results = b.composite(stablehlo::composites::kAttentionGradient,
                          in.values({given.grad}, {given.output, given.logsumexp}), in.attributes(),
                          [&] { return attention::gradients_of(b, in, given, kF32); });
  } else {
    results = b.composite(stablehlo::composites::kAttention, in.values(), in.attributes(),
                          [&] { return attention::output_of(b, in, kF32); });
  }
  Rewriter r(b, results, {});
  attention_in_groups(r, groups);
  r.flatten();
  return stablehlo::count_flops(r.operations(), r.results()).all.sum();
}

// A multiplication and an addition for each of these pairs of a query and a key, in two products forward and
// five backward.
void expect_pairs(const Shape& shape, const attention::Groups& groups, int64_t pairs) {
  const auto product = static_cast<double>(2 * shape.batch * shape.heads * shape.size * pairs);
  EXPECT_EQ(flops_of(shape, /*gradient=*/false, groups), 2 * product) << groups.bytes;
  EXPECT_EQ(flops_of(shape, /*gradient=*/true, groups), 5 * product) << groups.bytes;
}

// All scores have 134 MB in the first case, and a block of the queries of one head of keys has 8 MB. So the
// numbers of bytes are for no loop, for a loop over heads, and for a loop over parts of a block.
constexpr int64_t kNumbersOfBytes[] = {1 << 30, 9'000'000, 1'000'000};

TEST(AttentionInGroups, LongCausalQueriesReadTheKeysBeforeThem) {
  for (const int64_t bytes : kNumbersOfBytes) {
    expect_pairs({.queries = 2048, .keys = 2048}, {bytes}, 512 * (512 + 1024 + 1536 + 2048));
    expect_pairs({.queries = 2560, .keys = 2048}, {bytes}, 640 * (640 + 1280 + 1920 + 2048));
    expect_pairs({.queries = 2048, .keys = 3000}, {bytes}, 512 * (512 + 1024 + 1536 + 2048));
  }
}

TEST(AttentionInGroups, OthersReadAllKeys) {
  for (const int64_t bytes : kNumbersOfBytes) {
    expect_pairs({.queries = 2048, .keys = 2048, .causal = false}, {bytes}, 2048 * 2048);
    expect_pairs({.queries = 1024, .keys = 2048}, {bytes}, 1024 * 2048);
    expect_pairs({.queries = 2048, .keys = 1024}, {bytes}, 2048 * 1024);
  }
}

// Over a mesh, each round computes the same part on each device, so nothing is computed twice.
TEST(AttentionInGroups, PartsOfEachDevice) {
  for (const int64_t bytes : kNumbersOfBytes)
    for (const attention::Groups& groups : {attention::Groups{bytes, 2, 1}, attention::Groups{bytes, 1, 2},
                                            attention::Groups{bytes, 2, 2}, attention::Groups{bytes, 3, 4}}) {
      expect_pairs({.queries = 2048, .keys = 2048}, groups, 512 * (512 + 1024 + 1536 + 2048));
      expect_pairs({.queries = 1024, .keys = 2048}, groups, 1024 * 2048);
    }
}

}  // namespace
}  // namespace sluice::patterns
