// `data update` of a set in a bucket, and what is left of it when a request is refused in the middle.
#include <gmock/gmock.h>

#include <atomic>

#include "sluice/data/shards/group.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/test_bucket.h"
#include "sluice/data/test_support.h"
#include "sluice/data/tools/inspect.h"
#include "sluice/data/tools/pack.h"
#include "sluice/data/tools/update.h"

namespace sluice::data {
namespace {

using test::service;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class UpdateBucketTest : public ::testing::Test {
 protected:
  // Three shards of two samples in gs://b/NAME.
  void make_set(const std::string& name) {
    service();
    place_ = "gs://b/" + name;
    for (int i = 0; i < 6; ++i) folder_.write("in/c/" + std::to_string(i) + ".png", test::gray_png(10 + i));
    PackOptions options;
    options.input = folder_.path("in");
    options.shards.folder = place_;
    options.shards.shard_size = 2;
    options.shuffle = false;
    const auto report = pack(options);
    ASSERT_TRUE(report) << report.error().what();
    urls_ = report->shards.shards;
  }
  base::Result<UpdateReport> update() { return update_samples({urls_, folder_.path("new"), true, {}}); }
  std::vector<std::string> classes() const {
    std::vector<std::string> found;
    for (const std::string& url : urls_) {
      ShardReader reader(*open_source(url), Wanted{});
      RawSample sample;
      while (base::value_or_throw(reader.next(sample))) found.push_back(sample.find("cls")->bytes);
    }
    return found;
  }
  // Neither damaged nor without the checksum that `sizes.json` has of each shard.
  bool is_sound() const {
    VerifyOptions options;
    options.urls = urls_;
    const auto report = verify(options);
    return report && report->failures() == 0 && report->unsummed == 0;
  }

  test::Folder folder_;
  std::string place_;
  std::vector<std::string> urls_;
};

TEST_F(UpdateBucketTest, OnlyTheShardsConcernedAreReplaced) {
  make_set("updated");
  const auto first = service().bucket.get("updated/train-0000.tar");
  folder_.write("new/0000003.cls", "7");
  folder_.write("new/0000005.json", "{}");
  const auto report = update();
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_EQ(report->replaced, 1);
  EXPECT_EQ(report->added, 1);
  EXPECT_THAT(report->shards, ElementsAre(urls_.at(1), urls_.at(2)));
  EXPECT_THAT(classes(), ElementsAre("0", "0", "0", "7", "0", "0"));
  EXPECT_TRUE(is_sound());
  EXPECT_EQ(service().bucket.get("updated/train-0000.tar")->generation, first->generation);
  EXPECT_EQ((*read_index(urls_.at(2)))->samples.at(1).size(), 3u);
}

// Whichever of its objects cannot be written, every shard can be read, and no index or checksum is another
// shard's.
TEST_F(UpdateBucketTest, OneThatWasRefusedIsFinishedByTheSameCall) {
  for (const std::string refused : {"train-0001.tar", "train-0001.idx", "train-0002.tar", "sizes.json"}) {
    SCOPED_TRACE(refused);
    const std::string name =
        "without-" + refused.substr(0, refused.find('.')) + refused.substr(refused.size() - 3);
    make_set(name);
    folder_.write("new/0000003.cls", "7");
    folder_.write("new/0000004.cls", "8");
    std::atomic<int> let_through{refused == "sizes.json" ? 1 : 0};  // that nothing has a checksum
    service().set_fault([&](const cloud::test::Request& request) -> std::optional<cloud::test::Reply> {
      if (request.parameter("name") != name + "/" + refused || let_through-- > 0) return std::nullopt;
      return cloud::test::Reply{403, {}, "no"};
    });
    const auto stopped = update();
    ASSERT_FALSE(stopped);
    EXPECT_THAT(stopped.error().what(), HasSubstr(refused));
    service().set_fault(nullptr);
    const std::string third = refused == "train-0001.tar" ? "0" : "7";
    const std::string fourth = refused == "sizes.json" ? "8" : "0";
    EXPECT_THAT(classes(), ElementsAre("0", "0", "0", third, fourth, "0"));
    VerifyOptions options;
    options.urls = urls_;
    const auto half = verify(options);
    ASSERT_TRUE(half) << half.error().what();
    EXPECT_EQ(half->failures(), 0);
    EXPECT_GT(half->unsummed, 0);
    ASSERT_TRUE(update());
    EXPECT_THAT(classes(), ElementsAre("0", "0", "0", "7", "8", "0"));
    EXPECT_TRUE(is_sound());
  }
}

}  // namespace
}  // namespace sluice::data
