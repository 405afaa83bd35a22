// Tests of the reports of a training: its losses, its metrics and its classes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "sluice/base/text/strings.h"
#include "sluice/data/torch_adapter.h"
#include "sluice/metrics/parse_names.h"
#include "sluice/models/models.h"
#include "sluice/train/classification.h"
#include "sluice/train/evaluation/evaluate.h"
#include "sluice/train/loop/training.h"
#include "sluice/train/testing/run_training.h"

namespace sluice::train {
namespace {

// Returns the accuracy in the last row of a split that has one; -1 if none has.
double last_accuracy(const std::string& folder, const std::string& split) {
  double found = -1;
  for (const auto& line :
       base::split(base::value_or_throw(base::read_file(base::join_path(folder, "metrics.csv"))), '\n')) {
    const auto cells = base::split(line, ',');
    if (cells.size() > 8 && cells[1] == split && !cells[8].empty()) found = std::stod(cells[8]);
  }
  return found;
}

// With a model that does not change, training sees what the test sees, whatever pads the last batch.
TEST(Trainer, CountsWhatIsRightInTraining) {
  auto folder = scratch();
  for (const Remainder remainder : {Remainder::kDrop, Remainder::kPad}) {
    TrainOptions options =
        small_training_on(write_shard(folder.path("a.tar")), folder.path(name_of(remainder)));
    options.remainder = remainder;
    options.batch_size = remainder == Remainder::kPad ? 10 : 16;  // 8 of 40 rows are padding
    options.epochs = 1;
    options.lr = 0;
    TrainResult result;
    capture(options, &result);
    EXPECT_EQ(last_accuracy(options.logdir, "train"), last_accuracy(options.logdir, "test"))
        << name_of(remainder);
    EXPECT_GE(last_accuracy(options.logdir, "train"), 0);
  }
}

TEST(Trainer, MixedImagesHaveMixedLosses) {
  auto folder = scratch();
  TrainOptions options = small_training_on(write_shard(folder.path("a.tar")), folder.path("run"));
  options.batch_size = 32;
  options.mixup = 0.8;
  options.cutmix = 1;
  options.epochs = 1;
  options.log_steps = 1;
  options.lr = 0;  // the checkpoint has the weights of the first step
  TrainResult result;
  const std::string out = capture(options, &result);
  const auto place = out.find("Loss=");
  ASSERT_NE(place, std::string::npos) << out;
  const double reported = std::stod(out.substr(place + 5));

  auto model = models::create("mlp", {2, 3, 8});
  torch::NoGradGuard no_grad;
  const sessions::Checkpoint saved = base::value_or_throw(sessions::read_checkpoint(folder.path("run/last")));
  for (const auto& [name, value] : saved.model) model->named_parameters()[name].copy_(value);
  data::WebDataset dataset(options.train);
  dataset.images("ppm").labels("cls").seed(options.seed).mixup(0.8).cutmix(1).batch(32);
  dataset.shuffle(options.shuffle).interleave(options.streams);
  const auto batch = dataset.open(0)->next();
  ASSERT_TRUE(batch);
  const auto image = data::to_tensor(batch->image).to(torch::kFloat) / 255;
  const auto log_p = torch::log_softmax(model->forward((image - 0.5) / 0.25), 1);
  const auto own = data::to_tensor(batch->label), other = data::to_tensor(batch->other_label);
  const auto share = data::to_tensor(batch->own_share);
  EXPECT_LT(share.min().item<float>(), 0.9);
  const auto pick = [&](const torch::Tensor& label) {
    return -log_p.gather(1, label.unsqueeze(1)).squeeze(1);
  };
  const auto loss = (share * pick(own) + (1 - share) * pick(other)).mean();
  EXPECT_NEAR(reported, loss.item<double>(), 2e-5);
  // A mixed image is right when its larger part is.
  const auto right = log_p.argmax(1).eq(torch::where(share.ge(0.5), own, other));
  EXPECT_NEAR(last_accuracy(options.logdir, "train"), 100 * right.to(torch::kDouble).mean().item<double>(),
              1e-9);
}

TEST(Trainer, AConfusionMatrixNamesTheClassesOfItsShards) {
  auto folder = scratch();
  TrainOptions options = small_training_on(write_shard(folder.path("a.tar")), folder.path("run"));
  options.metrics = {{.kind = metrics::MetricName::Kind::kConfusion}};
  options.epochs = 1;
  options.test_batch_size = 10;  // 8 of 40 rows are padding
  TrainResult result;
  for (const char* names : {"even\n\"odd\"\n", "one\ntwo\nthree\n"}) {
    ASSERT_TRUE(base::write_file_atomically(folder.path("classes.txt"), names));
    capture(options, &result);
    const auto confusion =
        nlohmann::json::parse(base::value_or_throw(base::read_file(folder.path("run/confusion.json"))));
    EXPECT_EQ(confusion.contains("classes"), names[0] == 'e');  // three names are not those of two classes
    if (names[0] == 'e') {
      EXPECT_EQ(confusion["classes"].get<std::vector<std::string>>(),
                (std::vector<std::string>{"even", "\"odd\""}));
    }
    for (const auto& row : confusion["matrix"]) EXPECT_EQ(row[0].get<int>() + row[1].get<int>(), 16);
  }
}

// Names of files and classes are bytes: they come back as they were, and the JSON beside them is UTF-8.
TEST(Trainer, NamesMayBeAnyBytes) {
  auto folder = scratch();
  const std::string data = folder.path("d\xe9"), run = folder.path("r\xfcn");
  ASSERT_TRUE(base::make_directories(data));
  TrainOptions options = small_training_on(write_shard(base::join_path(data, "caf\xe9-0.tar")), run);
  options.config = "logdir=\"" + run + "\"\npattern=\"\\xe9\"\n";
  options.metrics = {{.kind = metrics::MetricName::Kind::kConfusion}};
  options.epochs = 1;
  options.test_batch_size = 10;
  options.json = true;
  ASSERT_TRUE(base::write_file_atomically(base::join_path(data, "classes.txt"), "\xe9ven\nodd\n"));
  TrainResult result;
  testing::internal::CaptureStderr();
  std::string out = capture(options, &result);
  options.epochs = 2;
  options.resume.from_last = true;
  out += capture(options, &result);
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(result.exit_status, kDone);
  for (const auto& line : base::split(out, '\n'))
    EXPECT_TRUE(line.empty() || nlohmann::json::accept(line)) << line;
  const auto confusion =
      nlohmann::json::parse(base::value_or_throw(base::read_file(base::join_path(run, "confusion.json"))));
  EXPECT_EQ(confusion["classes"], (std::vector<std::string>{R"(\xe9ven)", "odd"}));
  const std::string last = base::join_path(run, "last");
  const auto state =
      nlohmann::json::parse(base::value_or_throw(base::read_file(base::join_path(last, "state.json"))));
  EXPECT_THAT(state["config"].get<std::string>(),
              testing::AllOf(testing::HasSubstr(R"(r\xfcn")"), testing::HasSubstr(R"("\x5cxe9")")));
  const auto progress = base::value_or_throw(sessions::read_progress(last));
  EXPECT_EQ(progress.config, options.config);
  EXPECT_EQ(progress.epoch, 2);
}

// Each number against what the confusion matrix says of the same test.
TEST(Trainer, MetricsOfEachTestAreShownAndWritten) {
  auto folder = scratch();
  TrainOptions options = small_training(folder.path("run"));
  options.metrics = base::value_or_throw(
      metrics::parse_names("--metrics", "top1,top2,recall_micro,f1_classes,auroc,confusion"));
  TrainResult result;
  const std::string out = capture(options, &result);
  EXPECT_THAT(out,
              testing::ContainsRegex("Epoch 2 test end .*, Accuracy=[0-9.]+%, Top1=[0-9.]+%, Top2=[0-9.]+%, "
                                     "Recall_micro=[01].[0-9]+, AUROC=[01].[0-9]+\n"));
  std::map<std::string, double> last;
  const auto rows = base::split(base::value_or_throw(base::read_file(folder.path("run/metrics.csv"))), '\n');
  const auto columns = base::split(rows.front(), ','), cells = base::split(rows[rows.size() - 2], ',');
  ASSERT_EQ(cells.size(), columns.size());
  for (size_t i = 0; i < columns.size(); ++i)
    if (columns[i] != "split" && !cells[i].empty()) last[columns[i]] = std::stod(cells[i]);
  const auto confusion =
      nlohmann::json::parse(base::value_or_throw(base::read_file(folder.path("run/confusion.json"))));
  EXPECT_EQ(confusion["epoch"], 2);
  EXPECT_EQ(confusion["step"], 24);
  EXPECT_FALSE(confusion.contains("classes"));
  int64_t samples = 0, right = 0;
  for (size_t label = 0; label < 4; ++label) {
    int64_t labelled = 0, answered = 0;
    for (size_t other = 0; other < 4; ++other) {
      labelled += confusion["matrix"][label][other].get<int64_t>();
      answered += confusion["matrix"][other][label].get<int64_t>();
    }
    const auto hits = confusion["matrix"][label][label].get<int64_t>();
    const double f1 = 2.0 * static_cast<double>(hits) / static_cast<double>(labelled + answered);
    EXPECT_NEAR(last.at(base::str("f1_classes/", label)), f1, 1e-9) << label;
    samples += labelled;
    right += hits;
  }
  EXPECT_EQ(samples, 50);
  EXPECT_EQ(last.at("accuracy"), 100.0 * static_cast<double>(right) / 50);
  EXPECT_EQ(last.at("top1"), last.at("accuracy"));
  EXPECT_EQ(last.at("accuracy"), result.accuracy);
  EXPECT_GE(last.at("top2"), last.at("top1"));
  EXPECT_NEAR(last.at("recall_micro"), last.at("accuracy") / 100, 1e-9);
}

// The sums against a count by hand, with padding that would be right by chance.
TEST(Evaluate, CountsRealRowsOnly) {
  Options options;
  options.device = "cpu";
  auto session = start(options);
  std::vector<sessions::HostBatch> batches(2);
  for (auto& batch : batches) {
    batch.image = torch::eye(3);  // row i predicts class i
    batch.label = torch::tensor({0, 1, 0}, torch::kLong);
    batch.mask = torch::ones({3}, torch::kBool);
    batch.columns = {batch.image, batch.label};
  }
  batches[1].mask = torch::tensor({false, true, false});
  size_t next = 0;
  auto source = [&]() -> std::vector<sessions::HostBatch> {
    if (next == batches.size()) return {};
    return {batches[next++]};
  };
  const TrainOptions options_of_steps;
  const Steps steps = image_classification(options_of_steps, [](torch::Tensor x) { return x; });
  Evaluation result = evaluate(
      session, steps, session.feed_source(source, {}), 2, /*autocast=*/false, [] { return false; },
      [](int64_t) {});
  EXPECT_EQ(result.samples, 4);
  EXPECT_EQ(result.values["accuracy"], 0.75);
  const double right = -std::log(std::exp(1.0) / (std::exp(1.0) + 2)),
               wrong = -std::log(1 / (std::exp(1.0) + 2));
  EXPECT_NEAR(result.values["loss"], (3 * right + wrong) / 4, 1e-6);
  EXPECT_FALSE(result.stopped);
}

}  // namespace
}  // namespace sluice::train
