#include "sluice/data/order/range_reader.h"

#include <gmock/gmock.h>

#include "sluice/data/shards/shard_index.h"
#include "sluice/data/test_support.h"

namespace sluice::data {
namespace {

using ::testing::HasSubstr;
using Keys = std::vector<std::string>;

class RangeReaderTest : public ::testing::Test {
 protected:
  // Shards of 10 samples each, k000 k001 …, with payloads of 3 kB.
  void write(int shards, bool index) {
    settings_.urls.clear();
    for (int shard = 0; shard < shards; ++shard) {
      test::Members members;
      for (int i = 0; i < 10; ++i)
        members.emplace_back("k" + std::to_string(shard) + std::to_string(i) + ".txt",
                             std::string(3000, 'x'));
      settings_.urls.push_back(folder_.write("s" + std::to_string(shard) + ".tar", test::archive(members)));
    }
    auto facts = *learn_shards(settings_.urls);
    if (!index) facts.starts.assign(facts.starts.size(), {});
    facts.versions.assign(facts.versions.size(), "");  // the tests damage shards, and bring them back
    settings_.facts = std::make_shared<const ShardFacts>(std::move(facts));
  }
  RangeOptions options(std::int64_t capacity, std::int64_t skip = 0, std::int64_t initial = 0) const {
    RangeOptions range;
    range.segments = {{2, 4, 6}, {0, 0, 10}, {1, 0, 3}};
    range.capacity = capacity;
    range.skip = skip;
    range.initial = initial;
    range.random = base::Random({1});
    return range;
  }
  Keys read(RangeOptions options, std::string* error = nullptr) {
    settings_.bytes = 0;
    RangeReader reader(settings_, std::move(options));
    Keys keys;
    RawSample sample;
    while (true) {
      const auto found = reader.next(sample);
      if (!found && error != nullptr) *error = found.error().what();
      if (!found || !*found) return keys;
      keys.push_back(sample.failed ? "bad" : sample.key);
      EXPECT_TRUE(sample.failed || sample.fields[0].bytes.size() == 3000);
    }
  }

  test::Folder folder_;
  ReadSettings settings_;
};

TEST_F(RangeReaderTest, ReadsItsSegmentsInOrder) {
  for (const bool index : {false, true}) {
    write(3, index);
    const Keys keys = read(options(1));
    EXPECT_EQ(keys.size(), 19u);
    EXPECT_EQ(base::join(keys, " "),
              "k24 k25 k26 k27 k28 k29 k00 k01 k02 k03 k04 k05 k06 k07 k08 k09 k10 k11 k12");
  }
}

TEST_F(RangeReaderTest, SkippingGivesTheRestOfTheSameOrder) {
  for (const bool index : {false, true}) {
    write(3, index);
    for (const std::int64_t initial : {0, 3}) {
      for (const std::int64_t capacity : {1, 2, 5, 100}) {
        const Keys all = read(options(capacity, 0, initial));
        Keys sorted = all;
        std::sort(sorted.begin(), sorted.end());
        EXPECT_EQ(std::unique(sorted.begin(), sorted.end()) - sorted.begin(), 19);
        for (std::size_t skip = 0; skip <= 20; ++skip) {
          const Keys rest = read(options(capacity, static_cast<std::int64_t>(skip), initial));
          EXPECT_EQ(rest, Keys(all.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(skip, 19)),
                               all.end()));
        }
      }
    }
  }
}

TEST_F(RangeReaderTest, WithAnIndexWhatWasConsumedIsNotRead) {
  write(3, true);
  EXPECT_EQ(read(options(2, 15)).size(), 4u);
  // A sample takes 3584 bytes; at most two stood in the buffer, the oldest of them some samples ago.
  EXPECT_LE(settings_.bytes, 12 * 3584);
  read(options(1, 18));
  EXPECT_EQ(settings_.bytes, 3584);
  // A part of a shard costs its own bytes only.
  read(options(1));
  EXPECT_LE(settings_.bytes, 19 * 3584 + 2 * 10240);
}

TEST_F(RangeReaderTest, SizesThatAreNotTrueAreErrors) {
  write(3, true);
  auto facts = *settings_.facts;
  const auto with_size = [&](std::int64_t size) {
    facts.sizes[0] = size;
    facts.starts[0].clear();
    settings_.facts = std::make_shared<const ShardFacts>(facts);
    auto range = options(1);
    range.segments = {{0, 0, size}};
    std::string error;
    read(std::move(range), &error);
    return error;
  };
  EXPECT_THAT(with_size(11), HasSubstr("s0.tar: it ends after 10 samples: expected 11"));
  EXPECT_THAT(with_size(9), HasSubstr("s0.tar: it has more than the 9 samples"));
  EXPECT_EQ(with_size(10), "");
}

// A damaged header costs one sample where the samples' places are known, and the rest of the shard otherwise.
TEST_F(RangeReaderTest, BadSamplesKeepTheirPlaces) {
  for (const bool index : {false, true}) {
    for (const OnError policy : {OnError::kStop, OnError::kSkip, OnError::kRetry}) {
      write(3, index);
      settings_.on_error = policy;
      settings_.pauses = {0};
      auto bytes = *base::read_file(settings_.urls[0]);
      bytes[7 * 3584] = static_cast<char>(bytes[7 * 3584] ^ 1);  // the header of k07
      folder_.write("s0.tar", bytes);
      std::string error;
      const Keys keys = read(options(1), &error);
      if (policy == OnError::kStop) {
        EXPECT_EQ(keys.size(), 13u);
        EXPECT_THAT(error, HasSubstr("s0.tar: damaged: the header at byte 25088"));
        continue;
      }
      EXPECT_EQ(error, "");
      ASSERT_EQ(keys.size(), 19u);
      EXPECT_EQ(keys[12], "k06");
      EXPECT_EQ(keys[13], "bad");
      EXPECT_EQ(keys[14], index ? "k08" : "bad");
      EXPECT_EQ(keys[15], index ? "k09" : "bad");
      EXPECT_EQ(keys[16], "k10");
    }
  }
}

// With an index that says 9, a tenth sample would be lost uncounted: no policy goes on.
TEST_F(RangeReaderTest, MoreSamplesThanAreKnownOfAreNeverSkipped) {
  write(1, false);
  auto facts = *settings_.facts;
  facts.sizes[0] = 9;
  settings_.facts = std::make_shared<const ShardFacts>(facts);
  settings_.on_error = OnError::kSkip;
  auto range = options(1);
  range.segments = {{0, 0, 9}};
  std::string error;
  read(std::move(range), &error);
  EXPECT_THAT(error, HasSubstr("it has more than the 9 samples"));
}

// The shard is put back while the reader pauses for the second time: the third attempt finds it whole.
TEST_F(RangeReaderTest, RetryingReadsAShardThatComesBack) {
  write(3, true);
  settings_.on_error = OnError::kRetry;
  const std::string whole = *base::read_file(settings_.urls[1]);
  folder_.write("s1.tar", whole.substr(0, 100));
  std::vector<double> paused;
  settings_.pause = [&](double seconds) {
    paused.push_back(seconds);
    if (paused.size() == 2) folder_.write("s1.tar", whole);
  };
  RangeReader reader(settings_, options(1));
  RawSample sample;
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(*reader.next(sample));
  const auto found = reader.next(sample);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ(sample.key, "k10");
  EXPECT_EQ(sample.failed, nullptr);
  EXPECT_THAT(paused, ::testing::ElementsAre(0.1, 1));
}

TEST_F(RangeReaderTest, RetryingGivesUpAfterTheLastPause) {
  write(3, true);
  settings_.on_error = OnError::kRetry;
  folder_.write("s1.tar", "damaged");
  std::vector<double> paused;
  settings_.pause = [&](double seconds) { paused.push_back(seconds); };
  auto range = options(1);
  range.segments = {{1, 0, 1}};
  EXPECT_EQ(read(std::move(range)), Keys{"bad"});
  EXPECT_THAT(paused, ::testing::ElementsAre(0.1, 1, 10));
}

}  // namespace
}  // namespace sluice::data
