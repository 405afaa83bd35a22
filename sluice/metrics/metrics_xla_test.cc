// On the device "xla": the same values as on LibTorch's CPU, in one program, over all replicas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/device/capture/capture.h"
#include "sluice/metrics/metrics.h"

namespace sluice::metrics {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Session session_on(const std::string& device, int replicas) {
  if (is_initialized()) shutdown();
  Options options;
  options.device = device;
  if (device == "xla") {
    options.xla.plugin = "cpu";
    options.xla.devices = replicas;
    options.xla.strict = true;
    options.xla.cache = false;
  }
  return start(options);
}

std::vector<Metric> all_of_classes(int64_t classes) {
  return {TopK(1),
          TopK(3),
          Precision({.classes = classes, .average = Average::kMicro}),
          Recall({.classes = classes, .average = Average::kClasses}),
          F1({.classes = classes}),
          FBeta(2, {.classes = classes, .average = Average::kWeighted}),
          Auroc({.classes = classes, .thresholds = 21}),
          ConfusionMatrix(classes),
          ConfusionMatrix(classes, false, /*dense_classes=*/1).named("sparse"),
          Perplexity(),
          Mean("loss")};
}

struct Set {
  torch::Tensor scores, target;
};
Set random_set(int64_t samples, int64_t classes) {
  torch::manual_seed(11);
  return {torch::randn({samples, classes}) * 2, torch::randint(classes, {samples}, torch::kLong)};
}

// Batches of `rows` for each replica, the last of them filled up with rows that must not count.
std::vector<Batch> batches_of(Session& session, const Set& set, int64_t rows) {
  const int64_t samples = set.target.size(0), replicas = session.replicas();
  const int64_t whole = (samples + rows * replicas - 1) / (rows * replicas) * rows * replicas;
  const torch::Tensor scores =
      torch::cat({set.scores, torch::full({whole - samples, set.scores.size(1)}, std::nanf(""))});
  const torch::Tensor target = torch::cat({set.target, torch::full({whole - samples}, -5, torch::kLong)});
  const torch::Tensor mask = torch::arange(whole).lt(samples);
  std::vector<Batch> batches;
  for (int64_t first = 0; first < whole;) {
    std::vector<torch::Tensor> parts[3];
    for (int64_t r = 0; r < replicas; ++r, first += rows) {
      const auto part = [&](const torch::Tensor& all) {
        return all.slice(0, first, first + rows).contiguous();
      };
      parts[0].push_back(part(scores));
      parts[1].push_back(part(target));
      parts[2].push_back(part(mask));
    }
    Batch& batch = batches.emplace_back();
    batch.image = session.upload(parts[0]);
    batch.label = session.upload(parts[1]);
    batch.mask = session.upload(parts[2]);
  }
  return batches;
}

void add(Collection& sums, const Batch& batch) {
  sums.update(batch.image, batch.label, batch.mask);
  sums.add("loss", batch.image.logsumexp(1), batch.mask);
}

Values values_on(Session& session, const Set& set, int64_t rows) {
  Collection sums(session, all_of_classes(set.scores.size(1)));
  for (const Batch& batch : batches_of(session, set, rows)) {
    add(sums, batch);
    session.sync();
  }
  return sums.compute();
}

void expect_equal(const Values& found, const Values& expected) {
  ASSERT_EQ(found.numbers.size(), expected.numbers.size());
  for (size_t i = 0; i < expected.numbers.size(); ++i) {
    EXPECT_NEAR(found.numbers[i].number, expected.numbers[i].number,
                1e-6 * std::max(1.0, expected.numbers[i].number))
        << expected.numbers[i].name;
    EXPECT_EQ(found.numbers[i].count, expected.numbers[i].count) << expected.numbers[i].name;
  }
  EXPECT_TRUE(found.tensor("confusion").equal(expected.tensor("confusion")));
  EXPECT_TRUE(found.tensor("sparse").to_dense().equal(expected.tensor("confusion")));
}

TEST(MetricsOnXla, AreThoseOfLibTorchsCpuOnAnyNumberOfReplicas) {
  const Set set = random_set(101, 7);
  Session cpu = session_on("cpu", 1);
  const Values expected = values_on(cpu, set, 8);
  EXPECT_EQ(expected.value("top1").count, 101);
  for (const int replicas : {1, 4}) {
    SCOPED_TRACE(replicas);
    Session session = session_on("xla", replicas);
    expect_equal(values_on(session, set, 8), expected);
  }
}

TEST(MetricsOnXla, OneProgramForAllBatchesAndNoneForTheTotals) {
  Session session = session_on("xla", 2);
  const std::vector<Batch> batches = batches_of(session, random_set(45, 7), 4);
  ASSERT_EQ(batches.size(), 6U);
  const Counters before = counters();
  Collection sums(session, all_of_classes(7));
  double first = 0;
  for (int pass = 0; pass < 2; ++pass) {
    for (const Batch& batch : batches) {
      add(sums, batch);
      session.sync();
      EXPECT_EQ(counters().programs - before.programs, 1);
    }
    EXPECT_EQ(counters().host_reads, before.host_reads);
    const double f1 = sums.compute()["f1"];
    if (pass == 0) first = f1;
    EXPECT_EQ(f1, first);
    EXPECT_EQ(counters().programs - before.programs, 1);
    sums.reset();
  }
  EXPECT_EQ(counters().fallbacks, before.fallbacks);
}

TEST(MetricsOnXla, ALabelThatIsNoClassIsFoundOnTheDevice) {
  Session session = session_on("xla", 1);
  for (const int64_t label : {3, -1, 3 + 10, -1 - 10}) {
    const bool sparse = label > 3 || label < -1;
    Collection sums(session, {ConfusionMatrix(3, false, sparse ? 0 : 3)});
    std::string told;
    try {
      sums.update(torch::zeros({2, 3}).to(session.device()),
                  torch::tensor({0, static_cast<int>(label)}, torch::kLong).to(session.device()));
      session.finish();
    } catch (const Error& error) {
      told = error.what();
    }
    EXPECT_THAT(told, AllOf(HasSubstr(base::str("holds ", label)), HasSubstr("expected values from 0 to 2")));
  }
}

// Its counts go to the host, so that every call is recorded.
TEST(MetricsOnXla, ASparseConfusionMatrixInACapturedFunction) {
  Session session = session_on("xla", 2);
  Collection sums(session, {ConfusionMatrix(3, false, /*dense_classes=*/0)});
  auto step = capture([&](const torch::Tensor& scores, const torch::Tensor& target) {
    sums.update(scores, target);
    session.sync();
  });
  const auto target = [&](std::vector<int64_t> labels) {
    const torch::Tensor host = torch::tensor(labels, torch::kLong);
    return session.upload({host, host.flip(0)});
  };
  const torch::Tensor scores = torch::tensor({{0.0F, 1.0F, 0.0F}, {0.0F, 1.0F, 0.0F}}).to(session.device());
  for (int i = 0; i < 8; ++i) step(scores, target({i % 2, 2}));
  EXPECT_EQ(step.captured().recordings(), 8);
  const torch::Tensor expected = torch::tensor({{0L, 8L, 0L}, {0L, 8L, 0L}, {0L, 16L, 0L}});
  EXPECT_TRUE(sums.compute().tensor("confusion").to_dense().equal(expected));
}

TEST(MetricsOnXla, WhatRoundingLeavesOutIsKept) {
  Session session = session_on("xla", 2);
  Collection sums(session, {Mean("x")});
  const auto on_both = [&](float a, float b) {
    return session.upload({torch::tensor({a}), torch::tensor({b})});
  };
  sums.add("x", on_both(16'777'216.0F, 1.0F));
  for (int i = 0; i < 9; ++i) {
    session.sync();
    sums.add("x", on_both(1.0F, 1.0F));
  }
  EXPECT_EQ(sums.compute()["x"], (16'777'216.0 + 19) / 20);
}

TEST(MetricsOnXla, InACapturedFunctionAndAfterAReset) {
  Session session = session_on("xla", 1);
  Collection sums(session, {TopK(1)});
  auto step = capture([&](const torch::Tensor& scores, const torch::Tensor& target) {
    sums.update(scores, target);
    session.sync();
  });
  const torch::Tensor target = torch::tensor({0, 1, 1, 0}, torch::kLong).to(session.device());
  const torch::Tensor right = torch::eye(2).index_select(0, torch::tensor({0, 1, 1, 0})).to(session.device());
  for (int i = 0; i < 8; ++i) step(right, target);
  EXPECT_GT(counters().replays, 0);
  EXPECT_EQ(sums.compute().value("top1").count, 32);
  sums.reset();
  for (int i = 0; i < 3; ++i) step(1 - right, target);
  const Values values = sums.compute();
  EXPECT_EQ(values.value("top1").count, 12);
  EXPECT_EQ(values["top1"], 0);
}

}  // namespace
}  // namespace sluice::metrics
