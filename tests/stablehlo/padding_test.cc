// A table of 13 words over four devices, which hold 16 rows: a training step of a lookup and a tied head has
// the values of one device, in the plain form (slices of the arguments) and as the pattern rewrites it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sluice/mesh/layout.h"
#include "sluice/patterns/patterns.h"
#include "sluice/pjrt/testing/programs.h"
#include "sluice/stablehlo/partitions.h"
#include "tests/stablehlo/relative_error.h"

namespace sluice::stablehlo {
namespace {

using pjrt::Buffer;
using pjrt::testing::f32;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kWords = 13, kWidth = 8, kTokens = 6, kDevices = 4;
constexpr size_t kKept = 3;  // the table and Adam's two moments of it

// The gradient of the mean cross-entropy of tanh(table[ids] mixer) tableᵀ, and a step of AdamW. Returns the
// table, the moments and the loss.
Values step(Builder& b, const Values& kept, Value mixer, Value ids, Value labels) {
  const Value table = kept[0];
  const auto times = [&](Value a, double factor) { return b.multiply(a, b.splat(factor, a.type())); };
  const auto spread = [&](Value a) { return b.broadcast_in_dim(a, {kTokens, kWords}, {0}); };
  const Value x = b.gather(table, ids,
                           {.offset_dims = {1},
                            .collapsed_slice_dims = {0},
                            .start_index_map = {0},
                            .index_vector_dim = 1,
                            .slice_sizes = {1, kWidth}});
  const Value h = b.tanh(b.dot_general(x, mixer, {.lhs_contract = {1}, .rhs_contract = {0}}));
  const Value scores =
      b.dot_general(h, b.transpose(table, {1, 0}), {.lhs_contract = {1}, .rhs_contract = {0}});
  const Value shifted = b.subtract(scores, spread(b.reduce_max(scores, {1})));
  const Value logarithms = b.subtract(shifted, spread(b.log(b.reduce_sum(b.exp(shifted), {1}))));
  const Value is_label = b.compare(b.iota({DType::kS32, scores.dims()}, 1), spread(labels), Compare::kEq);
  const Value zeros = b.splat(0, scores.type());
  const Value loss = times(b.reduce_sum(b.select(is_label, logarithms, zeros), {0, 1}), -1.0 / kTokens);

  const Value by_scores = times(
      b.subtract(b.exp(logarithms), b.select(is_label, b.splat(1, scores.type()), zeros)), 1.0 / kTokens);
  const Value by_head = b.dot_general(by_scores, h, {.lhs_contract = {0}, .rhs_contract = {0}});
  const Value by_h = b.dot_general(by_scores, table, {.lhs_contract = {1}, .rhs_contract = {0}});
  const Value slope = b.subtract(b.splat(1, h.type()), b.multiply(h, h));
  const Value by_x =
      b.dot_general(b.multiply(by_h, slope), mixer, {.lhs_contract = {1}, .rhs_contract = {1}});
  const Value by_lookup =
      b.scatter(b.splat(0, table.type()), ids, by_x,
                {.update_window_dims = {1},
                 .inserted_window_dims = {0},
                 .scatter_dims_to_operand_dims = {0},
                 .index_vector_dim = 1},
                [](Builder& body, std::span<const Value> v) { return Values{body.add(v[0], v[1])}; });
  const Value gradient = b.add(by_head, by_lookup);
  const Value first = b.add(times(kept[1], 0.9), times(gradient, 0.1));
  const Value second = b.add(times(kept[2], 0.99), times(b.multiply(gradient, gradient), 0.01));
  const Value change = b.divide(first, b.add(b.sqrt(second), b.splat(1e-3, second.type())));
  return {b.subtract(times(table, 1 - 0.05 * 0.1), times(change, 0.05)), first, second, loss};
}

struct Form {
  int64_t rows = kWords;  // of the arguments
  bool rewritten = false;
};

// Returns the program of a step, without layouts.
std::string step_text(const Form& form) {
  Builder b;
  Values kept;
  for (size_t i = 0; i < kKept; ++i) kept.push_back(b.parameter(f32({form.rows, kWidth})));
  const Value mixer = b.parameter(f32({kWidth, kWidth}));
  const Value ids = b.parameter({DType::kS32, {kTokens, 1}}), labels = b.parameter({DType::kS32, {kTokens}});
  if (form.rows > kWords)
    for (Value& value : kept) value = b.slice(value, {0, 0}, {kWords, kWidth});
  Values results = step(b, kept, mixer, ids, labels);
  if (form.rows > kWords)
    for (size_t i = 0; i < kKept; ++i)
      results[i] = b.pad(results[i], b.splat(0, f32({})), {0, 0}, {form.rows - kWords, 0});
  std::vector<Donation> donations(kKept + 3);
  for (size_t i = 0; i < kKept; ++i) donations[i] = {Donation::Kind::kAliasOutput, static_cast<int32_t>(i)};
  const std::vector<size_t> padded = form.rewritten ? std::vector<size_t>{0, 1, 2} : std::vector<size_t>();
  results = patterns::rewrite(b, results, donations, nullptr, nullptr, {}, {}, padded);
  return b.finish(results, donations);
}

std::vector<float> numbers(size_t count, size_t seed) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(static_cast<int>((i * 37 + seed * 11) % 23) - 11) / 16.0F;
  return values;
}

struct Trained {
  std::vector<std::vector<float>> kept;  // with padding
  std::vector<float> losses;
  int64_t aliased_bytes = 0;
};

// Trains for five steps on this number of devices.
Trained train(int devices, const Form& form) {
  const Mesh mesh(devices == 1 ? std::vector<MeshAxis>() : std::vector<MeshAxis>{{"tensor", devices}});
  const auto client = pjrt::testing::cpu_client(devices);
  const Layout rows = Layout::along(2, 0, {"tensor"}).on(mesh);
  const Partitions partitions{
      mesh,
      {rows, rows, rows, Layout::replicated(2), Layout::replicated(2), Layout::replicated(1)},
      {rows, rows, rows, Layout()}};
  const Type block = f32({form.rows / devices, kWidth});
  pjrt::CompileOptions options;
  options.num_partitions = devices;
  options.name = "step";
  options.argument_types = {
      block, block, block, f32({kWidth, kWidth}), {DType::kS32, {kTokens, 1}}, {DType::kS32, {kTokens}}};
  options.output_types = {block, block, block, f32({})};
  const std::string text = step_text(form);
  const auto program =
      base::value_or_throw(client->compile(devices == 1 ? text : with_layouts(text, partitions), options));

  std::vector<std::vector<Buffer>> values(options.argument_types.size());  // [argument][device]
  const auto put = [&](size_t argument, int device, const void* data) {
    values[argument].push_back(base::value_or_throw(client->put(
        data, options.argument_types[argument], *client->devices()[static_cast<size_t>(device)])));
  };
  std::vector<float> table = numbers(kWords * kWidth, 1);
  table.resize(static_cast<size_t>(form.rows * kWidth), 0);
  const std::vector<float> zeros(table.size(), 0), mixer = numbers(kWidth * kWidth, 2);
  const std::vector<int32_t> ids = {0, 12, 3, 12, 7, 5}, labels = {12, 3, 11, 7, 5, 0};
  for (int d = 0; d < devices; ++d) {
    put(0, d, &table[static_cast<size_t>(d * block.numel())]);
    put(1, d, zeros.data());
    put(2, d, zeros.data());
    put(3, d, mixer.data());
    put(4, d, ids.data());
    put(5, d, labels.data());
  }
  Trained trained;
  for (int s = 0; s < 5; ++s) {
    std::vector<std::vector<Buffer*>> arguments(static_cast<size_t>(devices));
    for (size_t d = 0; d < arguments.size(); ++d)
      for (auto& argument : values) arguments[d].push_back(&argument[d]);
    std::vector<Buffer> loss, replaced;
    std::vector<std::vector<Buffer>*> outputs = {&values[0], &values[1], &values[2], &loss};
    for (const pjrt::Event& done : base::value_or_throw(program->execute_into(outputs, replaced, arguments)))
      base::value_or_throw(done.await());
    trained.losses.push_back(pjrt::testing::values<float>(loss[0])[0]);
  }
  for (size_t i = 0; i < kKept; ++i) {
    std::vector<float>& whole = trained.kept.emplace_back();
    for (const Buffer& buffer : values[i]) {
      const auto part = pjrt::testing::values<float>(buffer);
      whole.insert(whole.end(), part.begin(), part.end());
    }
  }
  trained.aliased_bytes = base::value_or_throw(program->memory()).aliased;
  return trained;
}

TEST(Padding, TrainsAsOneDevice) {
  const Trained wanted = train(1, {});
  EXPECT_LT(wanted.losses.back(), wanted.losses.front());
  for (const bool rewritten : {false, true}) {
    SCOPED_TRACE(rewritten ? "rewritten" : "slices");
    const Trained found = train(kDevices, {16, rewritten});
    EXPECT_LT(relative_error(found.losses, wanted.losses), 1e-5);
    for (size_t i = 0; i < kKept; ++i) {
      EXPECT_LT(relative_error(found.kept[i], wanted.kept[i]), 1e-5) << i;
      const std::vector<float> rest(found.kept[i].begin() + kWords * kWidth, found.kept[i].end());
      EXPECT_EQ(rest.size(), 3u * kWidth);
      EXPECT_THAT(rest, Each(0.0F)) << i;
    }
    EXPECT_EQ(found.aliased_bytes, 3 * 4 * kWidth * 4) << "donated";
  }
}

// Nothing has 13 rows or columns: the loss masks the scores of the words that are not there.
TEST(Padding, StaysInTheWholeStep) {
  EXPECT_THAT(step_text({16, false}), HasSubstr("(tensor<16x8xf32>) -> tensor<13x8xf32>"));
  const std::string text = step_text({16, true});
  EXPECT_THAT(text, HasSubstr("tensor<6x16xf32>"));
  EXPECT_THAT(text, Not(HasSubstr("tensor<13x")));
  EXPECT_THAT(text, Not(HasSubstr("x13xf32>")));
}

}  // namespace
}  // namespace sluice::stablehlo
