#include "sluice/kernels/rows/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "sluice/kernels/lanes.h"
#include "sluice/kernels/test_noise.h"
#include "sluice/kernels/test_threads.h"

namespace sluice::kernels {
namespace {

struct Tensors {
  std::vector<float> q, k, v, grad_output;
  std::vector<float> output = {}, logsumexp = {};
  std::vector<float> grad_q = {}, grad_k = {}, grad_v = {};
};

Tensors operands_of(const Attention& a, float width) {
  const size_t queries = a.batch * a.queries * a.heads * a.size,
               keys = a.batch * a.keys * a.heads / a.sharing() * a.size;
  Tensors t{noise(queries, 1, width), noise(keys, 2), noise(keys, 3), noise(queries, 4)};
  t.output = t.grad_q = std::vector<float>(queries, NAN);
  t.grad_k = t.grad_v = std::vector<float>(keys, NAN);
  t.logsumexp.resize(a.batch * a.heads * a.queries, NAN);
  return t;
}

void run(const Attention& a, Tensors& t) {
  attend(a, t.q.data(), t.k.data(), t.v.data(), t.output.data(), t.logsumexp.data());
  attend_gradient(a, {t.grad_output.data(), t.q.data(), t.k.data(), t.v.data(), t.output.data(),
                      t.logsumexp.data(), t.grad_q.data(), t.grad_k.data(), t.grad_v.data()});
}

// Tensors [rows, columns] side by side, and what of such a one is the i-th of them.
std::vector<float> joined(const std::vector<std::vector<float>>& parts, size_t columns) {
  std::vector<float> all;
  for (size_t first = 0; first < parts[0].size(); first += columns)
    for (const std::vector<float>& part : parts)
      all.insert(all.end(), part.begin() + first, part.begin() + first + columns);
  return all;
}
std::vector<float> part_of(const std::vector<float>& all, size_t i, size_t columns) {
  std::vector<float> part;
  for (size_t first = i * columns; first < all.size(); first += 3 * columns)
    part.insert(part.end(), all.begin() + first, all.begin() + first + columns);
  return part;
}

// The same as run() with queries, keys and values in one tensor, and their gradients in another.
void run_packed(Attention a, Tensors& t) {
  a.packed_qkv = true;
  const size_t columns = a.heads * a.size;
  const std::vector<float> all = joined({t.q, t.k, t.v}, columns);
  std::vector<float> of_all(all.size(), NAN);
  const float *const q = all.data(), *const k = q + columns, *const v = k + columns;
  float *const of_q = of_all.data(), *const of_k = of_q + columns, *const of_v = of_k + columns;
  attend(a, q, k, v, t.output.data(), t.logsumexp.data());
  attend_gradient(a, {t.grad_output.data(), q, k, v, t.output.data(), t.logsumexp.data(), of_q, of_k, of_v});
  t.grad_q = part_of(of_all, 0, columns);
  t.grad_k = part_of(of_all, 1, columns);
  t.grad_v = part_of(of_all, 2, columns);
}

double product(const std::vector<float>& a, size_t at_a, const std::vector<float>& b, size_t at_b,
               size_t size) {
  double sum = 0;
  for (size_t i = 0; i < size; ++i) sum += double{a[at_a + i]} * b[at_b + i];
  return sum;
}

// The largest error of what was found, from one head's numbers.
void expect_near(const std::vector<float>& found, size_t at, const std::vector<double>& wanted, size_t rows,
                 size_t step, const char* what) {
  double largest = 1;
  for (const double value : wanted) largest = std::max(largest, std::abs(value));
  const size_t size = wanted.size() / rows;
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(found[at + i / size * step + i % size], wanted[i], 1e-5 * largest) << what << " " << i;
}

// What the probability of a key is multiplied by.
double factor_of(const Attention& a, size_t head, size_t query, size_t key) {
  if (a.dropout.seeds == nullptr) return 1;
  const size_t row = head * a.queries + query;
  uint32_t x = a.dropout.seeds[row] + static_cast<uint32_t>(key) * 2654435769u;
  x = (x ^ (x >> 16)) * 2146121005u;
  x = ((x ^ (x >> 15)) ^ a.dropout.seeds[a.batch * a.heads * a.queries + row]) * 2221713035u;
  const double p = a.dropout.p;
  return x >> 8 < (1 - p) * (1 << 24) ? 1 / (1 - p) : 0;
}

void expect_definition(const Attention& a, const Tensors& t) {
  const size_t heads_of_keys = a.heads / a.sharing(), step = a.heads * a.size,
               step_of_keys = heads_of_keys * a.size;
  for (size_t group = 0; group < a.batch * heads_of_keys; ++group) {
    const size_t batch = group / heads_of_keys, head_of_keys = group % heads_of_keys;
    const size_t of_k = batch * a.keys * step_of_keys + head_of_keys * a.size;
    std::vector<double> k(a.keys * a.size), v(k);
    for (size_t member = 0; member < a.sharing(); ++member) {
      const size_t head = head_of_keys * a.sharing() + member;
      const size_t of_q = batch * a.queries * step + head * a.size;
      std::vector<double> output(a.queries * a.size), logsumexp(a.queries), q(output);
      for (size_t i = 0; i < a.queries; ++i) {
        const size_t row = of_q + i * step, seen = a.causal ? std::min(a.keys, i + 1) : a.keys;
        std::vector<double> p(seen), of_p(seen);
        double largest = -INFINITY, sum = 0, delta = 0;
        for (size_t j = 0; j < seen; ++j) {
          p[j] = a.scale * product(t.q, row, t.k, of_k + j * step_of_keys, a.size);
          if (a.mask.data != nullptr)
            p[j] +=
                a.mask.data[batch * a.mask.batch_step + head * a.mask.head_step + i * a.mask.query_step + j];
          largest = std::max(largest, p[j]);
        }
        logsumexp[i] = INFINITY;
        if (largest == -INFINITY) continue;  // sees nothing
        for (double& value : p) sum += value = std::exp(value - largest);
        logsumexp[i] = largest + std::log(sum);
        for (size_t j = 0; j < seen; ++j) {
          p[j] /= sum;
          of_p[j] = factor_of(a, batch * a.heads + head, i, j) *
                    product(t.grad_output, row, t.v, of_k + j * step_of_keys, a.size);
          delta += p[j] * of_p[j];
        }
        for (size_t j = 0; j < seen; ++j) {
          const double of_score = a.scale * p[j] * (of_p[j] - delta);
          const double kept = p[j] * factor_of(a, batch * a.heads + head, i, j);
          for (size_t d = 0; d < a.size; ++d) {
            const size_t key = of_k + j * step_of_keys + d;
            output[i * a.size + d] += kept * t.v[key];
            q[i * a.size + d] += of_score * t.k[key];
            k[j * a.size + d] += of_score * t.q[row + d];
            v[j * a.size + d] += kept * t.grad_output[row + d];
          }
        }
      }
      expect_near(t.output, of_q, output, a.queries, step, "output");
      expect_near(t.grad_q, of_q, q, a.queries, step, "gradient of q");
      for (size_t i = 0; i < a.queries; ++i) {
        const float found = t.logsumexp[(batch * a.heads + head) * a.queries + i];
        if (std::isinf(logsumexp[i])) {
          ASSERT_EQ(found, INFINITY) << "logarithm " << i;
        } else {
          ASSERT_NEAR(found, logsumexp[i], 1e-5 * std::max(1.0, std::abs(logsumexp[i]))) << "logarithm " << i;
        }
      }
    }
    expect_near(t.grad_k, of_k, k, a.keys, step_of_keys, "gradient of k");
    expect_near(t.grad_v, of_k, v, a.keys, step_of_keys, "gradient of v");
  }
}

// By all threads, by one, and where it can be with q, k and v in one tensor.
void expect_definition_in_all_forms(const Attention& a) {
  Tensors t = operands_of(a, 1), alone = t, packed = t;
  {
    const TestThreads threads;
    run(a, t);
  }
  ASSERT_NO_FATAL_FAILURE(expect_definition(a, t));
  run(a, alone);
  EXPECT_EQ(alone.output, t.output) << "one thread";
  EXPECT_EQ(alone.grad_k, t.grad_k) << "one thread";
  EXPECT_EQ(alone.grad_v, t.grad_v) << "one thread";
  if (a.queries != a.keys || a.sharing() > 1) return;
  run_packed(a, packed);
  EXPECT_EQ(packed.output, t.output) << "in one tensor";
  EXPECT_EQ(packed.grad_q, t.grad_q) << "in one tensor";
  EXPECT_EQ(packed.grad_k, t.grad_k) << "in one tensor";
  EXPECT_EQ(packed.grad_v, t.grad_v) << "in one tensor";
}

class EveryAttention : public ::testing::TestWithParam<Attention> {};

TEST_P(EveryAttention, IsItsDefinition) {
  if (!has_lanes8()) GTEST_SKIP() << "no registers for it";
  Attention a = GetParam();
  for (const bool causal : {false, true}) {
    a.causal = causal;
    ASSERT_NO_FATAL_FAILURE(expect_definition_in_all_forms(a));
  }
}

// Positions and sizes that neither panels, tiles nor blocks divide.
INSTANTIATE_TEST_SUITE_P(
    All, EveryAttention,
    ::testing::Values(Attention{.queries = 1, .keys = 1, .size = 8},
                      Attention{.heads = 2, .queries = 7, .keys = 7, .size = 40, .scale = 0.2f},
                      Attention{
                          .batch = 2, .heads = 3, .queries = 65, .keys = 65, .size = 32, .scale = 0.18f},
                      Attention{.heads = 2, .queries = 130, .keys = 300, .size = 64, .scale = 0.125f},
                      Attention{.batch = 2, .queries = 300, .keys = 130, .size = 8, .scale = -0.3f},
                      Attention{.heads = 2, .queries = 1, .keys = 300, .size = 33},
                      Attention{.queries = 300, .keys = 1, .size = 64},
                      Attention{.heads = 3, .queries = 128, .keys = 128, .size = 256, .scale = 0.06f},
                      Attention{.queries = 70, .keys = 20, .size = 1},
                      Attention{.batch = 2,
                                .heads = 6,
                                .heads_of_keys = 2,
                                .queries = 65,
                                .keys = 150,
                                .size = 32,
                                .scale = 0.18f},
                      Attention{.heads = 4, .heads_of_keys = 1, .queries = 70, .keys = 70, .size = 24}));

// Masks of all kinds: places that are filled up, documents beside each other, and any numbers.
TEST(AttentionOf, MasksIsItsDefinition) {
  if (!has_lanes8()) GTEST_SKIP() << "no registers for it";
  Attention a{
      .batch = 2, .heads = 4, .heads_of_keys = 2, .queries = 150, .keys = 300, .size = 40, .scale = 0.2f};
  const auto expect_right = [&](const Mask& mask, const char* what) {
    SCOPED_TRACE(what);
    a.mask = mask;
    Tensors t = operands_of(a, 1);
    {
      const TestThreads threads;
      run(a, t);
    }
    expect_definition(a, t);
  };
  std::vector<float> filled_up(a.batch * a.keys), documents(a.batch * a.queries * a.keys, -INFINITY);
  for (size_t key = 100; key < a.keys; ++key) filled_up[key] = -INFINITY;
  for (size_t key = 0; key < 130; ++key) filled_up[a.keys + key] = -INFINITY;  // a block and more
  expect_right({filled_up.data(), a.keys, 0, 0}, "filled up");
  // Documents of 60, of which the second batch's last queries belong to none.
  for (size_t i = 0; i < a.batch * a.queries; ++i)
    for (size_t key = 0; key < a.keys && i < a.batch * a.queries - 20; ++key)
      if (key / 60 == i % a.queries / 60) documents[i * a.keys + key] = 0;
  expect_right({documents.data(), a.queries * a.keys, 0, a.keys}, "documents");
  const std::vector<float> numbers = noise(a.heads * a.queries * a.keys, 7, 3);
  expect_right({numbers.data(), 0, a.queries * a.keys, a.keys}, "numbers of each head");
  // All that is seen is as far away as numbers go: the softmax of equal ones.
  const std::vector<float> lowest(a.keys, std::numeric_limits<float>::lowest());
  a.mask = {lowest.data()};
  Tensors t = operands_of(a, 0.01f);
  run(a, t);
  for (const auto* all : {&t.output, &t.grad_q, &t.grad_k, &t.grad_v})
    for (const float value : *all) ASSERT_TRUE(std::isfinite(value));
  EXPECT_NE(t.output[0], 0);
}

std::vector<uint32_t> seeds_of(const Attention& a) {
  std::mt19937 random(11);
  std::vector<uint32_t> seeds(2 * a.batch * a.heads * a.queries);
  for (uint32_t& seed : seeds) seed = static_cast<uint32_t>(random());
  return seeds;
}

// In all of its forms: of keys that heads share, in one tensor, causal, with a mask, by one thread.
TEST(AttentionOf, DropoutIsItsDefinition) {
  if (!has_lanes8()) GTEST_SKIP() << "no registers for it";
  Attention shared{
      .batch = 2, .heads = 4, .heads_of_keys = 2, .queries = 65, .keys = 150, .size = 40, .scale = 0.2f};
  const Attention own{.batch = 2, .heads = 3, .queries = 130, .keys = 130, .size = 32, .scale = 0.18f};
  std::vector<float> documents(shared.queries * shared.keys, -INFINITY);
  for (size_t i = 0; i < shared.queries - 5; ++i)  // the last five see nothing
    for (size_t key = i; key < shared.keys; key += 3) documents[i * shared.keys + key] = 0;
  shared.mask = {documents.data(), 0, 0, shared.keys};
  for (Attention a : {shared, own})
    for (const float p : {0.1f, 0.5f, 1.f})
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(::testing::Message() << a.keys << " keys, p " << p << ", causal " << causal);
        const std::vector<uint32_t> seeds = seeds_of(a);
        a.causal = causal;
        a.dropout = {seeds.data(), p};
        ASSERT_NO_FATAL_FAILURE(expect_definition_in_all_forms(a));
      }
}

TEST(AttentionOf, DropoutOfNothingChangesNothing) {
  if (!has_lanes8()) GTEST_SKIP() << "no registers for it";
  Attention a{.heads = 2, .queries = 70, .keys = 140, .size = 24};
  const std::vector<uint32_t> seeds = seeds_of(a);
  Tensors t = operands_of(a, 1), dropping = t;
  run(a, t);
  a.dropout = {seeds.data(), 0};
  run(a, dropping);
  EXPECT_EQ(dropping.output, t.output);
  EXPECT_EQ(dropping.grad_q, t.grad_q);
  EXPECT_EQ(dropping.grad_v, t.grad_v);
}

TEST(AttentionOf, FewQueriesIsLeftToTheCompiler) {
  EXPECT_EQ(has_attention({.batch = 8, .heads = 8, .queries = 64, .keys = 1, .size = 32}), has_lanes8());
  EXPECT_FALSE(has_attention({.batch = 64, .heads = 8, .queries = 1, .keys = 512, .size = 64}));
  EXPECT_FALSE(has_attention({.batch = 8, .heads = 1, .queries = 64, .keys = 64, .size = 512}));
}

TEST(AttentionOf, LargeScoresIsFinite) {
  if (!has_lanes8()) GTEST_SKIP() << "no registers for it";
  const Attention a{.heads = 2, .queries = 100, .keys = 300, .size = 32, .causal = true};
  Tensors t = operands_of(a, 20);  // scores of ±100 and more
  run(a, t);
  for (const auto* all : {&t.output, &t.logsumexp, &t.grad_q, &t.grad_k, &t.grad_v})
    for (const float value : *all) ASSERT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace sluice::kernels
