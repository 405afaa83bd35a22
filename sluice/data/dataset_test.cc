#include "sluice/data/dataset.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "sluice/data/image.h"
#include "sluice/data/test_support.h"

namespace sluice::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string png_of(int value) {
  Pixels pixels{4, 4, 3, std::vector<std::uint8_t>(48)};
  for (std::size_t i = 0; i < 48; ++i)
    pixels.bytes[i] = static_cast<std::uint8_t>(value + static_cast<int>(i));
  return *encode_png(pixels);
}

// Shards s-0.tar … with `each` samples; keys and labels count on through the shards.
class DatasetTest : public ::testing::Test {
 protected:
  std::string shards(int count, int each, const test::Members& extra = {}) {
    int next = 0;
    for (int shard = 0; shard < count; ++shard) {
      test::Members members;
      for (int i = 0; i < each; ++i, ++next) {
        const std::string key = "k" + std::to_string(1000 + next);
        members.emplace_back(key + ".png", png_of(next));
        members.emplace_back(key + ".cls", std::to_string(next % 10));
      }
      if (shard + 1 == count) members.insert(members.end(), extra.begin(), extra.end());
      folder_.write("s-" + std::to_string(shard) + ".tar", test::archive(members));
    }
    return folder_.path("s-{0.." + std::to_string(count - 1) + "}.tar");
  }

  static WebDataset dataset(const std::string& urls) {
    return WebDataset(urls).images("jpg;png").labels("cls").batch(8);
  }

  static std::vector<Batch> all(Stream& stream) {
    std::vector<Batch> batches;
    while (auto batch = stream.next()) batches.push_back(std::move(*batch));
    return batches;
  }
  static std::vector<std::string> keys(const std::vector<Batch>& batches) {
    std::vector<std::string> result;
    for (const Batch& batch : batches) result.insert(result.end(), batch.keys.begin(), batch.keys.end());
    return result;
  }
  // Keys, pixels and labels of an epoch in one string.
  static std::string everything(Stream& stream) {
    std::string text;
    for (const Batch& batch : all(stream)) {
      text += base::join(batch.keys, ",") + "|";
      text.append(batch.image.data<char>(), batch.image.bytes());
      text.append(batch.label.data<char>(), batch.label.bytes());
    }
    return text;
  }

  test::Folder folder_;
};

TEST_F(DatasetTest, HandsOutEverySampleInOrder) {
  const WebDataset data = dataset(shards(3, 7));
  EXPECT_EQ(data.size(), 21);
  EXPECT_EQ(data.batches(), 3);
  const auto batches = all(*data.open());
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_EQ(batches[0].image.describe(), "uint8 [8, 3, 4, 4]");
  EXPECT_EQ(batches[0].label.describe(), "int64 [8]");
  EXPECT_EQ(batches[2].image.describe(), "uint8 [5, 3, 4, 4]");
  EXPECT_EQ(batches[2].index, 2);
  for (int i = 0; i < 21; ++i) {
    const Batch& batch = batches[static_cast<std::size_t>(i / 8)];
    EXPECT_EQ(batch.keys[static_cast<std::size_t>(i % 8)], "k" + std::to_string(1000 + i));
    EXPECT_EQ(batch.label.data<std::int64_t>()[i % 8], i % 10);
    // Channel 2 of the second pixel is byte 5 of the picture.
    EXPECT_EQ(batch.image.data<std::uint8_t>()[(i % 8) * 48 + 2 * 16 + 1], i + 5);
  }
}

TEST_F(DatasetTest, TheOrderDependsOnSeedAndEpochAlone) {
  const WebDataset data = dataset(shards(5, 20)).shuffle(30).seed(7).crop(4, 1).flip();
  const std::string once = everything(*WebDataset(data).workers(1).open(3));
  for (const int workers : {1, 2, 5}) {
    for (const int prefetch : {1, 7})
      EXPECT_EQ(everything(*WebDataset(data).workers(workers).prefetch(prefetch).open(3)), once);
  }
  EXPECT_NE(everything(*data.open(4)), once);
  EXPECT_NE(everything(*WebDataset(data).seed(8).open(3)), once);
  const auto order = keys(all(*WebDataset(data).keep().open(3)));
  EXPECT_EQ(std::set<std::string>(order.begin(), order.end()).size(), 100u);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(DatasetTest, ShufflingMovesSamplesAcrossShards) {
  const WebDataset data = dataset(shards(10, 10)).shuffle(50).keep();
  const auto order = keys(all(*data.open(0)));
  std::set<char> first_shards;  // the tens digit of a key is its shard
  for (std::size_t i = 0; i < 16; ++i) first_shards.insert(order[i][3]);
  EXPECT_GE(first_shards.size(), 4u);
}

TEST_F(DatasetTest, PartsTogetherMakeTheGlobalBatch) {
  const std::string urls = shards(4, 11);  // 44 samples
  for (const std::int64_t parts : {1, 2, 4}) {
    const WebDataset data = dataset(urls).shuffle(20).seed(1).pad().batch(8 / parts);
    std::vector<std::vector<Batch>> streams;
    for (std::int64_t part = 0; part < parts; ++part) streams.push_back(all(*data.open(2, part, parts)));
    std::vector<std::string> order;
    for (std::size_t k = 0; k < 6; ++k) {
      double weight = 0;
      for (const auto& stream : streams) {
        ASSERT_EQ(stream.size(), 6u);
        EXPECT_EQ(stream[k].size(), 8 / parts);
        EXPECT_EQ(stream[k].global_count, k < 5 ? 8 : 4);
        weight += stream[k].weight;
        order.insert(order.end(), stream[k].keys.begin(), stream[k].keys.end());
      }
      EXPECT_NEAR(weight, static_cast<double>(parts), 1e-6);
    }
    EXPECT_EQ(order, keys(all(*dataset(urls).shuffle(20).seed(1).keep().batch(8).open(2))))
        << parts << " parts";
    EXPECT_EQ(data.batches(parts), 6);
  }
}

TEST_F(DatasetTest, RemaindersAreDroppedPaddedOrKept) {
  const WebDataset data = dataset(shards(2, 9));  // 18 samples
  EXPECT_EQ(data.remainder(), Remainder::kKeep);
  EXPECT_EQ(WebDataset(data).shuffle(5).remainder(), Remainder::kDrop);
  EXPECT_EQ(all(*WebDataset(data).drop_last().open()).size(), 2u);
  EXPECT_EQ(WebDataset(data).drop_last().batches(), 2);
  const auto kept = all(*WebDataset(data).keep().open());
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept[2].size(), 2);
  const auto padded = all(*WebDataset(data).pad().open());
  ASSERT_EQ(padded.size(), 3u);
  EXPECT_EQ(padded[2].size(), 8);
  EXPECT_EQ(padded[2].count, 2);
  EXPECT_EQ(padded[2].image.data<std::uint8_t>()[2 * 48], 0);
  std::int64_t real = 0;
  for (const Batch& batch : padded)
    for (std::int64_t i = 0; i < batch.size(); ++i) real += batch.mask.data<bool>()[i] ? 1 : 0;
  EXPECT_EQ(real, 18);
  // Eight parts of 8 samples: the last five have padding alone, in the same shapes.
  for (std::int64_t part = 0; part < 8; ++part) {
    const auto batches = all(*WebDataset(data).pad().open(0, part, 8));
    ASSERT_EQ(batches.size(), 1u);
    EXPECT_EQ(batches[0].image.describe(), "uint8 [8, 3, 4, 4]");
    EXPECT_EQ(batches[0].count, part < 2 ? 8 : part == 2 ? 2 : 0);
  }
  EXPECT_THAT(test::thrown([&] { WebDataset(data).drop_last().batch(100).open()->next(); }),
              HasSubstr("the 18 samples of an epoch do not fill one batch of 100"));
}

TEST_F(DatasetTest, SkippingGoesOnWhereAnotherStreamStopped) {
  const WebDataset data = dataset(shards(3, 20)).shuffle(25).crop(4, 2).flip();
  const auto whole = all(*data.open(1, 0, 2));
  for (std::size_t skip = 0; skip <= whole.size() + 1; ++skip) {
    const auto rest = all(*data.open(1, 0, 2, static_cast<std::int64_t>(skip)));
    ASSERT_EQ(rest.size(), skip > whole.size() ? 0 : whole.size() - skip);
    if (rest.empty()) continue;
    EXPECT_EQ(rest[0].index, static_cast<std::int64_t>(skip));
    EXPECT_EQ(rest[0].keys, whole[skip].keys);
    EXPECT_EQ(std::memcmp(rest[0].image.data<void>(), whole[skip].image.data<void>(), rest[0].image.bytes()),
              0);
  }
}

TEST_F(DatasetTest, TuplesAndMapsAsInWebdataset) {
  const std::string urls = shards(1, 6, {{"z.png", png_of(0)}, {"z.cls", "5"}});
  const auto data = WebDataset(urls)
                        .decode("rgb8")
                        .to_tuple("jpg;png", "cls")
                        .map([](Sample& sample) { std::get<std::int64_t>(sample.fields[1]) *= 2; })
                        .map([](Sample sample) {
                          sample.fields.emplace_back(0.5);
                          return sample;
                        })
                        .batched(7);
  const auto batches = all(*data.open());
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0].columns.size(), 3u);
  EXPECT_EQ(batches[0].image.describe(), "uint8 [7, 3, 4, 4]");
  EXPECT_EQ(batches[0].label.data<std::int64_t>()[6], 10);
  EXPECT_EQ(batches[0].columns[2].array.describe(), "float64 [7]");
  const auto bytes = WebDataset(urls).to_tuple("cls").batched(7).open()->next();
  EXPECT_THAT(bytes->columns[0].text, ElementsAre("0", "1", "2", "3", "4", "5", "5"));
}

TEST_F(DatasetTest, ErrorsComeInOrderAndStay) {
  const WebDataset data = dataset(shards(2, 10, {{"x.png", "broken"}, {"x.cls", "1"}})).workers(3);
  for (int round = 0; round < 5; ++round) {
    const auto stream = data.open();
    EXPECT_EQ(stream->next()->count, 8);
    EXPECT_EQ(stream->next()->count, 8);
    for (int again = 0; again < 2; ++again)
      EXPECT_THAT(test::thrown([&] { stream->next(); }),
                  HasSubstr("s-1.tar: member x.png (header at byte 20480)"));
  }
}

TEST_F(DatasetTest, FaultsAreNamed) {
  const std::string urls = shards(1, 10);
  EXPECT_THAT(test::thrown([&] { all(*dataset(urls).classes(9).open()); }),
              HasSubstr("class 9 is out of range"));
  EXPECT_THAT(
      test::thrown([&] { all(*WebDataset(urls).images("jpg").open()); }),
      HasSubstr("sample k1000 (at byte 0): expected a member with the extension jpg, found png, cls"));
  EXPECT_THAT(test::thrown(
                  [&] { dataset(urls).map([](Sample&) { throw std::runtime_error("no"); }).open()->next(); }),
              HasSubstr("sample k1000 (at byte 0): in map(): no"));
  EXPECT_THAT(test::thrown([&] { WebDataset(folder_.path("none.tar")).images("png").open(); }),
              HasSubstr("no such shard"));
  EXPECT_THAT(test::thrown([&] { WebDataset(urls).open(); }), HasSubstr("which members make a sample"));
  EXPECT_THAT(test::thrown([&] { WebDataset(urls).images("png", "bgr"); }),
              HasSubstr("image specification 'bgr'"));
  EXPECT_THAT(test::thrown([&] { WebDataset(urls).batch(0); }), HasSubstr("a batch of 0"));
  EXPECT_THAT(test::thrown([&] { WebDataset(urls).to_tuple("cls").flip().open(); }),
              HasSubstr("need pictures"));
  EXPECT_THAT(test::thrown([&] { dataset(urls).open(0, 2, 2); }), HasSubstr("a part of 2"));
  const std::string empty = folder_.write("empty.tar", test::archive({{"README", "x"}}));
  EXPECT_THAT(test::thrown([&] { dataset(empty).open()->next(); }), HasSubstr("no samples"));
  const std::string cut =
      folder_.write("cut.tar", test::archive({{"a.png", png_of(1)}, {"a.cls", "1"}}).substr(0, 700));
  EXPECT_THAT(test::thrown([&] { all(*dataset(cut).open()); }),
              HasSubstr("inside member a.png (header at byte 0)"));
  EXPECT_THAT(test::thrown([&] { (void)dataset(cut).size(); }), HasSubstr("cut off"));
}

TEST_F(DatasetTest, AStreamMayBeClosedAtAnyTime) {
  const WebDataset data = dataset(shards(4, 50)).shuffle(20).workers(3).prefetch(2).batch(4);
  for (int taken = 0; taken < 12; ++taken) {
    const auto stream = data.open(taken);
    for (int i = 0; i < taken; ++i) EXPECT_TRUE(stream->next());
    if (taken % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(taken));
  }
}

TEST_F(DatasetTest, OnlyTheAskedBatchesAreAhead) {
  const WebDataset data = dataset(shards(10, 20)).workers(2).prefetch(2).batch(4);
  std::atomic<int> decoded{0};
  const auto stream = WebDataset(data).map([&](Sample&) { ++decoded; }).open();
  ASSERT_TRUE(stream->next());
  for (int i = 0; i < 100; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_LE(decoded, 4 * 3);  // the one that was taken, and two ahead
  const Statistics statistics = stream->statistics();
  EXPECT_EQ(statistics.batches, 1);
  EXPECT_GT(statistics.reader_idle, 0.0);
  EXPECT_GT(statistics.bytes, 0);
}

TEST_F(DatasetTest, SettingsOfCopiesAreTheirOwn) {
  const WebDataset data = dataset(shards(1, 4)).normalize({0.5F}, {0.25F});
  WebDataset other = data;
  other.batch(2).shuffle(10);
  EXPECT_EQ(data.batch_size(), 8);
  EXPECT_FALSE(data.shuffled());
  EXPECT_TRUE(other.shuffled());
  EXPECT_THAT(other.mean(), ElementsAre(0.5F));
  EXPECT_EQ(other.size(), 4);
}

}  // namespace
}  // namespace sluice::data
