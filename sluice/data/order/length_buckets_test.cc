// Batches by length against a slow reference, which knows the order of the samples from a set without
// buckets.
#include "sluice/data/order/length_buckets.h"

#include <gmock/gmock.h>

#include <map>

#include "sluice/data/mixture.h"
#include "sluice/data/test_dataset.h"

namespace sluice::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Keys = std::vector<std::string>;

std::string npy(const std::vector<std::int32_t>& values) {
  std::string header =
      base::str("{'descr': '<i4', 'fortran_order': False, 'shape': (", values.size(), ",), }");
  header.append(117 - header.size(), ' ');
  header += '\n';
  std::string bytes = "\x93NUMPY\x01";
  bytes += std::string{'\0', static_cast<char>(header.size()), '\0'} + header;
  return bytes.append(reinterpret_cast<const char*>(values.data()), 4 * values.size());
}

const std::vector<LengthShape> kShapes = {{3, 8}, {4, 4}, {2, 16}};

class LengthBucketsTest : public DatasetTest {
 protected:
  // Shards of 30 samples each, of 1 to `longest` tokens: 100, 101, …
  std::string texts(int count, int longest = 16) {
    base::Random random({3});
    for (int shard = 0; shard < count; ++shard) {
      test::Members members;
      for (int i = 0; i < 30; ++i) {
        const std::string key = "k" + std::to_string(1000 + 30 * shard + i);
        std::vector<std::int32_t> tokens(1 + random.below(static_cast<std::uint64_t>(longest)));
        for (std::size_t token = 0; token < tokens.size(); ++token)
          tokens[token] = static_cast<std::int32_t>(100 + token);
        lengths_[key] = static_cast<std::int64_t>(tokens.size());
        members.emplace_back(key + ".npy", npy(tokens));
        members.emplace_back(key + ".cls", std::to_string(i % 10));
      }
      folder_.write("s-" + std::to_string(shard) + ".tar", test::archive(members));
    }
    return folder_.path("s-{0.." + std::to_string(count - 1) + "}.tar");
  }
  static WebDataset plain(const std::string& urls) {
    return WebDataset(urls).decode("rgb8").to_tuple("npy", "cls").shuffle(24).interleave(4).seed(5).batch(4);
  }
  static WebDataset bucketed(const std::string& urls, LengthOptions options = {}) {
    return plain(urls).bucket_by_length("npy", kShapes, std::move(options));
  }

  struct Expected {
    std::int64_t length = 0;
    std::vector<Keys> replicas;
  };
  // The definition, slowly.
  std::vector<Expected> slowly(const std::string& urls, std::size_t replicas, std::int64_t epoch, bool pad) {
    Keys order;
    for (const std::string& key : keys(all(*plain(urls).batch(1).keep().map(drop_tokens).open(epoch))))
      order.push_back(key);
    std::vector<LengthShape> shapes = {{4, 4}, {3, 8}, {2, 16}};
    std::vector<std::vector<Keys>> waiting(3, std::vector<Keys>(replicas));
    std::vector<Expected> batches;
    const auto give = [&](std::size_t bucket) {
      Expected& batch = batches.emplace_back(Expected{shapes[bucket].length, {}});
      for (Keys& queue : waiting[bucket]) {
        const auto end = queue.begin() + std::min<std::ptrdiff_t>(shapes[bucket].rows, std::ssize(queue));
        batch.replicas.emplace_back(queue.begin(), end);
        queue.erase(queue.begin(), end);
      }
    };
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::size_t bucket = 0;
      while (bucket < 2 && shapes[bucket].length < lengths_[order[i]]) ++bucket;
      waiting[bucket][i % replicas].push_back(order[i]);
      bool full = true;
      for (const Keys& queue : waiting[bucket]) full = full && std::ssize(queue) >= shapes[bucket].rows;
      if (full) give(bucket);
    }
    for (std::size_t bucket = 0; bucket < 3 && !pad; ++bucket)
      for (;;) {
        // What waits for this shape or a shorter one, the longest first.
        std::vector<Keys> together(replicas);
        bool full = true;
        for (std::size_t replica = 0; replica < replicas; ++replica) {
          for (std::size_t from = bucket + 1; from-- > 0;)
            together[replica].insert(together[replica].end(), waiting[from][replica].begin(),
                                     waiting[from][replica].end());
          full = full && std::ssize(together[replica]) >= shapes[bucket].rows;
        }
        if (!full) break;
        Expected& batch = batches.emplace_back(Expected{shapes[bucket].length, {}});
        for (std::size_t replica = 0; replica < replicas; ++replica) {
          Keys& given = together[replica];
          given.resize(static_cast<std::size_t>(shapes[bucket].rows));
          for (auto& queues : waiting)
            std::erase_if(queues[replica],
                          [&](const std::string& key) { return std::ranges::count(given, key); });
          batch.replicas.push_back(std::move(given));
        }
      }
    for (std::size_t bucket = 0; bucket < 3 && pad; ++bucket)
      while (std::any_of(waiting[bucket].begin(), waiting[bucket].end(),
                         [](const Keys& queue) { return !queue.empty(); }))
        give(bucket);
    return batches;
  }
  static void drop_tokens(Sample& sample) { sample.fields[0] = std::int64_t{0}; }

  // A part's batches are those of its replicas, padded.
  void expect_batches(const std::vector<Batch>& found, const std::vector<Expected>& expected,
                      std::size_t part, std::size_t replicas, std::size_t skip) {
    ASSERT_EQ(found.size() + skip, expected.size());
    for (std::size_t k = 0; k < found.size(); ++k) {
      const Expected& wanted = expected[k + skip];
      Keys keys;
      std::int64_t together = 0;
      for (std::size_t r = 0; r < wanted.replicas.size(); ++r) {
        together += std::ssize(wanted.replicas[r]);
        if (r / replicas == part)
          keys.insert(keys.end(), wanted.replicas[r].begin(), wanted.replicas[r].end());
      }
      EXPECT_EQ(found[k].keys, keys) << k;
      EXPECT_EQ(found[k].index, static_cast<std::int64_t>(k + skip));
      EXPECT_EQ(found[k].global_count, together);
      const Array& tokens = found[k].columns[0].array;
      ASSERT_EQ(tokens.shape()[1], wanted.length);
      std::size_t key = 0;
      for (std::int64_t row = 0; row < found[k].size(); ++row) {
        const std::int64_t length = found[k].mask.data<bool>()[row] ? lengths_[keys[key++]] : 0;
        EXPECT_EQ(found[k].lengths.data<std::int64_t>()[row], length);
        for (std::int64_t i = 0; i < wanted.length; ++i)
          ASSERT_EQ(tokens.data<std::int32_t>()[row * wanted.length + i], i < length ? 100 + i : 0);
      }
    }
  }

  std::map<std::string, std::int64_t> lengths_;
};

TEST_F(LengthBucketsTest, BatchesAreThoseOfTheDefinitionOnAnyNumberOfHosts) {
  const std::string urls = texts(4);
  for (const bool pad : {false, true}) {
    auto dataset = bucketed(urls);
    if (pad) dataset.pad();
    for (const std::size_t replicas : {1, 2, 4}) {
      for (const std::int64_t epoch : {0, 3}) {
        const auto expected = slowly(urls, replicas, epoch, pad);
        EXPECT_EQ(dataset.batches(static_cast<std::int64_t>(replicas), epoch), std::ssize(expected));
        for (std::size_t hosts = 1; hosts <= replicas; hosts *= 2)
          for (std::size_t part = 0; part < hosts; ++part)
            for (const std::size_t skip :
                 {std::size_t{0}, std::size_t{1}, expected.size() / 2, expected.size() - 1}) {
              OpenOptions options;
              options.epoch = epoch;
              options.part = static_cast<std::int64_t>(part);
              options.parts = static_cast<std::int64_t>(hosts);
              options.replicas = static_cast<std::int64_t>(replicas / hosts);
              options.skip_batches = static_cast<std::int64_t>(skip);
              expect_batches(all(*dataset.open(options)), expected, part, replicas / hosts, skip);
            }
      }
    }
  }
}

TEST_F(LengthBucketsTest, EverySampleComesOnce) {
  const std::string urls = texts(8);
  Keys seen = keys(all(*bucketed(urls).pad().open(0)));
  std::sort(seen.begin(), seen.end());
  Keys names;
  for (const auto& [key, length] : lengths_) names.push_back(key);
  EXPECT_EQ(seen, names);
}

// Each replica gets as many samples, or one more, and gives as many: what is left is less than its batch.
TEST_F(LengthBucketsTest, AnEpochLeavesOutLessThanOneBatchOfTheLongestShape) {
  for (const std::int64_t replicas : {1, 3, 8, 32}) {
    LengthBuckets buckets({{64, 128}, {32, 256}, {16, 512}}, replicas);
    base::Random random({1});
    std::int64_t left = 10'000, in_full_buckets = 0;
    for (std::int64_t i = 0; i < 10'000; ++i) {
      const std::size_t bucket = buckets.bucket_of(1 + static_cast<std::int64_t>(random.below(512)));
      if (buckets.add(i % replicas, bucket)) in_full_buckets += replicas * buckets.shapes()[bucket].rows;
    }
    left -= in_full_buckets;
    LengthBuckets::Counts given(3, std::vector<std::int64_t>(static_cast<std::size_t>(replicas)));
    while (const auto bucket = buckets.fill(given)) {
      for (std::size_t replica = 0; replica < given[0].size(); ++replica) {
        std::int64_t rows = 0;
        for (std::size_t from = 0; from < 3; ++from) {
          EXPECT_TRUE(from <= *bucket || given[from][replica] == 0) << "a sample that is too long";
          rows += given[from][replica];
        }
        ASSERT_EQ(rows, buckets.shapes()[*bucket].rows);
        left -= rows;
      }
      for (auto& counts : given) std::fill(counts.begin(), counts.end(), 0);
    }
    EXPECT_LE(left, 16 * replicas);
    EXPECT_GE(10'000 - in_full_buckets, 3 * left);  // what was left in the buckets
  }
}

TEST_F(LengthBucketsTest, WhatAnEpochLeavesOutIsCounted) {
  const std::string urls = texts(8);
  testing::internal::CaptureStderr();
  for (std::int64_t part = 0; part < 4; ++part) bucketed(urls).open(0, part, 4)->next();
  const std::string said = testing::internal::GetCapturedStderr();  // at the start
  std::size_t given = 0;
  for (std::int64_t part = 0; part < 4; ++part) given += keys(all(*bucketed(urls).open(0, part, 4))).size();
  EXPECT_THAT(said, HasSubstr(base::str(lengths_.size() - given, " of the ", lengths_.size(),
                                        " samples of epoch 0")));
  EXPECT_EQ(said.find("samples of epoch 0"), said.rfind("samples of epoch 0"));  // by one host
}

TEST_F(LengthBucketsTest, InTheShardsOrder) {
  const std::string urls = texts(2);
  const auto ordered = [&] {
    return WebDataset(urls).decode("rgb8").to_tuple("npy").bucket_by_length("npy", {{2, 4}, {2, 16}});
  };
  Keys shorter, longer;
  for (const auto& [key, length] : lengths_) (length <= 4 ? shorter : longer).push_back(key);
  Keys found_shorter, found_longer;
  for (const Batch& batch : all(*ordered().open()))
    for (const std::string& key : batch.keys)
      (lengths_[key] <= 4 ? found_shorter : found_longer).push_back(key);
  EXPECT_EQ(found_shorter, shorter);
  EXPECT_EQ(found_longer, longer);
  // As many batches on one host with two replicas as on two hosts.
  EXPECT_EQ(all(*ordered().open({0, 0, 1, 2})).size(), all(*ordered().open({0, 1, 2, 1})).size());
}

TEST_F(LengthBucketsTest, ResumingIsExactAndNeedsTheSameShapes) {
  const std::string urls = texts(4);
  const auto stream = bucketed(urls).open(1, 1, 2);
  for (int i = 0; i < 5; ++i) stream->next();
  const std::string state = stream->state();
  OpenOptions place;
  place.part = 1;
  place.parts = 2;
  const auto rest = keys(all(*stream));
  EXPECT_EQ(keys(all(*bucketed(urls).resume(state, place))), rest);
  auto other = plain(urls).bucket_by_length("npy", {{3, 8}, {4, 4}, {1, 16}});
  EXPECT_THAT(test::thrown([&] { other.resume(state, place); }),
              HasSubstr("shapes is 4x4,3x8,1x16 now and was 4x4,3x8,2x16"));
  EXPECT_THAT(test::thrown([&] { bucketed(urls).resume(state, {}); }),
              HasSubstr("replicas is 1 now and was 2"));
}

TEST_F(LengthBucketsTest, WhatIsTooLongIsAnErrorOrCutAndCounted) {
  const std::string urls = texts(2, 30);
  EXPECT_THAT(test::thrown([&] { bucketed(urls).size(); }),
              HasSubstr("expected 0 to 16, the longest of the shapes; or let what is longer be cut"));
  std::int64_t longer = 0;
  for (const auto& [key, length] : lengths_) longer += length > 16 ? 1 : 0;
  auto cutting = bucketed(urls, {.too_long = TooLong::kCut}).pad();
  const auto stream = cutting.open(0);
  std::int64_t rows = 0;
  for (const Batch& batch : all(*stream)) {
    rows += batch.count;
    for (std::int64_t row = 0; row < batch.size(); ++row)
      EXPECT_LE(batch.lengths.data<std::int64_t>()[row], batch.columns[0].array.shape()[1]);
  }
  EXPECT_EQ(rows, 60);
  EXPECT_EQ(stream->statistics().cut, longer);
}

TEST_F(LengthBucketsTest, PaddingAndLengthsOfOnesOwn) {
  const std::string path = folder_.write("t.tar", test::archive({{"a.txt", "ab"},
                                                                 {"a.cls", "1"},
                                                                 {"b.txt", "cdef"},
                                                                 {"b.cls", "2"},
                                                                 {"c.txt", "g"},
                                                                 {"c.cls", "3"}}));
  const auto tokens = [](Sample& sample) {
    const std::string text = std::get<std::string>(sample.fields[0]);
    const auto length = static_cast<std::int64_t>(text.size());
    Array ids(ElementType::kInt64, {length}), weights(ElementType::kFloat32, {length, 2});
    for (std::int64_t i = 0; i < length; ++i) ids.data<std::int64_t>()[i] = text[static_cast<std::size_t>(i)];
    std::fill_n(weights.data<float>(), 2 * length, 1.0F);
    sample.fields = {std::move(ids), std::move(weights), sample.fields[1]};
  };
  LengthOptions options;
  options.length = [](std::string_view bytes) { return static_cast<std::int64_t>(bytes.size()); };
  options.padding = {-100, 0.5};
  auto dataset = WebDataset(path).decode("rgb8").to_tuple("txt", "cls").map(tokens).pad();
  const auto batches = all(*dataset.bucket_by_length("txt", parse_shapes("2x3, 1x4"), options).open());
  ASSERT_THAT(batches, SizeIs(2));
  const Batch& first = batches[0].columns[0].array.shape()[1] == 3 ? batches[0] : batches[1];
  EXPECT_THAT(first.keys, ElementsAre("a", "c"));
  const auto* ids = first.columns[0].array.data<std::int64_t>();
  EXPECT_THAT(std::vector<std::int64_t>(ids, ids + 6), ElementsAre('a', 'b', -100, 'g', -100, -100));
  EXPECT_EQ(first.columns[1].array.shape(), (std::vector<std::int64_t>{2, 3, 2}));
  const auto* weights = first.columns[1].array.data<float>();
  EXPECT_THAT(std::vector<float>(weights, weights + 12),
              ElementsAre(1, 1, 1, 1, .5, .5, 1, 1, .5, .5, .5, .5));
  EXPECT_EQ(first.columns.back().array.shape(), std::vector<std::int64_t>{2});  // the lengths
}

TEST_F(LengthBucketsTest, TheExampleOfTheDocs) {
  // clang-format off
  // [buckets]
  auto train = WebDataset("texts-{000..099}.tar")
                   .shuffle(10'000)
                   .to_tuple("npy", "cls")
                   .bucket_by_length("npy", {{64, 128}, {32, 256}, {16, 512}}, {.padding = {0}});
  // [end]
  // clang-format on
  EXPECT_EQ(train.batch_size(), 64);
}

TEST_F(LengthBucketsTest, Mistakes) {
  EXPECT_EQ(parse_shapes("16x512,32x256"), (std::vector<LengthShape>{{16, 512}, {32, 256}}));
  for (const char* text : {"", "16", "16x", "x4", "16x512,", "0x4", "4x0", "axb", "4x4x4"})
    EXPECT_THAT(test::thrown([&] { parse_shapes(text); }), HasSubstr("expected ROWSxLENGTH")) << text;
  const std::string urls = texts(1);
  EXPECT_THAT(test::thrown([&] { plain(urls).bucket_by_length("npy", {}); }), HasSubstr("no shapes"));
  EXPECT_THAT(test::thrown([&] {
                plain(urls).bucket_by_length("npy", {{2, 8}, {4, 8}});
              }),
              HasSubstr("two shapes of length 8"));
  EXPECT_THAT(test::thrown([&] { bucketed(urls).carry().open(0); }), HasSubstr("carry()"));
  EXPECT_THAT(test::thrown([&] { bucketed(urls).original(1).open(0); }), HasSubstr("original()"));
  EXPECT_THAT(test::thrown([&] {
                Mix::join({bucketed(urls), bucketed(urls)});
              }),
              HasSubstr("bucket_by_length()"));
  EXPECT_THAT(test::thrown([&] { plain(urls).bucket_by_length("cls", kShapes).size(); }),
              HasSubstr("the length of its cls"));
  EXPECT_THAT(test::thrown([&] { plain(urls).bucket_by_length("txt", kShapes).size(); }),
              HasSubstr("expected a member txt, whose length is asked for"));
  EXPECT_THAT(test::thrown([&] {
                plain(urls).bucket_by_length("npy", {{100, 16}}).open(0)->next();
              }),
              HasSubstr("do not fill one batch of any shape"));
  EXPECT_THAT(test::thrown([&] { bucketed(urls).map(drop_tokens).open(0)->next(); }),
              HasSubstr("but no field of it is an array with that number of rows"));
}

}  // namespace
}  // namespace sluice::data
