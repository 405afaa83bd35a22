// What is asked of a bucket before and while a set is read.
#include "sluice/data/shards/shard_facts.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "sluice/base/formats/crc32c.h"
#include "sluice/base/log.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/test_bucket.h"
#include "sluice/data/test_dataset.h"

namespace sluice::data {
namespace {

using test::service;
using ::testing::HasSubstr;

class ShardFactsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    base::set_log_level(base::Level::kError);
    service().set_fault([this](const cloud::test::Request& request) {
      // Lists have no object's name in their path.
      if (request.path.find("/o/") != std::string::npos) ++requests_;
      return std::optional<cloud::test::Reply>();
    });
  }
  void TearDown() override {
    service().set_fault(nullptr);
    base::set_log_level(base::Level::kInfo);
  }

  // Puts shards of 4 samples into a folder of the bucket, with indexes and sizes.json; returns their URLs.
  std::vector<std::string> shards(const std::string& folder, int count) {
    std::vector<std::string> urls;
    ShardSizes sizes;
    for (int shard = 0; shard < count; ++shard) {
      test::Members members;
      ShardIndex index;
      for (int i = 0; i < 4; ++i) {
        const std::string name = "k" + std::to_string(10'000 + 4 * shard + i) + ".txt";
        members.emplace_back(name, "text");
        index.samples.push_back({{"txt", static_cast<std::uint64_t>(512 + 1024 * i), 4, name}});
      }
      const std::string bytes = test::archive(members), name = "s" + std::to_string(1000 + shard);
      service().bucket.put(folder + "/" + name + ".tar", bytes);
      service().bucket.put(folder + "/" + name + ".idx", *format_index(index));
      sizes[name + ".tar"] = ShardRecord(4, {bytes.size(), base::crc32c(bytes.data(), bytes.size())});
      urls.push_back("gs://b/" + folder + "/" + name + ".tar");
    }
    service().bucket.put(folder + "/sizes.json", format_sizes(sizes));
    return urls;
  }

  std::atomic<int> requests_{0};
};

TEST_F(ShardFactsTest, NothingIsRequestedForAShardThatIsListedAndCounted) {
  for (const int count : {32, 192}) {
    const auto urls = shards("n" + std::to_string(count), count);
    requests_ = 0;
    const auto facts = learn_shards(urls);
    ASSERT_TRUE(facts) << facts.error().what();
    EXPECT_LE(requests_, 2) << "sizes.json only, with " << count << " shards";
    EXPECT_EQ(facts->total, 4 * count);
    // The same facts as by requests, which are cheaper than a list for few shards.
    const auto asked = learn_shards({urls.begin(), urls.begin() + 4});
    ASSERT_TRUE(asked) << asked.error().what();
    EXPECT_GT(requests_, 4);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(facts->versions[i], asked->versions[i]);
      EXPECT_NE(facts->versions[i], "");
      EXPECT_TRUE(facts->starts[i].empty());
      ASSERT_TRUE(facts->places->load(i));
      EXPECT_EQ(facts->starts_of(i), asked->starts_of(i));
      EXPECT_EQ(facts->end_of_last(i), asked->end_of_last(i));
    }
    // Up to the first batch, only the shards that it is from are opened.
    requests_ = 0;
    const auto stream = WebDataset(urls)
                            .to_tuple("txt", "__key__")
                            .shuffle(8)
                            .interleave(8)
                            .batch(8)
                            .workers(1)
                            .prefetch(1)
                            .open();
    ASSERT_TRUE(stream->next());
    EXPECT_LE(requests_, 150) << count << " shards";
    std::vector<std::string> keys;
    for (auto batch = stream->next(); batch; batch = stream->next())
      keys.insert(keys.end(), batch->keys.begin(), batch->keys.end());
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(std::unique(keys.begin(), keys.end()) - keys.begin(), 4 * count - 8);
  }
}

// 8 bytes a sample are held of the shards that were opened, not of the set.
TEST_F(ShardFactsTest, PlacesOfLocalSamplesAreHeldOnceTheirShardIsOpened) {
  const test::Folder folder;
  for (const int count : {32, 192}) {
    const std::string name = "n" + std::to_string(count);
    std::vector<std::string> urls;
    for (const std::string& url : shards(name, count)) {
      const std::string file = url.substr(std::string("gs://b/").size());
      for (const char* ending : {".tar", ".idx"}) {
        const std::string path = file.substr(0, file.size() - 4) + ending;
        folder.write(path, service().bucket.get(path)->bytes);
      }
      urls.push_back(folder.path(file));
    }
    const auto held = [](const ShardFacts& facts) {
      std::size_t places = 0;
      for (std::size_t i = 0; i < facts.sizes.size(); ++i) places += facts.starts_of(i).size();
      return places;
    };
    const auto with_indexes = learn_shards(urls);
    ASSERT_TRUE(with_indexes);
    EXPECT_EQ(held(*with_indexes), static_cast<std::size_t>(4 * count)) << "nothing else counts the samples";
    folder.write(name + "/sizes.json", service().bucket.get(name + "/sizes.json")->bytes);
    const auto facts = learn_shards(urls);
    ASSERT_TRUE(facts) << facts.error().what();
    EXPECT_EQ(facts->total, 4 * count);
    EXPECT_EQ(facts->fingerprint, with_indexes->fingerprint);
    EXPECT_EQ(facts->content, with_indexes->content);
    EXPECT_EQ(held(*facts), 0u) << count << " shards";
    ASSERT_TRUE(facts->places->load(7));
    EXPECT_EQ(held(*facts), 4u);
    EXPECT_EQ(facts->starts_of(7), with_indexes->starts_of(7));
    const auto stream = WebDataset(urls).to_tuple("txt", "__key__").shuffle(8).interleave(8).batch(8).open();
    std::vector<std::string> keys;
    for (auto batch = stream->next(); batch; batch = stream->next())
      keys.insert(keys.end(), batch->keys.begin(), batch->keys.end());
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(std::unique(keys.begin(), keys.end()) - keys.begin(), 4 * count);
  }
}

TEST_F(ShardFactsTest, AnIndexOfAnotherShardIsAnError) {
  const auto urls = shards("old", 16);
  ShardIndex index;
  index.samples.push_back({{"txt", 512, 4, "k1.txt"}});
  service().bucket.put("old/s1003.idx", *format_index(index));
  const auto facts = learn_shards(urls);
  ASSERT_TRUE(facts);
  const auto status = facts->places->load(3);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what(), HasSubstr("s1003.idx has 1 sample: sizes.json next to it says 4"));
}

TEST_F(ShardFactsTest, ABucketThatMayNotBeListedIsAskedForEachShard) {
  const auto urls = shards("closed", 16);
  service().set_fault([](const cloud::test::Request& request) -> std::optional<cloud::test::Reply> {
    if (request.path.find("/o/") == std::string::npos) return cloud::test::Reply{403};
    return std::nullopt;
  });
  const auto facts = learn_shards(urls);
  ASSERT_TRUE(facts) << facts.error().what();
  EXPECT_EQ(facts->total, 64);
  EXPECT_EQ(facts->starts[15].size(), 4u);
}

}  // namespace
}  // namespace sluice::data
