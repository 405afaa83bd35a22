#include "sluice/train/log/metrics_writer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"
#include "sluice/train/hyper_parameters.h"
#include "sluice/train/log/event_points.h"

namespace sluice::train {
namespace {

constexpr const char* kHeader =
    ",split,epoch,step,loss,rate,global_rate,learning_rate,accuracy,examples_per_second,"
    "step_p50_ms,step_p95_ms,tokens_per_second,flops_per_second,mfu,memory_in_use,memory_peak,input_share";

Measurement row(int64_t step, double loss) {
  Measurement result;
  result.split = "train";
  result.epoch = 1;
  result.step = step;
  result.loss = loss;
  result.learning_rate = 0.1;
  return result;
}

std::string read(const base::TemporaryDirectory& folder, const char* name) {
  return base::value_or_throw(base::read_file(folder.path(name)));
}

// The lines without their first cell, the time.
std::vector<std::string> without_time(const std::string& text) {
  std::vector<std::string> result;
  for (const auto& line : base::split(text, '\n'))
    if (!line.empty()) result.push_back(line.substr(line.find(',')));
  return result;
}

TEST(MetricsWriter, WritesBothFilesAndAppends) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  {
    auto writer = base::value_or_throw(MetricsWriter::create(folder.path(), 0));
    Measurement first = row(10, 2.5);
    first.steps = {.steps = 10,
                   .p50_ms = 41.5,
                   .p95_ms = 50,
                   .flops_per_second = 64e12,
                   .mfu = 0.5,
                   .input_share = 0.25,
                   .memory_in_use = 1000,
                   .memory_peak = 2000};
    ASSERT_TRUE(writer.write(first));
    Measurement test;
    test.split = "test";
    test.epoch = 1;
    test.step = 10;
    test.accuracy = 50;
    ASSERT_TRUE(writer.write(test));
  }
  auto again = base::value_or_throw(MetricsWriter::create(folder.path(), 10));
  ASSERT_TRUE(again.write(row(20, 1.25)));
  EXPECT_EQ(without_time(read(folder, "metrics.csv")),
            (std::vector<std::string>{kHeader, ",train,1,10,2.5,,,0.1,,,41.5,50,,6.4e+13,0.5,1000,2000,0.25",
                                      ",test,1,10,,,,,50,,,,,,,,,", ",train,1,20,1.25,,,0.1,,,,,,,,,,"}));
  const std::string jsonl = read(folder, "metrics.jsonl");
  EXPECT_NE(jsonl.find("\"split\": \"train\", \"epoch\": 1, \"step\": 20, \"loss\": 1.25"), std::string::npos)
      << jsonl;
}

TEST(MetricsWriter, AddressesLoseTheirSignatures) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  TrainOptions options;
  options.weights = "https://me:hush@h/x?X-Amz-Signature=hush";
  options.config = "weights=\"" + options.weights + "\"\n";
  {
    auto writer = base::value_or_throw(MetricsWriter::create(folder.path(), 0));
    ASSERT_TRUE(writer.begin(hyper_parameters(options, 8), options.config));
  }
  int seen = 0;
  for (const std::string& name : base::value_or_throw(base::list_directory(folder.path()))) {
    const std::string bytes = read(folder, name.c_str());
    EXPECT_EQ(bytes.find("hush"), std::string::npos) << name;
    for (size_t at = bytes.find("https://h/x"); at != std::string::npos;
         at = bytes.find("https://h/x", at + 1))
      ++seen;
  }
  EXPECT_GE(seen, 2);  // as a hyperparameter, and among the options
}

TEST(MetricsWriter, RowsAfterTheCheckpointGo) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  {
    auto writer = base::value_or_throw(MetricsWriter::create(folder.path(), 0));
    for (int step : {10, 20, 30}) ASSERT_TRUE(writer.write(row(step, 1)));
  }
  auto again = base::value_or_throw(MetricsWriter::create(folder.path(), 20));
  EXPECT_EQ(without_time(read(folder, "metrics.csv")).size(), 3u);  // header, 10, 20
  EXPECT_EQ(read(folder, "metrics.jsonl").find("\"step\": 30"), std::string::npos);
}

// A run was killed between the row of a test and its checkpoint: the test comes again, its row stands once.
TEST(MetricsWriter, ARowOfATestThatComesAgainStandsOnce) {
  Measurement test = row(20, 0.5);
  test.split = "test";
  for (const bool whole : {true, false}) {
    auto folder = base::value_or_throw(base::TemporaryDirectory::create());
    {
      auto writer = base::value_or_throw(MetricsWriter::create(folder.path(), 0));
      ASSERT_TRUE(writer.write(row(20, 1)));
      const std::string before = read(folder, "metrics.jsonl");
      ASSERT_TRUE(writer.write(test));
      if (!whole) {
        ASSERT_TRUE(base::write_file_atomically(folder.path("metrics.jsonl"), before));
      }
    }
    auto again = base::value_or_throw(MetricsWriter::create(folder.path(), 20, {.test = true}));
    EXPECT_EQ(again.has_test(20), whole);
    ASSERT_TRUE(again.write(test));
    test.step = 40;
    ASSERT_TRUE(again.write(test));
    test.step = 20;
    EXPECT_EQ(without_time(read(folder, "metrics.csv")).size(), 4u);  // header, 20 twice, 40
    const auto lines = base::split(read(folder, "metrics.jsonl"), '\n');
    EXPECT_EQ(lines.size(), 4u);  // the last one is empty
  }
}

// The same of a run that ended within an epoch, killed before its last checkpoint.
// How often all event files of the folder together have this name of a curve.
size_t points_of(const base::TemporaryDirectory& folder, const std::string& curve) {
  size_t count = 0;
  for (const std::string& name : base::value_or_throw(base::list_directory(folder.path()))) {
    if (!base::starts_with(name, kEventFile)) continue;
    const std::string bytes = read(folder, name.c_str());
    for (size_t at = 0; (at = bytes.find(curve, at)) != std::string::npos; ++at) ++count;
  }
  return count;
}

// A run may be killed between two files, on this machine or while they are uploaded. What is due then is
// written to those that lack it.
TEST(MetricsWriter, ATestThatOnlySomeFilesHaveIsCompleted) {
  for (const bool events_have_it : {true, false}) {
    auto folder = base::value_or_throw(base::TemporaryDirectory::create());
    Measurement test = row(3, 0.5);
    test.split = "test";
    const auto write = [&](const RowsDue& due, bool first) {
      auto writer = base::value_or_throw(MetricsWriter::create(folder.path(), first ? 0 : 3, due));
      if (first) base::value_or_throw(writer.write(row(3, 0.25)));
      base::value_or_throw(writer.write(test));
    };
    write({}, /*first=*/true);
    ASSERT_EQ(points_of(folder, "Loss/test"), 1U);
    if (events_have_it) {
      std::string rows = read(folder, "metrics.jsonl");
      rows.resize(rows.rfind('\n', rows.size() - 2) + 1);
      base::value_or_throw(base::write_file_atomically(folder.path("metrics.jsonl"), rows));
    } else {
      for (const std::string& name : base::value_or_throw(base::list_directory(folder.path())))
        if (base::starts_with(name, kEventFile)) base::value_or_throw(base::remove_file(folder.path(name)));
    }
    write({.test = true}, /*first=*/false);
    EXPECT_EQ(points_of(folder, "Loss/test"), 1U) << events_have_it;
    EXPECT_EQ(without_time(read(folder, "metrics.csv")).size(), 3U) << events_have_it;  // with the header
    EXPECT_EQ(without_time(read(folder, "metrics.jsonl")).size(), 2U) << events_have_it;
    EXPECT_TRUE(base::value_or_throw(curves_with_point(folder.path(), 3)).contains("Loss/test"));
    EXPECT_FALSE(base::value_or_throw(curves_with_point(folder.path(), 4)).contains("Loss/test"));
  }
}

TEST(MetricsWriter, TheRowsOfAnEndWithinAnEpochStandOnce) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  Measurement end = row(20, 0);
  end.of_epoch = true;
  end.loss.reset();
  end.learning_rate.reset();
  const auto write_end = [&](MetricsWriter& writer) {
    ASSERT_TRUE(writer.write(EpochTimes{}, 1, 20));
    ASSERT_TRUE(writer.write(end));
  };
  {
    auto writer = base::value_or_throw(MetricsWriter::create(folder.path(), 0));
    ASSERT_TRUE(writer.write(row(20, 1)));
    write_end(writer);
  }
  const auto table = without_time(read(folder, "metrics.csv"));
  const std::string rows = read(folder, "metrics.jsonl");
  auto again = base::value_or_throw(MetricsWriter::create(folder.path(), 20, {.epoch_end = true}));
  write_end(again);
  EXPECT_EQ(without_time(read(folder, "metrics.csv")), table);
  EXPECT_EQ(read(folder, "metrics.jsonl"), rows);
  // A row that is not whole is written again.
  ASSERT_TRUE(base::write_file_atomically(folder.path("metrics.jsonl"), rows.substr(0, rows.find('\n') + 1)));
  auto third = base::value_or_throw(MetricsWriter::create(folder.path(), 20, {.epoch_end = true}));
  write_end(third);
  EXPECT_EQ(without_time(read(folder, "metrics.csv")), table);
}

TEST(MetricsWriter, AnOlderTableGetsItsNewColumn) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  ASSERT_TRUE(base::write_file_atomically(
      folder.path("metrics.csv"),
      "time,split,epoch,step,loss,rate,global_rate,learning_rate,accuracy\n1,test,1,10,,,,,50\n"));
  auto writer = base::value_or_throw(MetricsWriter::create(folder.path(), 10));
  EXPECT_EQ(without_time(read(folder, "metrics.csv")),
            (std::vector<std::string>{kHeader, ",test,1,10,,,,,50,,,,,,,,,"}));
}

TEST(MetricsWriter, ColumnsOfARunsOwnComeWithTheirFirstRow) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  Measurement test;
  test.split = "test";
  test.step = 10;
  {
    auto writer = base::value_or_throw(MetricsWriter::create(folder.path(), 0));
    ASSERT_TRUE(writer.write(row(10, 2)));
    test.others = {{"top5", "Top5/test", 75}, {"f1", "F1/test", 0.5}};
    ASSERT_TRUE(writer.write(test));
  }
  // Resumed with another choice: what is there keeps its place.
  auto again = base::value_or_throw(MetricsWriter::create(folder.path(), 10));
  test.step = 20;
  test.others = {{"f1", "F1/test", 0.625}, {"auroc", "AUROC/test", 0.875}};
  ASSERT_TRUE(again.write(test));
  const auto lines = base::split(read(folder, "metrics.csv"), '\n');
  ASSERT_EQ(lines.size(), 5u);  // the last one is empty
  EXPECT_TRUE(base::ends_with(lines[0], ",input_share,top5,f1,auroc")) << lines[0];
  EXPECT_TRUE(base::ends_with(lines[1], ",0.1,,,,,,,,,,,,,")) << lines[1];
  EXPECT_TRUE(base::ends_with(lines[2], ",,75,0.5,")) << lines[2];
  EXPECT_TRUE(base::ends_with(lines[3], ",,,0.625,0.875")) << lines[3];
  EXPECT_NE(read(folder, "metrics.jsonl").find("\"f1\": 0.625, \"auroc\": 0.875}"), std::string::npos);
  // A fresh run has the columns of its own rows.
  ASSERT_TRUE(MetricsWriter::create(folder.path(), 0));
  EXPECT_EQ(read(folder, "metrics.csv").find("top5"), std::string::npos);
}

TEST(MetricsWriter, NumbersThatJsonLacksAreTexts) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_NE(json_text(row(1, std::nan("")), 0).find("\"loss\": \"nan\""), std::string::npos);
}

}  // namespace
}  // namespace sluice::train
