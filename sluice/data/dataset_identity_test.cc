// Shards that are replaced: between the epochs of a run, before it goes on, after an index was made.
#include <gmock/gmock.h>

#include <filesystem>

#include "sluice/data/shards/shard_index.h"
#include "sluice/data/shards/tar.h"
#include "sluice/data/stream_state.h"
#include "sluice/data/test_dataset.h"

namespace sluice::data {
namespace {

using ::testing::HasSubstr;

class IdentityTest : public DatasetTest {
 protected:
  std::string path(int shard) const { return folder_.path("s-" + std::to_string(shard) + ".tar"); }

  // The same names, numbers of samples and bytes, but the last sample has another class.
  void replace(int shard) {
    std::string bytes = *base::read_file(path(shard));
    const std::size_t header = bytes.rfind(".cls");
    char& label = bytes[header / kTarBlock * kTarBlock + kTarBlock];
    label = label == '1' ? '2' : '1';
    ASSERT_TRUE(base::write_file_atomically(path(shard), bytes));
  }
  // Its copy: the same bytes, written later.
  void touch(int shard) const {
    std::filesystem::last_write_time(path(shard),
                                     std::filesystem::last_write_time(path(shard)) + std::chrono::hours(1));
  }
  // sizes.json as `sluice data index` writes it.
  void write_sums(int count) {
    ShardSizes sizes;
    for (int i = 0; i < count; ++i) {
      ShardSum sum;
      const auto index = *index_shard(path(i), &sum);
      sizes["s-" + std::to_string(i) + ".tar"] =
          ShardRecord(static_cast<std::int64_t>(index.samples.size()), sum);
    }
    folder_.write("sizes.json", format_sizes(sizes));
  }
};

TEST_F(IdentityTest, AShardThatIsReplacedBetweenEpochsStopsTheRun) {
  const WebDataset data = dataset(shards(3, 8)).shuffle(10).interleave(3);
  const WebDataset skipping = WebDataset(data).on_error(OnError::kSkip).max_bad(8);
  all(*skipping.open(0));
  all(*data.open(0));
  all(*data.open(1));
  replace(1);
  EXPECT_THAT(test::thrown([&] { all(*data.open(2)); }), HasSubstr("s-1.tar was replaced while its set is"));
  // To a policy it is a bad shard.
  const auto stream = skipping.open(2);
  EXPECT_EQ(keys(all(*stream)).size(), 24u);
  EXPECT_EQ(stream->statistics().bad, 8);
}

TEST_F(IdentityTest, AReplacedShardIsFoundAtResume) {
  const std::string urls = shards(3, 8);
  const auto described = [&] { return dataset(urls).shuffle(10).interleave(3); };
  const std::string state = described().state({0, 0, 1, 1, 1});
  EXPECT_EQ(all(*described().resume(state, {})).size(), 2u);
  replace(1);
  EXPECT_THAT(
      test::thrown([&] { described().resume(state, {}); }),
      HasSubstr("cannot continue in mid-epoch: the shards have the same names and numbers of samples, but "
                "local ones were written since"));
  folder_.write("s-1.tar", *base::read_file(path(1)) + std::string(10240, '\0'));
  EXPECT_THAT(test::thrown([&] { described().resume(state, {}); }),
              HasSubstr("other contents than they had"));
}

TEST_F(IdentityTest, AtAnEpochsStartOtherContentsAreTold) {
  const std::string urls = shards(3, 8);
  write_sums(3);
  const auto state = [&] { return dataset(urls).shuffle(10).interleave(3).state({2, 0, 1, 1, 0}); };
  const std::string before = state();
  touch(0);
  EXPECT_EQ(changed_content(before, state()), "");
  replace(1);
  write_sums(3);
  EXPECT_EQ(changed_content(before, state()),
            "the shards have the same names and numbers of samples, but other contents than they had");
  shards(3, 9);
  write_sums(3);
  EXPECT_EQ(changed_content(before, state()), "");  // another set
  EXPECT_THAT(changed_content("a source1.shards=1 source1.content=2", "b source1.shards=1 source1.content=3"),
              HasSubstr("other contents"));
}

// Hosts have copies of their own; only the first one's times are in the state.
TEST_F(IdentityTest, OtherPartsDoNotCompareTimes) {
  const std::string urls = shards(2, 8);
  const std::string state = dataset(urls).batch(4).state({0, 0, 2, 1, 1});
  touch(0);
  EXPECT_THAT(test::thrown([&] {
                dataset(urls).batch(4).resume(state, {0, 0, 2, 1, 0});
              }),
              HasSubstr("(cp -p, rsync -t)"));
  EXPECT_EQ(all(*dataset(urls).batch(4).resume(state, {0, 1, 2, 1, 0})).size(), 1u);
}

TEST_F(IdentityTest, WithSumsACopyIsTheSameAndAReplacedShardIsNot) {
  const std::string urls = shards(3, 8);
  const auto described = [&] { return dataset(urls).shuffle(10).interleave(3); };
  const std::string before = described().state({0, 0, 1, 1, 1});
  write_sums(3);
  EXPECT_EQ(all(*described().resume(before, {})).size(), 2u);  // an index alone changes nothing
  const std::string state = described().state({0, 0, 1, 1, 1});
  touch(0);
  touch(2);
  EXPECT_EQ(all(*described().resume(state, {})).size(), 2u);
  replace(2);
  EXPECT_THAT(test::thrown([&] { described().resume(state, {}); }),
              HasSubstr("s-2.tar has 20480 bytes with crc32c"));
  write_sums(3);
  EXPECT_THAT(test::thrown([&] { described().resume(state, {}); }),
              HasSubstr("other contents than they had"));
}

TEST_F(IdentityTest, AShardOfAnotherSizeThanItsSumIsRefusedUnlessDamageIsSkipped) {
  const std::string urls = shards(2, 8);
  write_sums(2);
  const std::string whole = *base::read_file(path(1));
  folder_.write("s-1.tar", whole + std::string(512, '\0'));
  EXPECT_THAT(test::thrown([&] { (void)dataset(urls).size(); }),
              HasSubstr("s-1.tar has 20992 bytes: sizes.json next to it says 20480 bytes with crc32c"));
  folder_.write("s-1.tar", whole.substr(0, 5120));
  const auto stream = dataset(urls).on_error(OnError::kSkip).max_bad(6).open();
  EXPECT_EQ(keys(all(*stream)).size(), 16u);
  EXPECT_GT(stream->statistics().bad, 0);
}

// A fresh run knows sizes.json alone: bytes are compared where a shard is read from its first to its last.
TEST_F(IdentityTest, AFreshRunComparesTheShardsThatItReadsWhole) {
  const std::string urls = shards(3, 8);
  write_sums(3);
  EXPECT_EQ(keys(all(*dataset(urls).open())).size(), 24u);
  replace(1);
  const std::string said = test::thrown([&] { all(*dataset(urls).open()); });
  EXPECT_THAT(said, HasSubstr("s-1.tar has 20480 bytes with crc32c "));
  EXPECT_THAT(said, HasSubstr(": sizes.json next to it says 20480 bytes with crc32c "));
  EXPECT_THAT(said, HasSubstr("run 'sluice data index'"));
  // In a shuffle whose ranges have a shard each, and when an epoch is opened without counting.
  EXPECT_THAT(test::thrown([&] { all(*dataset(urls).shuffle(4).interleave(3).open(0)); }),
              HasSubstr("s-1.tar has 20480 bytes with crc32c "));
  // A member that nobody wants does not hide it.
  EXPECT_THAT(test::thrown([&] { all(*WebDataset(urls).to_tuple("__key__").open()); }),
              HasSubstr("s-1.tar has 20480 bytes with crc32c "));
  // To a policy it is damage, of which no sample is lost.
  EXPECT_EQ(keys(all(*dataset(urls).on_error(OnError::kSkip).open())).size(), 24u);
  // What the index knows is what counts from then on.
  write_sums(3);
  EXPECT_EQ(keys(all(*dataset(urls).open())).size(), 24u);
}

// With --shard-size nothing is counted, but the shards are looked at.
TEST_F(IdentityTest, ShardsOfAGivenSizeAreLookedAtToo) {
  const WebDataset data = dataset(shards(2, 8)).shuffle(10).interleave(2).shard_size(8);
  all(*data.open(0));
  replace(0);
  EXPECT_THAT(test::thrown([&] { all(*data.open(1)); }), HasSubstr("was replaced"));
}

}  // namespace
}  // namespace sluice::data
