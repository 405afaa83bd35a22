#include "sluice/data/dataset.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "sluice/data/decode/npy.h"
#include "sluice/data/mixture.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/test_dataset.h"

namespace sluice::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
    // Channel 2 of the second pixel is byte 5 of the image.
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

// The keys of each replica's batches over some epochs, whatever number of hosts feeds the replicas.
TEST_F(DatasetTest, TheOrderDoesNotDependOnHostsOrThreads) {
  constexpr std::int64_t kReplicas = 8, kRows = 3;
  for (const auto& [count, each] : {std::pair(12, 37), std::pair(3, 100), std::pair(1, 200)}) {
    const std::string urls = shards(count, each, {}, "num");
    for (const Remainder remainder : {Remainder::kDrop, Remainder::kPad, Remainder::kCarry}) {
      WebDataset data = WebDataset(urls).to_tuple("num").shuffle(100).seed(5).batch(kRows);
      if (remainder == Remainder::kPad) data.pad();
      if (remainder == Remainder::kCarry) data.carry();
      std::string first;
      for (const std::int64_t hosts : {1, 2, 4, 8}) {
        for (const int threads : {1, 4}) {
          std::vector<std::string> replicas(kReplicas);
          std::int64_t bytes = 0;
          for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
            for (std::int64_t host = 0; host < hosts; ++host) {
              const auto stream =
                  WebDataset(data).workers(threads).open({epoch, host, hosts, kReplicas / hosts, 0});
              std::int64_t batches = 0;
              while (auto batch = stream->next()) {
                ++batches;
                ASSERT_EQ(batch->size(), kRows * kReplicas / hosts);
                auto key = batch->keys.begin();
                for (std::int64_t row = 0; row < batch->size(); ++row)
                  replicas[static_cast<std::size_t>(host * kReplicas / hosts + row / kRows)] +=
                      batch->mask.data<bool>()[row] ? *key++ + " " : "- ";
              }
              EXPECT_EQ(batches, data.batches(kReplicas, epoch));
              bytes += stream->statistics().bytes;
            }
          }
          const std::string keys = base::join(replicas, "\n");
          if (first.empty()) first = keys;
          ASSERT_EQ(keys, first) << hosts << " hosts, " << threads << " threads, " << count << " shards";
          // All hosts together read the data once.
          std::int64_t stored = 0;
          for (const std::string& url : data.urls())
            stored += static_cast<std::int64_t>(stat_source(url)->size);
          EXPECT_LE(static_cast<double>(bytes), 1.05 * 3 * static_cast<double>(stored));
        }
      }
    }
  }
}

TEST_F(DatasetTest, GivesSamplesByNumberAndKey) {
  const std::string urls = shards(3, 7);
  for (const bool indexed : {false, true}) {
    if (indexed)
      for (const std::string& url : WebDataset(urls).urls())
        base::value_or_throw(write_index(url, base::value_or_throw(index_shard(url))));
    const WebDataset data = dataset(urls).map([](Sample& sample) { sample.key += "!"; });
    for (const std::int64_t i : {20, 0, 6, 7, 13}) {
      const Sample sample = data[i];
      EXPECT_EQ(sample.key, "k" + std::to_string(1000 + i) + "!");
      EXPECT_EQ(std::get<std::int64_t>(sample.fields[1]), i % 10);
      EXPECT_EQ(std::get<Image>(sample.fields[0]).pixels.data<std::uint8_t>()[5], i + 5);
      EXPECT_EQ(data.find("k" + std::to_string(1000 + i)), i);
    }
    EXPECT_EQ(data.find("k999"), std::nullopt);
    EXPECT_THAT(test::thrown([&] { static_cast<void>(data[21]); }),
                HasSubstr("sample 21 of 21: expected 0 to 20"));
  }
  EXPECT_THAT(test::thrown([] { static_cast<void>(dataset("pipe:true")[0]); }), HasSubstr("only once"));
}

// Every sample comes once, in each epoch or (carried over) in the long run, whatever the sizes of the shards.
TEST_F(DatasetTest, NothingIsLostOrRepeated) {
  folder_.write("u-0.tar", test::archive({{"a0.cls", "0"}}));
  folder_.write("u-1.tar", test::archive({}));
  test::Members many;
  for (int i = 0; i < 70; ++i) many.emplace_back("b" + std::to_string(100 + i) + ".cls", "1");
  folder_.write("u-2.tar", test::archive(many));
  const std::string urls = folder_.path("u-{0..2}.tar");
  for (const bool shuffle : {false, true}) {
    WebDataset data = WebDataset(urls).to_tuple("cls").batch(2).pad();
    if (shuffle) data.shuffle(20);
    for (const std::int64_t parts : {1, 2, 32}) {
      std::multiset<std::string> seen;
      for (std::int64_t part = 0; part < parts; ++part)
        for (const auto& key : keys(all(*data.open(4, part, parts)))) seen.insert(key);
      EXPECT_EQ(seen.size(), 71u);
      EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 71u);
    }
  }
  // 71 samples in batches of 8: after 8 epochs everything has come eight times.
  std::map<std::string, int> counts;
  const WebDataset carried = WebDataset(urls).to_tuple("cls").batch(4).shuffle(20).carry();
  for (std::int64_t epoch = 0; epoch < 8; ++epoch)
    for (std::int64_t part = 0; part < 2; ++part)
      for (const auto& key : keys(all(*carried.open(epoch, part, 2)))) ++counts[key];
  EXPECT_EQ(counts.size(), 71u);
  for (const auto& [key, count] : counts) EXPECT_EQ(count, 8) << key;
}

TEST_F(DatasetTest, StreamsMustFitTheReplicas) {
  const WebDataset by_default = dataset(shards(2, 50)).shuffle(10).batch(1);
  for (const std::int64_t replicas : {3, 6, 12, 24}) {
    std::set<std::string> seen;
    for (std::int64_t part = 0; part < replicas; ++part)
      for (const auto& key : keys(all(*by_default.open(0, part, replicas))))
        EXPECT_TRUE(seen.insert(key).second);
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(100 / replicas * replicas));
  }
  const WebDataset data = WebDataset(by_default).interleave(64);
  EXPECT_THAT(test::thrown([&] { data.open(0, 0, 24); }),
              HasSubstr("64 ranges cannot be dealt to 24 replicas: expected a multiple of them; the next is "
                        "--streams 72 (in C++ interleave(72))"));
  EXPECT_THAT(test::thrown([&] { data.open({0, 0, 1, 128, 0}); }), HasSubstr("interleave(128)"));
  EXPECT_EQ(all(*WebDataset(data).interleave(72).batch(1).open(0, 0, 24)).size(), 4u);
}

TEST_F(DatasetTest, TheOriginalOrderTakesShardsAsTheFirstJobDid) {
  const std::string urls = shards(8, 5);
  const WebDataset data = WebDataset(urls).to_tuple("cls").batch(2).original(2).keep();
  // Replica 1 of 2 has shards 1 3 5 7; its workers 1 5 and 3 7.
  const auto batches = all(*data.open(0, 1, 2));
  EXPECT_EQ(static_cast<std::int64_t>(batches.size()), data.batches(2));
  ASSERT_EQ(batches.size(), 10u);
  EXPECT_THAT(batches[0].keys, ElementsAre("k1005", "k1006"));
  EXPECT_THAT(batches[1].keys, ElementsAre("k1015", "k1016"));
  EXPECT_THAT(batches[4].keys, ElementsAre("k1009", "k1025"));
  const WebDataset shuffled = WebDataset(data).shuffle(4);
  const auto whole = keys(all(*shuffled.open(3, 0, 2)));
  EXPECT_NE(whole, keys(all(*shuffled.open(4, 0, 2))));
  const auto rest = keys(all(*shuffled.open(3, 0, 2, 4)));
  EXPECT_EQ(rest,
            std::vector<std::string>(whole.end() - static_cast<std::ptrdiff_t>(rest.size()), whole.end()));
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
  // Eight parts of 8 rows.
  for (std::int64_t part = 0; part < 8; ++part) {
    const auto batches = all(*WebDataset(data).pad().open(0, part, 8));
    ASSERT_EQ(batches.size(), 1u);
    EXPECT_EQ(batches[0].image.describe(), "uint8 [8, 3, 4, 4]");
    EXPECT_EQ(batches[0].count, part < 2 ? 3 : 2);  // 18 samples, dealt one by one
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

// Twenty parts for three samples: most have padding alone, in the same shapes.
TEST_F(DatasetTest, PartsWithoutSamplesGetPadding) {
  const WebDataset data = dataset(shards(1, 3)).pad();
  for (std::int64_t part = 0; part < 20; ++part) {
    const auto batches = all(*data.open(0, part, 20));
    ASSERT_EQ(batches.size(), 1u);
    EXPECT_EQ(batches[0].image.describe(), "uint8 [8, 3, 4, 4]");
    EXPECT_EQ(batches[0].count, part < 3 ? 1 : 0);
    EXPECT_FLOAT_EQ(batches[0].weight, part < 3 ? 20.0F / 3 : 0);
  }
}

TEST_F(DatasetTest, AStateGoesOnWithOtherWorkersAndParts) {
  const WebDataset data = dataset(shards(7, 31)).shuffle(60).seed(3).crop(4, 2).flip().batch(4);
  const OpenOptions two{2, 1, 2, 1, 0};
  for (const bool carry : {false, true}) {
    WebDataset chosen = data;
    if (carry) chosen.carry();
    const auto whole = all(*chosen.open(two));
    for (std::size_t taken = 0; taken <= whole.size(); ++taken) {
      const auto stream = chosen.open(two);
      for (std::size_t i = 0; i < taken; ++i) stream->next();
      const std::string state = stream->state();
      EXPECT_EQ(state, chosen.state({2, 0, 1, 2, static_cast<std::int64_t>(taken)}));
      // One host with both replicas: its second block of rows is what part 1 of 2 has.
      const auto rest = all(*WebDataset(chosen).workers(3).resume(state, {0, 0, 1, 2, 0}));
      ASSERT_EQ(rest.size(), whole.size() - taken);
      for (std::size_t k = 0; k < rest.size(); ++k) {
        const std::size_t half = rest[k].image.bytes() / 2;
        EXPECT_EQ(std::vector<std::string>(rest[k].keys.begin() + 4, rest[k].keys.end()),
                  whole[taken + k].keys);
        EXPECT_EQ(std::memcmp(rest[k].image.data<char>() + half, whole[taken + k].image.data<char>(), half),
                  0);
      }
    }
  }
  const std::string state = data.state(two);
  EXPECT_THAT(test::thrown([&] { WebDataset(data).seed(4).resume(state, two); }),
              HasSubstr("in another order: seed is 4 now and was 3. Set this"));
  EXPECT_THAT(test::thrown([&] { WebDataset(data).batch(5).resume(state, two); }),
              HasSubstr("global-batch is 10 now and was 8"));
  EXPECT_THAT(test::thrown([&] { WebDataset(data).interleave(32).resume(state, two); }),
              HasSubstr("buffer is 2 now and was 1; streams is 32 now and was 64"));
  EXPECT_THAT(test::thrown([&] { WebDataset(data).shuffle(10000).resume(state, two); }),
              HasSubstr("buffer is 157 now and was 1"));
  EXPECT_THAT(test::thrown([&] { dataset(shards(7, 30)).shuffle(60).batch(4).seed(3).resume(state, two); }),
              HasSubstr("samples is 210 now and was 217; shards is"));
  EXPECT_THAT(test::thrown([&] { data.resume("nonsense", two); }), HasSubstr("no whole number 'epoch'"));
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
}

// What is not an image needs no decode(), as Python's decode() without arguments has it.
TEST_F(DatasetTest, WithoutDecodeImagesStayBytes) {
  const std::string point = npy_file("|u1", {2}, "\x05\x07");
  const std::string packed =
      test::from_base64("H4sIAAAAAAACAytITM5OTQEAELT2IQYAAAA=");  // "packed" by Python's gzip
  const std::string urls = folder_.write("t.tar", test::archive({{"b.x.npy", point},
                                                                 {"b.cls", "3"},
                                                                 {"b.txt", "word"},
                                                                 {"b.json", "{\"n\": 1}"},
                                                                 {"b.note.txt.gz", packed},
                                                                 {"b.mp", "\x81\xa1n\x02"},
                                                                 {"b.png", png_of(0)},
                                                                 {"b.bin", "\xff"},
                                                                 {"b.pkl", "\x80"},
                                                                 {"b.bad.npy", "no array"}}));
  WebDataset set(urls);
  set.to_tuple("x.npy", "cls", "txt", "json", "note.txt.gz", "mp", "jpg;png", "bin", "pkl").batch(1);
  const auto batch = set.open()->next();
  EXPECT_EQ(batch->columns[0].array.describe(), "uint8 [1, 2]");
  EXPECT_EQ(batch->columns[0].array.data<std::uint8_t>()[1], 7);
  EXPECT_EQ(batch->label.data<std::int64_t>()[0], 3);
  const std::vector<std::string> texts{"word",    "{\"n\": 1}", "packed", "{\"n\":2}",
                                       png_of(0), "\xff",       "\x80"};
  for (std::size_t i = 0; i < texts.size(); ++i)
    EXPECT_THAT(batch->columns[i + 2].text, ElementsAre(texts[i])) << i;
  EXPECT_EQ(std::get<Array>(set[0].fields[0]).describe(), "uint8 [2]");
  EXPECT_THAT(test::thrown([&] { WebDataset(urls).to_tuple("bad.npy").batch(1).open()->next(); }),
              HasSubstr("b.bad.npy"));
  EXPECT_THAT(test::thrown([&] { WebDataset(urls).to_tuple("cls").classes(3).batch(1).open()->next(); }),
              HasSubstr("class 3 is out of range"));
}

// Bytes are handed on without becoming samples; a map function has them take the way of what is decoded.
TEST_F(DatasetTest, BytesAreThoseOfSamples) {
  const std::string urls = shards(2, 10, {{"x.png", "no label"}, {"y.num", "7"}, {"y.png", ""}}, "num");
  const auto told = [](Stream& stream) {
    std::string text;
    for (const Batch& batch : all(stream)) {
      text += base::str(batch.index, " ", batch.count, " ", batch.global_count, " ", batch.weight, " ",
                        batch.image.defined(), batch.label.defined(), base::join(batch.keys, ","), " ",
                        base::join(batch.sources, ","), "\n");
      for (std::int64_t i = 0; i < batch.size(); ++i) {
        text += base::str(batch.mask.data<bool>()[i]);
        for (const Column& column : batch.columns) text += "|" + column.text[static_cast<std::size_t>(i)];
      }
    }
    return text;
  };
  const auto bytes = WebDataset(urls).batch(8).on_error(OnError::kSkip).max_bad(1);
  for (const auto& data :
       {WebDataset(bytes).to_tuple("png", "num").pad(), WebDataset(bytes).to_tuple("png", "num").keep(),
        WebDataset(bytes).to_tuple("jpg;png", "png").shuffle(9).keep(),
        WebDataset(bytes).to_tuple("num;png")}) {
    const auto decoded = WebDataset(data).map([](Sample&) {});
    for (const std::int64_t part : {0, 1})
      EXPECT_EQ(told(*data.open(1, part, 2)), told(*decoded.open(1, part, 2)));
  }
  const auto mixed = [&](const WebDataset& data) {
    return told(*Mix({{data, 0.5}, {WebDataset(data).seed(3), 0.5}}).open({}));
  };
  const auto png = WebDataset(bytes).to_tuple("png").shuffle(10).interleave(4);
  EXPECT_EQ(mixed(png), mixed(WebDataset(png).map([](Sample&) {})));
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
              HasSubstr("need images"));
  EXPECT_THAT(test::thrown([&] { dataset(urls).open(0, 2, 2); }), HasSubstr("a part of 2"));
  const std::string empty = folder_.write("empty.tar", test::archive({{"README", "x"}}));
  EXPECT_THAT(test::thrown([&] { dataset(empty).open()->next(); }), HasSubstr("no samples"));
  const std::string cut =
      folder_.write("cut.tar", test::archive({{"a.png", png_of(1)}, {"a.cls", "1"}}).substr(0, 700));
  EXPECT_THAT(test::thrown([&] { all(*dataset(cut).open()); }),
              HasSubstr("inside member a.png (header at byte 0)"));
  EXPECT_THAT(test::thrown([&] { (void)dataset(cut).size(); }), HasSubstr("cut off"));
}

// Counts samples in map(), on the decoding threads.
class Counter {
 public:
  int add() {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
    return ++count_;
  }
  void wait_for(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

// Closed while threads are at work, and when all that may be ahead is decoded.
TEST_F(DatasetTest, AStreamMayBeClosedAtAnyTime) {
  constexpr int kRows = 4, kPrefetch = 2;
  const WebDataset data = dataset(shards(4, 50)).shuffle(20).workers(3).prefetch(kPrefetch).batch(kRows);
  for (int taken = 0; taken < 12; ++taken) {
    Counter decoded;
    const auto stream = WebDataset(data).map([&](Sample&) { decoded.add(); }).open(taken);
    for (int i = 0; i < taken; ++i) EXPECT_TRUE(stream->next());
    if (taken % 3 == 0) decoded.wait_for((taken + kPrefetch) * kRows);
  }
}

TEST_F(DatasetTest, OnlyTheAskedBatchesAreAhead) {
  constexpr int kRows = 4, kPrefetch = 2, kBatches = 50;
  const WebDataset data = dataset(shards(10, 20)).workers(2).prefetch(kPrefetch).batch(kRows);
  Counter decoded;
  std::atomic<int> asked{0};
  const auto stream = WebDataset(data)
                          .map([&](Sample&) {
                            const int allowed = (asked + kPrefetch) * kRows;
                            EXPECT_LE(decoded.add(), allowed);
                          })
                          .open();
  for (int batch = 0; batch < kBatches; ++batch) {
    decoded.wait_for(std::min(batch + kPrefetch, kBatches) * kRows);  // so many are decoded unasked
    ++asked;
    ASSERT_TRUE(stream->next());
  }
  EXPECT_FALSE(stream->next());
  const Statistics statistics = stream->statistics();
  EXPECT_EQ(statistics.batches, kBatches);
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
