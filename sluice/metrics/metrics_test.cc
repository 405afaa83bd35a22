// Values against counts by hand, and what is refused; on LibTorch's own CPU.
#include "sluice/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string_view>

#include "sluice/base/error.h"
#include "sluice/metrics/definition.h"
#include "sluice/metrics/key_counts.h"
#include "sluice/metrics/names.h"
#include "sluice/metrics/parse_names.h"

namespace sluice::metrics {
namespace {

using testing::AllOf;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

Session cpu_session() {
  Options options;
  options.device = "cpu";
  return start(options);
}

torch::Tensor labels(std::vector<int64_t> values) { return torch::tensor(values, torch::kLong); }

// Scores of which each row's highest is that of the given class.
torch::Tensor answering(const std::vector<int64_t>& classes, int64_t count) {
  return torch::one_hot(labels(classes), count).to(torch::kFloat);
}

std::vector<std::string> names_of(const Values& values) {
  std::vector<std::string> names;
  for (const Value& value : values.numbers) names.push_back(value.name);
  return names;
}

template <typename Function>
std::string message(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Metrics, CountsOfClassesAndTheirAverages) {
  Collection sums(cpu_session(), {Precision({.classes = 4, .average = Average::kClasses}),
                                  Recall({.classes = 4, .average = Average::kClasses}), F1({.classes = 4}),
                                  F1({.classes = 4, .average = Average::kMicro}),
                                  F1({.classes = 4, .average = Average::kWeighted}), ConfusionMatrix(4)});
  // Class 3 does not occur.
  sums.update(answering({0, 0, 1}, 4), labels({0, 1, 1}));
  sums.update(answering({2, 1, 0}, 4), labels({2, 0, 0}));
  const Values values = sums.compute();
  EXPECT_THAT(names_of(values),
              ElementsAre("precision_classes/0", "precision_classes/1", "precision_classes/2",
                          "precision_classes/3", "recall_classes/0", "recall_classes/1", "recall_classes/2",
                          "recall_classes/3", "f1", "f1_micro", "f1_weighted"));
  EXPECT_DOUBLE_EQ(values["precision_classes/0"], 2.0 / 3);
  EXPECT_DOUBLE_EQ(values["precision_classes/1"], 1.0 / 2);
  EXPECT_DOUBLE_EQ(values["precision_classes/3"], 0);
  EXPECT_DOUBLE_EQ(values["recall_classes/0"], 2.0 / 3);
  EXPECT_EQ(values.value("recall_classes/0").count, 3);
  EXPECT_DOUBLE_EQ(values["f1"], (2.0 / 3 + 1.0 / 2 + 1) / 3);
  EXPECT_DOUBLE_EQ(values["f1_micro"], 4.0 / 6);
  EXPECT_DOUBLE_EQ(values["f1_weighted"], (3 * 2.0 / 3 + 2 * 1.0 / 2 + 1) / 6);
  EXPECT_EQ(values.value("f1").count, 6);
  const torch::Tensor expected =
      torch::tensor({2L, 1L, 0L, 0L, 1L, 1L, 0L, 0L, 0L, 0L, 1L, 0L, 0L, 0L, 0L, 0L});
  EXPECT_TRUE(values.tensor("confusion").equal(expected.view({4, 4})));
}

// Labels and answers at random, in three batches of which one has a mask; counted by hand as well.
struct RandomAnswers {
  explicit RandomAnswers(int64_t classes) {
    torch::manual_seed(5);
    for (int batch = 0; batch < 3; ++batch) {
      target.push_back(torch::randint(classes, {40}, torch::kLong));
      answer.push_back(torch::randint(classes, {40}, torch::kLong));
      mask.push_back(batch == 1 ? torch::rand({40}).lt(0.7) : torch::Tensor());
      for (int64_t i = 0; i < 40; ++i)
        if (!mask.back().defined() || mask.back()[i].item<bool>())
          ++counts[{target.back()[i].item<int64_t>(), answer.back()[i].item<int64_t>()}];
    }
  }
  Values measured(int64_t classes, std::vector<Metric> metrics) const {
    Collection sums(cpu_session(), std::move(metrics));
    sums.update(torch::zeros({1, classes}), labels({0}));
    sums.reset();
    for (size_t batch = 0; batch < target.size(); ++batch)
      sums.update(torch::zeros({40, classes}).scatter_(1, answer[batch].unsqueeze(1), 1.0), target[batch],
                  mask[batch]);
    return sums.compute();
  }
  std::vector<torch::Tensor> target, answer, mask;
  std::map<std::pair<int64_t, int64_t>, int64_t> counts;
};

TEST(Metrics, ASparseConfusionMatrixHasTheCountsOfADenseOne) {
  const RandomAnswers set(7);
  const Values values =
      set.measured(7, {ConfusionMatrix(7), ConfusionMatrix(7, false, /*dense_classes=*/6).named("sparse")});
  const torch::Tensor& sparse = values.tensor("sparse");
  ASSERT_TRUE(sparse.is_sparse());
  EXPECT_FALSE(values.tensor("confusion").is_sparse());
  EXPECT_TRUE(sparse.to_dense().equal(values.tensor("confusion")));
  EXPECT_TRUE(sparse.is_coalesced());
  int64_t next = 0;  // row after row
  for (const auto& [pair, count] : set.counts) {
    EXPECT_EQ(sparse.indices()[0][next].item<int64_t>(), pair.first);
    EXPECT_EQ(sparse.indices()[1][next].item<int64_t>(), pair.second);
    EXPECT_EQ(sparse.values()[next++].item<int64_t>(), count);
  }
  EXPECT_EQ(sparse.values().size(0), next);
}

// A dense matrix has 10^6 counts for 1,000 classes and 10^8 for 10,000.
TEST(Metrics, EntriesOfASparseConfusionMatrixGrowWithTheSamples) {
  for (const int64_t classes : {1'000, 10'000}) {
    const RandomAnswers set(classes);
    const Values values = set.measured(classes, {ConfusionMatrix(classes, false, /*dense_classes=*/100)});
    EXPECT_EQ(values.tensor("confusion").sizes(), (std::vector<int64_t>{classes, classes}));
    EXPECT_EQ(values.tensor("confusion").values().size(0), static_cast<int64_t>(set.counts.size()));
    EXPECT_LE(values.tensor("confusion").values().size(0), 120);
  }
  const Metric largest = ConfusionMatrix(ConfusionMatrix::kDenseClasses);
  EXPECT_EQ(largest.definition().zeros().size(), 1U);
  EXPECT_TRUE(ConfusionMatrix(ConfusionMatrix::kDenseClasses + 1).definition().zeros().empty());
}

TEST(Metrics, CountsOfKeysTravelAsBytes) {
  KeyCounts first, second;
  std::string bytes = "\2";
  bytes.append(7, '\0');
  for (const char number : {3, 5, 9, 1}) bytes.append(1, number).append(7, '\0');
  std::string_view rest = bytes;
  ASSERT_TRUE(first.read(rest));
  EXPECT_TRUE(rest.empty());
  EXPECT_EQ(first.sorted(), (SortedCounts{{3, 5}, {9, 1}}));
  std::string again;
  first.append_to(again);
  EXPECT_EQ(again, bytes);
  rest = again;
  ASSERT_TRUE(first.read(rest));
  EXPECT_EQ(first.sorted(), (SortedCounts{{3, 10}, {9, 2}}));
  for (size_t size = 0; size < bytes.size(); ++size) {
    rest = std::string_view(bytes).substr(0, size);
    EXPECT_FALSE(second.read(rest)) << size;
  }
  bytes[15] = '\x80';  // the first key is negative
  rest = bytes;
  EXPECT_FALSE(second.read(rest));
}

TEST(Metrics, OfEqualScoresTheFirstAreTaken) {
  Collection sums(cpu_session(), {TopK(1), TopK(2), TopK(3)});
  const torch::Tensor scores = torch::tensor({1.0F, 2.0F, 2.0F, 2.0F}).expand({4, 4});
  sums.update(scores, labels({0, 1, 2, 3}));
  const Values values = sums.compute();
  EXPECT_EQ(values["top1"], 0.25);
  EXPECT_EQ(values["top2"], 0.5);
  EXPECT_EQ(values["top3"], 0.75);
  // NaN is the highest, as for argmax: a broken model is right by chance alone.
  sums.reset();
  sums.update(torch::full({4, 4}, std::nanf("")), labels({0, 1, 2, 3}));
  EXPECT_EQ(sums.compute()["top1"], 0.25);
}

TEST(Metrics, AScoreOfYesAndNo) {
  const ClassOptions one{.classes = 1};
  Collection sums(cpu_session(), {Precision(one), Recall(one), F1(one), ConfusionMatrix(1),
                                  Auroc({.classes = 1}), ConfusionMatrix(1, false, 1).named("sparse")});
  sums.update(torch::tensor({2.0F, 1.0F, -1.0F, -3.0F}), labels({1, 0, 1, 0}));
  sums.update(torch::tensor({4.0F}).view({1, 1}), labels({1}));
  const Values values = sums.compute();
  EXPECT_DOUBLE_EQ(values["precision"], 2.0 / 3);
  EXPECT_DOUBLE_EQ(values["recall"], 2.0 / 3);
  EXPECT_DOUBLE_EQ(values["f1"], 2.0 / 3);
  EXPECT_TRUE(values.tensor("confusion").equal(torch::tensor({1L, 1L, 1L, 2L}).view({2, 2})));
  EXPECT_TRUE(values.tensor("sparse").to_dense().equal(values.tensor("confusion")));
  EXPECT_NEAR(values["auroc"], 5.0 / 6, 1e-12);  // 5 of the 6 pairs are in order
}

TEST(Metrics, WhatTheMaskLeavesOutMayHoldAnything) {
  Collection sums(cpu_session(), {TopK(1), F1({.classes = 3}), Auroc({.classes = 3}), ConfusionMatrix(3),
                                  Perplexity(), Mean("loss")});
  const torch::Tensor scores = answering({0, 1, 2, 0}, 3), target = labels({0, 1, 1, 2});
  sums.update(scores, target);
  sums.add("loss", torch::tensor({1.0F, 2.0F, 3.0F, 4.0F}));
  const Values plain = sums.compute();
  sums.reset();
  const torch::Tensor padding = torch::full({2, 3}, std::nanf(""));
  const torch::Tensor mask = torch::tensor({1, 1, 1, 1, 0, 0}).to(torch::kBool);
  sums.update(torch::cat({scores, padding}), torch::cat({target, labels({-7, 1'000'000})}), mask);
  sums.add("loss",
           torch::tensor({1.0F, 2.0F, 3.0F, 4.0F, std::nanf(""), std::numeric_limits<float>::infinity()}),
           mask);
  const Values padded = sums.compute();
  ASSERT_EQ(padded.numbers.size(), plain.numbers.size());
  for (size_t i = 0; i < plain.numbers.size(); ++i) {
    EXPECT_EQ(padded.numbers[i].number, plain.numbers[i].number) << plain.numbers[i].name;
    EXPECT_EQ(padded.numbers[i].count, 4);
  }
  EXPECT_TRUE(padded.tensor("confusion").equal(plain.tensor("confusion")));
}

TEST(Metrics, ErrorsPerplexityAndMeans) {
  Session session = cpu_session();
  Collection errors(session, {MeanSquaredError(), MeanAbsoluteError()});
  errors.update(torch::tensor({1.0F, 2.0F, 3.0F, 9.0F}).view({2, 2}),
                torch::tensor({0.0F, 4.0F, 3.0F, 0.0F}).view({2, 2}),
                torch::tensor({1, 1, 1, 0}).view({2, 2}).to(torch::kBool));
  EXPECT_NEAR(errors.compute()["mse"], 5.0 / 3, 1e-7);
  EXPECT_EQ(errors.compute()["mae"], 1);
  Collection words(session, {Perplexity(-100)});
  // Two sequences of three tokens, of which rows of the mask and an index leave out half.
  words.update(torch::zeros({2, 3, 8}), labels({1, -100, 7, 0, 0, 0}).view({2, 3}),
               torch::tensor({true, false}));
  EXPECT_NEAR(words.compute()["perplexity"], 8, 1e-5);
  EXPECT_EQ(words.compute().value("perplexity").count, 2);
  Collection means(session, {Mean("loss"), Mean("gap").named("distance")});
  means.add("loss", torch::tensor(2.0F), torch::tensor(3));  // of a batch of 3
  means.add("loss", torch::tensor(6.0F), torch::tensor(1));
  means.add("distance", torch::tensor({1.0F, 5.0F}), torch::tensor({0.75F, 0.25F}));
  EXPECT_EQ(means.compute()["loss"], 3);
  EXPECT_EQ(means.compute().value("loss").count, 4);
  EXPECT_EQ(means.compute()["distance"], 2);
}

TEST(Metrics, NothingIsAShareOfZeroAndNoMean) {
  Collection sums(cpu_session(), {TopK(1), F1({.classes = 3}), Auroc({.classes = 3}), MeanSquaredError()});
  const Values values = sums.compute();
  for (const char* name : {"top1", "f1", "auroc"}) EXPECT_EQ(values[name], 0) << name;
  EXPECT_TRUE(std::isnan(values["mse"]));
}

TEST(Metrics, WhatRoundingLeavesOutIsKept) {
  Collection sums(cpu_session(), {Mean("x")});
  // In f32, 2^24 + 1 is 2^24.
  sums.add("x", torch::tensor(16'777'216.0F));
  for (int i = 0; i < 99; ++i) sums.add("x", torch::tensor(1.0F));
  EXPECT_EQ(sums.compute()["x"], (16'777'216.0 + 99) / 100);
}

TEST(Metrics, NeitherAutocastNorGradientsReachTheSums) {
  Collection sums(cpu_session(), {Mean("x"), TopK(1)});
  const torch::Tensor value = torch::tensor({1.001F}).requires_grad_();
  {
    const Autocast autocast(torch::kCPU);
    sums.add("x", value * 1);
    sums.update(torch::tensor({1.001F, 1.002F}).view({1, 2}).requires_grad_(), labels({1}));
  }
  EXPECT_NEAR(sums.compute()["x"], 1.001, 1e-7);  // 1 in bf16
  EXPECT_EQ(sums.compute()["top1"], 1);
}

TEST(Metrics, WrongInputsAreToldWithWhatWasExpected) {
  Session session = cpu_session();
  Collection f1(session, {F1({.classes = 3})}), top(session, {TopK(4)}), mse(session, {MeanSquaredError()}),
      mean(session, {Mean("loss")});
  const torch::Tensor scores = torch::zeros({2, 3}), target = labels({0, 1});
  EXPECT_THAT(message([&] {
                f1.update(torch::zeros({2, 4}), target);
              }),
              AllOf(HasSubstr("'f1' expected scores of [..., 3]"), HasSubstr("found an output of [2, 4]"),
                    HasSubstr("a target of [2]")));
  EXPECT_THAT(message([&] { f1.update(scores, target.to(torch::kFloat)); }), HasSubstr("in int64"));
  EXPECT_THAT(message([&] {
                f1.update(torch::zeros({2, 3, 5}), torch::zeros({2, 5}, torch::kLong));
              }),
              HasSubstr("output.movedim(1, -1)"));
  EXPECT_THAT(message([&] { f1.update(scores, target, torch::ones({3}, torch::kBool)); }),
              HasSubstr("expected a mask"));
  EXPECT_THAT(message([&] { f1.update(scores, target, torch::ones({2})); }), HasSubstr("mask of bool"));
  EXPECT_THAT(message([&] { f1.update(scores, {}); }), HasSubstr("undefined"));
  EXPECT_THAT(message([&] { top.update(scores, target); }),
              HasSubstr("'top4' takes the 4 highest of 3 scores"));
  EXPECT_THAT(message([&] {
                mse.update(scores, torch::zeros({3, 2}));
              }),
              HasSubstr("two tensors of one shape"));
  EXPECT_THAT(message([&] { mean.add("los", scores); }),
              AllOf(HasSubstr("no Mean is called \"los\""), HasSubstr("did you mean \"loss\"?")));
  EXPECT_THAT(message([&] { mean.add("loss", target); }), HasSubstr("floating point; found Long"));
  EXPECT_THAT(message([&] { mean.add("loss", scores, torch::ones({2})); }),
              HasSubstr("expected weights of the shape"));
  EXPECT_ANY_THROW(f1.update(scores, labels({0, 3})));  // LibTorch's CPU finds it at once
  EXPECT_THAT(message([&] { (void)mean.compute()["lss"]; }), HasSubstr("did you mean \"loss\"?"));
  EXPECT_THAT(message([&] {
                Collection(session, {TopK(1), TopK(1)});
              }),
              HasSubstr("two metrics are called \"top1\""));
  EXPECT_THAT(message([] { TopK(0); }), HasSubstr("at least 1"));
  EXPECT_THAT(message([] { F1({}); }), HasSubstr("number of classes"));
  EXPECT_THAT(message([] { FBeta(0, {.classes = 2}); }), HasSubstr("above 0"));
  EXPECT_THAT(message([] { Auroc({.classes = 3, .average = Average::kMicro}); }), HasSubstr("found kMicro"));
  EXPECT_THAT(message([] { Auroc({.classes = 3, .thresholds = 1}); }), HasSubstr("at least 2 thresholds"));
}

TEST(MetricNames, AreParsedOrRefusedWithTheNearest) {
  const auto parsed = [](const std::string& text) {
    return base::value_or_throw(parse_names("--metrics", text));
  };
  std::vector<std::string> names;
  const auto read = parsed("top5, f1,f0.5_weighted,auroc_classes,recall_micro,confusion,perplexity");
  for (const Metric& metric : make_metrics(read, 10)) names.push_back(metric.name());
  EXPECT_THAT(names, ElementsAre("top5", "f1", "f0.5_weighted", "auroc_classes", "recall_micro", "confusion",
                                 "perplexity"));
  EXPECT_EQ(text_of(read), "top5,f1,f0.5_weighted,auroc_classes,recall_micro,confusion,perplexity");
  EXPECT_TRUE(parsed("").empty());
  EXPECT_EQ(text_of(parsed("")), "");
  // The text gives the same names again.
  for (const char* text : {"top007", "f0.30000000000000004", "precision_classes", "f1e-3"}) {
    EXPECT_EQ(parsed(text_of(parsed(text))), parsed(text)) << text;
  }
  EXPECT_EQ(text_of(parsed("top007,f1.0")), "top7,f1");
  const auto refused = [&](const char* text) { return message([&] { make_metrics(parsed(text), 10); }); };
  EXPECT_THAT(refused("f1,precison"),
              AllOf(HasSubstr("--metrics: there is no metric \"precison\": expected top1"),
                    HasSubstr("did you mean \"precision\"?")));
  EXPECT_THAT(refused("f1,,top5"), HasSubstr("no metric \"\""));
  EXPECT_THAT(refused("f1,f1.0"), HasSubstr("f1.0 is there twice"));
  EXPECT_THAT(refused("top11"), HasSubstr("top11 needs at least 11 classes, and there are 10"));
  for (const char* text :
       {"top0", "top", "f-1", "f", "fx", "finf", "fnan", "auroc_micro", "confusion_micro", "top5_micro"})
    EXPECT_THAT(refused(text), HasSubstr("there is no metric")) << text;
}

TEST(MetricNames, AreShown) {
  EXPECT_EQ(label("top5"), "Top5");
  EXPECT_EQ(label("f1_classes/3"), "F1_classes/3");
  EXPECT_EQ(label("auroc_weighted"), "AUROC_weighted");
  EXPECT_TRUE(is_accuracy("top5"));
  EXPECT_FALSE(is_accuracy("f1"));
  EXPECT_EQ(percent({"top5", 7.0 / 19, 19}), 100.0 * 7 / 19);
  EXPECT_EQ(percent({"top5", 0, 0}), 0);
}

}  // namespace
}  // namespace sluice::metrics
