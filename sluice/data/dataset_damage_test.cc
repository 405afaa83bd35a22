// Data sets of which something is lost, and where streams go on.
#include <gmock/gmock.h>

#include "sluice/data/memory.h"
#include "sluice/data/shards/group.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/test_dataset.h"

namespace sluice::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using DatasetDamageTest = DatasetTest;

// A stream in the shards' order is opened without counting them; its state knows them all the same.
TEST_F(DatasetDamageTest, AnUnshuffledStreamGoesOnFromItsState) {
  const std::string urls = shards(3, 7);
  for (std::size_t taken = 0; taken <= 3; ++taken) {
    const auto stream = dataset(urls).open();
    std::vector<Batch> batches;
    for (std::size_t i = 0; i < taken; ++i) batches.push_back(*stream->next());
    const std::string state = stream->state();
    EXPECT_EQ(state, dataset(urls).state({0, 0, 1, 1, static_cast<std::int64_t>(taken)}));
    for (Batch& batch : all(*dataset(urls).resume(state, {}))) batches.push_back(std::move(batch));
    EXPECT_EQ(keys(batches), keys(all(*dataset(urls).open())));
  }
  const std::string state = dataset(urls).open()->state();
  EXPECT_THAT(test::thrown([&] { dataset(shards(3, 8)).resume(state, {}); }),
              HasSubstr("samples is 24 now and was 21"));
}

TEST_F(DatasetDamageTest, BadSamplesAreLeftOutWithinABudget) {
  const std::string urls = shards(2, 10, {{"x.png", "broken"}, {"x.cls", "1"}});
  const WebDataset data = dataset(urls).on_error(OnError::kSkip).max_bad(1);
  const auto stream = data.open();
  const auto batches = all(*stream);
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_EQ(stream->statistics().bad, 1);
  EXPECT_EQ(batches[2].size(), 5);
  EXPECT_THAT(batches[2].keys, ElementsAre("k1016", "k1017", "k1018", "k1019", "k1019"));
  const auto padded = all(*WebDataset(data).pad().open());
  EXPECT_EQ(padded[2].count, 4);
  EXPECT_FALSE(padded[2].mask.data<bool>()[4]);
  EXPECT_THAT(test::thrown([&] { all(*WebDataset(data).max_bad(0).open()); }),
              HasSubstr("more than 0 bad samples in this epoch"));
  EXPECT_THAT(test::thrown([&] { all(*WebDataset(data).max_bad(0.04).open()); }),
              HasSubstr("more than 0 bad"));
  EXPECT_EQ(all(*WebDataset(data).max_bad(0.05).open()).size(), 3u);
}

// One of ten shards is cut. With an index the lost samples are counted; without one nobody knows their
// number.
TEST_F(DatasetDamageTest, WhatADamagedShardLosesIsCounted) {
  const std::string urls = shards(10, 20);
  const WebDataset skipping = dataset(urls).batch(25).on_error(OnError::kSkip);
  const auto index = *index_shard(folder_.path("s-3.tar"));
  const std::string whole = *base::read_file(folder_.path("s-3.tar"));
  const std::size_t cut = index.starts()[12];  // 12 whole samples, then nothing
  folder_.write("s-3.tar", whole.substr(0, cut));
  EXPECT_THAT(test::thrown([&] { WebDataset(skipping).max_bad(100).open(); }),
              HasSubstr("How many samples are lost after the 12 before this is not known"));
  const auto allowed = WebDataset(skipping).allow_unknown_loss().max_bad(0).open();
  EXPECT_EQ(keys(all(*allowed)).size(), 192u);
  EXPECT_EQ(allowed->statistics().bad, 0);
  ASSERT_TRUE(write_index(folder_.path("s-3.tar"), index));
  EXPECT_THAT(test::thrown([&] { all(*WebDataset(skipping).max_bad(7).open()); }),
              HasSubstr("more than 7 bad samples"));
  const auto counted = WebDataset(skipping).max_bad(8).open();
  EXPECT_EQ(keys(all(*counted)).size(), 200u);
  EXPECT_EQ(counted->statistics().bad, 8);
  // Zeros look like the end of an archive, but not where the index has more samples.
  folder_.write("s-3.tar", whole.substr(0, cut) + std::string(whole.size() - cut, '\0'));
  EXPECT_THAT(test::thrown([&] { all(*dataset(urls).batch(25).open()); }),
              HasSubstr("s-3.tar: it ends after 12 samples: expected 20"));
  const WebDataset again = dataset(urls).batch(25).on_error(OnError::kSkip);
  EXPECT_THAT(test::thrown([&] { all(*WebDataset(again).max_bad(7).open()); }),
              HasSubstr("more than 7 bad samples"));
  const auto cleared = WebDataset(again).max_bad(8).open();
  EXPECT_EQ(keys(all(*cleared)).size(), 200u);
  EXPECT_EQ(cleared->statistics().bad, 8);
  // One damaged header with an index: one sample.
  std::string damaged = whole;
  damaged[index.starts()[5]] = static_cast<char>(damaged[index.starts()[5]] ^ 1);
  folder_.write("s-3.tar", damaged);
  const auto one = dataset(urls).batch(25).on_error(OnError::kSkip).max_bad(1).open();
  EXPECT_EQ(keys(all(*one)).size(), 200u);
  EXPECT_EQ(one->statistics().bad, 1);
}

// A sample that is too large costs itself alone.
TEST_F(DatasetDamageTest, TooLargeMembersAreBadSamples) {
  const std::string urls = shards(
      2, 10, {{"x.png", std::string(100'000, 'x')}, {"x.cls", "1"}, {"y.png", png_of(3)}, {"y.cls", "2"}});
  const MemoryLimits before = memory_limits();
  memory_limits().sample = 50'000;
  const auto stream = dataset(urls).on_error(OnError::kSkip).max_bad(1).open();
  const auto batches = all(*stream);
  EXPECT_EQ(stream->statistics().bad, 1);
  EXPECT_THAT(batches[2].keys, ElementsAre("k1016", "k1017", "k1018", "k1019", "k1019", "y"));
  EXPECT_THAT(test::thrown([&] { all(*dataset(urls).open()); }),
              HasSubstr("s-1.tar: member x.png (header at byte 20480) has 100000 bytes"));
  memory_limits() = before;
}

// A shard that is lost on one host: the others get what they would have got.
TEST_F(DatasetDamageTest, ALostShardDoesNotChangeWhatOthersGet) {
  const std::string urls = shards(4, 16);
  for (const std::string& url : WebDataset(urls).urls()) ASSERT_TRUE(write_index(url, *index_shard(url)));
  const WebDataset data = dataset(urls).shuffle(8).seed(2).batch(4).on_error(OnError::kSkip).max_bad(16);
  const auto open = [&](std::int64_t part) { return WebDataset(data).interleave(8).open(1, part, 2); };
  const auto before = keys(all(*open(0)));
  const auto batches = all(*open(1));
  folder_.write("s-2.tar", "lost");
  std::int64_t bad = 0;
  for (std::int64_t part = 0; part < 2; ++part) {
    const auto stream = open(part);
    const auto after = all(*stream);
    EXPECT_EQ(after.size(), batches.size());
    bad += stream->statistics().bad;
    const auto& whole = part == 0 ? before : keys(batches);
    const auto found = keys(after);
    ASSERT_EQ(found.size(), whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      if (whole[i] >= "k1032" && whole[i] < "k1048") continue;  // of the lost shard
      EXPECT_EQ(found[i], whole[i]);
    }
  }
  EXPECT_EQ(bad, 16);
}

// The header of the first sample's label is damaged: the sample is not handed out without its label, and the
// error is that of the archive.
TEST_F(DatasetDamageTest, TheFirstSampleOfAShardIsNotWholeWithoutItsLastMember) {
  const std::string urls = shards(1, 3);
  const std::string path = folder_.path("s-0.tar");
  std::string bytes = *base::read_file(path);
  bytes[bytes.find("k1000.cls")] = 'q';
  folder_.write("s-0.tar", bytes);
  EXPECT_THAT(test::thrown([&] { all(*dataset(urls).open()); }),
              HasSubstr("after member k1000.png has a wrong checksum"));
  ShardReader reader(*open_source(path), {});
  RawSample sample;
  EXPECT_FALSE(reader.next(sample));
  // With the sample's end from an index it is whole where it is.
  folder_.write("s-0.tar", (bytes[bytes.find("q1000.cls")] = 'k', bytes));
  const auto index = *index_shard(path);
  bytes[index.starts()[1]] = 'q';
  folder_.write("s-0.tar", bytes);
  ShardReader first(*open_source(path), {});
  EXPECT_TRUE(first.next(sample, true, index.starts()[1]).value_or(false));
  EXPECT_EQ(sample.fields.size(), 2u);
  EXPECT_FALSE(first.next(sample, true, index.starts()[2]));
}

}  // namespace
}  // namespace sluice::data
