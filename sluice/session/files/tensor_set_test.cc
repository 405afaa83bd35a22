#include "sluice/session/files/tensor_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sluice/base/error.h"
#include "sluice/data/torch_adapter.h"

namespace sluice {
namespace {

using testing::HasSubstr;

// Sample i is the row [i, i + 0.5] and the label 3 i.
TensorSet numbered_rows(int64_t count) {
  const torch::Tensor first = torch::arange(count, torch::kFloat);
  return TensorSet({torch::stack({first, first + 0.5}, 1), torch::arange(count) * 3});
}

// Of all rows that are no padding; they are looked at on the way.
std::vector<int64_t> samples_of(const data::Batch& batch) {
  const torch::Tensor x = data::to_tensor(batch.columns[0].array), y = data::to_tensor(batch.label);
  std::vector<int64_t> samples;
  for (int64_t row = 0; row < batch.size(); ++row) {
    if (!batch.mask.data<bool>()[row]) {
      EXPECT_EQ(x[row].abs().sum().item<float>(), 0);
      continue;
    }
    samples.push_back(static_cast<int64_t>(x[row][0].item<float>()));
    EXPECT_EQ(x[row][1].item<float>(), static_cast<float>(samples.back()) + 0.5F);
    EXPECT_EQ(y[row].item<int64_t>(), samples.back() * 3);
  }
  EXPECT_EQ(static_cast<int64_t>(samples.size()), batch.count);
  return samples;
}

std::vector<int64_t> rest_of(data::Stream& stream) {
  std::vector<int64_t> all;
  while (const auto batch = stream.next())
    for (const int64_t sample : samples_of(*batch)) all.push_back(sample);
  return all;
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TensorSet, EachEpochHasItsOwnOrder) {
  auto set = numbered_rows(50).batch(8).shuffle().seed(3);
  EXPECT_EQ(set.size(), 50);
  EXPECT_EQ(set.batches(1, 0), 6);
  const auto first = rest_of(*set.open({.epoch = 0})), again = rest_of(*set.open({.epoch = 0}));
  const auto second = rest_of(*set.open({.epoch = 1}));
  EXPECT_EQ(first, again);
  EXPECT_NE(first, second);
  EXPECT_EQ(first.size(), 48U);
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 48U);
  EXPECT_NE(first, rest_of(*numbered_rows(50).batch(8).shuffle().seed(4).open({.epoch = 0})));
}

TEST(TensorSet, PartsAndReplicasShareTheGlobalBatches) {
  const auto set = numbered_rows(50).batch(4).shuffle();
  const auto whole = set.open({.replicas = 6});
  std::vector<std::unique_ptr<data::Stream>> parts;
  for (int64_t part = 0; part < 3; ++part)
    parts.push_back(set.open({.part = part, .parts = 3, .replicas = 2}));
  for (int64_t i = 0; i < set.batches(6, 0); ++i) {
    const auto batch = whole->next();
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->size(), 24);
    std::vector<int64_t> together;
    for (const auto& part : parts) {
      const auto own = part->next();
      ASSERT_TRUE(own);
      EXPECT_EQ(own->size(), 8);
      EXPECT_EQ(own->global_count, 24);
      for (const int64_t sample : samples_of(*own)) together.push_back(sample);
    }
    EXPECT_EQ(together, samples_of(*batch));
  }
  EXPECT_FALSE(whole->next());
}

TEST(TensorSet, PaddingIsLeftOutByTheMask) {
  const auto set = numbered_rows(10).batch(4).pad();
  EXPECT_EQ(set.batches(1, 0), 3);
  EXPECT_THAT(rest_of(*set.open({})), testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  // Of 10 samples two replicas have 4 each, then one each.
  std::vector<float> weights;
  const auto stream = set.open({.part = 1, .parts = 2});
  while (const auto batch = stream->next()) weights.push_back(batch->weight);
  EXPECT_THAT(weights, testing::ElementsAre(1, 1));
  const auto odd = numbered_rows(9).batch(4).pad().open({.part = 1, .parts = 2, .skip_batches = 1})->next();
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->count, 0);
  EXPECT_EQ(odd->weight, 0);
}

TEST(TensorSet, ContinuesWhereItStood) {
  const auto set = numbered_rows(50).batch(8).shuffle();
  const auto stream = set.open({.epoch = 2});
  for (int i = 0; i < 2; ++i) stream->next();
  const std::string state = stream->state();
  EXPECT_EQ(rest_of(*set.resume(state, {})), rest_of(*stream));
  EXPECT_THAT(error_of([&] { numbered_rows(51).batch(8).shuffle().resume(state, {}); }),
              HasSubstr("samples"));
  EXPECT_THAT(error_of([&] { numbered_rows(50).batch(8).shuffle().seed(1).resume(state, {}); }),
              HasSubstr("seed"));
  EXPECT_NE(error_of([&] {
              TensorSet({torch::zeros({50, 2}), torch::arange(50)}).batch(8).shuffle().resume(state, {});
            }),
            "");
}

TEST(TensorSet, TakesViewsAndAllTypesThatFilesHave) {
  const torch::Tensor wide = torch::arange(24).reshape({4, 6}).to(torch::kHalf);
  const TensorSet set({wide.t().slice(0, 0, 6, 2), torch::tensor({true, false, true})});
  const auto batch = set.open({.skip_batches = 1})->next();
  ASSERT_TRUE(batch);
  EXPECT_TRUE(data::to_tensor(batch->columns[0].array).equal(wide.t().slice(0, 2, 3)));
  EXPECT_EQ(batch->columns[1].array.type(), data::ElementType::kBool);
  EXPECT_FALSE(batch->label.defined());
}

TEST(TensorSet, RefusesWhatIsNoSetOfSamples) {
  const torch::Tensor x = torch::zeros({4, 2});
  const auto refused = [](const std::vector<torch::Tensor>& columns) {
    return error_of([&] { TensorSet{columns}; });
  };
  EXPECT_THAT(refused({}), HasSubstr("found none"));
  EXPECT_EQ(refused({x, torch::zeros({3})}), "TensorSet: column 1 has 3 rows, and column 0 has 4");
  EXPECT_THAT(refused({x, torch::Tensor()}), HasSubstr("column 1 is undefined"));
  EXPECT_THAT(refused({torch::zeros({})}), HasSubstr("column 0 has the shape []"));
  EXPECT_THAT(refused({x.to(torch::kBFloat16)}), HasSubstr("has the type BFloat16"));
  EXPECT_THAT(refused({x.to_sparse()}), HasSubstr("is not a dense tensor on the CPU"));
  EXPECT_THAT(error_of([&] { TensorSet({x}).batch(0); }), HasSubstr("expected 1 row or more"));
}

}  // namespace
}  // namespace sluice
