#include "sluice/data/order/range_reader.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <set>

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
    std::vector<std::string> urls;
    for (int shard = 0; shard < shards; ++shard) {
      test::Members members;
      for (int i = 0; i < 10; ++i)
        members.emplace_back("k" + std::to_string(shard) + std::to_string(i) + ".txt",
                             std::string(3000, 'x'));
      urls.push_back(folder_.write("s" + std::to_string(shard) + ".tar", test::archive(members)));
    }
    auto facts = *learn_shards(urls);
    settings_.urls = std::make_shared<const std::vector<std::string>>(urls);
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
      auto bytes = *base::read_file((*settings_.urls)[0]);
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
  const std::string whole = *base::read_file((*settings_.urls)[1]);
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

// A shard without an index is passed over once, however many streams share it.
TEST_F(RangeReaderTest, ManyStreamsOfAShardWithoutAnIndexReadItTwice) {
  for (const std::int64_t streams : {8, 64}) {
    test::Members members;
    for (int i = 0; i < 512; ++i)
      members.emplace_back("k" + std::to_string(1000 + i) + ".txt", std::string(700, 'x'));
    const std::vector<std::string> urls = {folder_.write("one.tar", test::archive(members))};
    auto facts = *learn_shards(urls);
    facts.starts.assign(1, {});
    settings_.urls = std::make_shared<const std::vector<std::string>>(urls);
    settings_.facts = std::make_shared<const ShardFacts>(facts);
    settings_.bytes = 0;
    std::vector<std::unique_ptr<RangeReader>> readers;
    for (std::int64_t range = 0; range < streams; ++range) {
      RangeOptions options;
      // As in an epoch, where the ranges are in no order.
      options.segments = {{0, (range * 5 + 3) % streams * (512 / streams), 512 / streams}};
      readers.push_back(std::make_unique<RangeReader>(settings_, std::move(options)));
    }
    std::set<std::string> keys;
    RawSample sample;
    for (std::int64_t i = 0; i < 512; ++i) {
      ASSERT_TRUE(*readers[static_cast<std::size_t>(i % streams)]->next(sample));
      keys.insert(sample.key);
    }
    EXPECT_EQ(keys.size(), 512u);
    EXPECT_LE(settings_.bytes, 2.3 * 512 * 1536) << streams << " streams";
  }
}

std::string gzipped(std::string bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<unsigned char*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<unsigned char*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

// The same for a shard packed with gzip, here in two members: it is unpacked about twice, not by each stream
// from its start.
TEST_F(RangeReaderTest, ManyStreamsOfAPackedShardUnpackItTwice) {
  constexpr int kSamples = 2048;
  test::Members members;
  for (int i = 0; i < kSamples; ++i)
    members.emplace_back("k" + std::to_string(10'000 + i) + ".txt",
                         std::to_string(i) + std::string(4000, static_cast<char>('a' + i % 20)));
  const std::string archive = test::archive(members);
  const std::string packed =
      gzipped(archive.substr(0, archive.size() / 3)) + gzipped(archive.substr(archive.size() / 3));
  for (const std::int64_t streams : {8, 32}) {
    const std::vector<std::string> urls = {folder_.write("one.tar.gz", packed)};
    folder_.write("sizes.json", "{\"one.tar.gz\": 2048}");
    settings_.urls = std::make_shared<const std::vector<std::string>>(urls);
    settings_.facts = std::make_shared<const ShardFacts>(*learn_shards(urls));
    const std::uint64_t before = UnpackPlaces::unpacked_bytes();
    std::vector<std::unique_ptr<RangeReader>> readers;
    std::vector<std::int64_t> next;
    for (std::int64_t range = 0; range < streams; ++range) {
      RangeOptions options;
      options.segments = {{0, (range * 5 + 3) % streams * (kSamples / streams), kSamples / streams}};
      next.push_back(options.segments.front().first);
      readers.push_back(std::make_unique<RangeReader>(settings_, std::move(options)));
    }
    RawSample sample;
    for (std::int64_t i = 0; i < kSamples; ++i) {
      const auto range = static_cast<std::size_t>(i % streams);
      const auto found = readers[range]->next(sample);
      ASSERT_TRUE(found) << found.error().what();
      const std::int64_t number = next[range]++;
      ASSERT_EQ(sample.key, "k" + std::to_string(10'000 + number));
      ASSERT_EQ(sample.fields[0].bytes, members[static_cast<std::size_t>(number)].second);
    }
    EXPECT_LE(UnpackPlaces::unpacked_bytes() - before, 3 * archive.size()) << streams << " streams";
  }
}

// A stream that begins in the middle of an epoch reads the samples that wait in its shuffle buffer, not what
// is between them.
TEST_F(RangeReaderTest, WhatIsBetweenWaitingSamplesIsNotRead) {
  constexpr std::int64_t kSample = 512 + (150 << 10);
  test::Members members;
  for (int i = 0; i < 200; ++i)
    members.emplace_back("k" + std::to_string(1000 + i) + ".txt", std::string(150 << 10, 'x'));
  const std::vector<std::string> urls = {folder_.write("one.tar", test::archive(members))};
  settings_.urls = std::make_shared<const std::vector<std::string>>(urls);
  settings_.facts = std::make_shared<const ShardFacts>(*learn_shards(urls));
  const auto read_from = [&](std::int64_t skip) {
    RangeOptions options;
    options.segments = {{0, 0, 200}};
    options.capacity = 20;
    options.random = base::Random({1});
    options.skip = skip;
    settings_.bytes = 0;
    RangeReader reader(settings_, std::move(options));
    Keys keys;
    RawSample sample;
    while (*reader.next(sample)) {
      if (keys.empty()) {
        EXPECT_LE(settings_.bytes, 22 * kSample) << "before the first sample, from " << skip;
      }
      keys.push_back(sample.key);
    }
    return keys;
  };
  const Keys all = read_from(0);
  ASSERT_EQ(all.size(), 200u);
  for (const std::int64_t skip : {20, 160})
    EXPECT_EQ(read_from(skip), Keys(all.begin() + skip, all.end())) << skip;
}

}  // namespace
}  // namespace sluice::data
