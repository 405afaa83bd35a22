#include "sluice/data/tools/copy.h"

#include <gmock/gmock.h>

#include <atomic>

#include "sluice/base/text/strings.h"
#include "sluice/data/test_bucket.h"
#include "sluice/data/test_support.h"
#include "sluice/data/tools/shard_set.h"

namespace sluice::data {
namespace {

using test::service;
using testing::ElementsAre;
using testing::HasSubstr;

base::Result<CopyReport> copy(const std::vector<std::string>& from, const std::string& to,
                              bool overwrite = false) {
  CopyOptions options;
  options.from = from;
  options.to = to;
  options.overwrite = overwrite;
  return copy_files(options);
}

std::string object(const std::string& name) {
  const auto found = service().bucket.get(name);
  return found ? found->bytes : "nothing";
}

TEST(Copy, ThereAndBack) {
  service();
  const test::Folder folder;
  const std::string a = folder.write("a.tar", std::string(100'000, 'a')), b = folder.write("b.tar", "b");
  auto report = copy({a, b}, "gs://b/there");
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_EQ(report->files, 2);
  EXPECT_EQ(report->bytes, 100'001u);
  EXPECT_EQ(object("there/b.tar"), "b");
  ASSERT_TRUE(copy({"gs://b/there/a.tar"}, "gs://b/copies/"));
  ASSERT_TRUE(copy({"gs://b/there/b.tar"}, "gs://b/one"));
  EXPECT_EQ(object("one"), "b");
  ASSERT_TRUE(copy({"gs://b/copies/a.tar", "gs://b/there/b.tar"}, folder.path("new/deep")));
  EXPECT_EQ(*base::read_file(folder.path("new/deep/a.tar")), std::string(100'000, 'a'));
  const std::string page = service().server.address() + "/storage/v1/b/b/o/one?alt=media";
  ASSERT_TRUE(copy({page}, "gs://b/from-page"));
  EXPECT_EQ(object("from-page"), "b");
  ASSERT_TRUE(copy({a}, folder.path("c.tar")));
  EXPECT_EQ(*base::read_file(folder.path("c.tar")), std::string(100'000, 'a'));
}

TEST(Copy, NamesOfAStoreLeadNowhereElse) {
  const test::Folder folder;
  for (const char* name : {"evil/..", "evil/.", "evil/a\nb"}) {
    service().bucket.put(name, "x");
    const auto report = copy(std::vector{std::string("gs://b/") + name}, folder.path("in/deep/"), true);
    ASSERT_FALSE(report) << name;
    EXPECT_THAT(report.error().what(), HasSubstr("does not lie below")) << name;
  }
}

TEST(Copy, NothingIsReplacedWithoutBeingAsked) {
  service().bucket.put("kept", "old");
  const test::Folder folder;
  const std::string file = folder.write("kept", "new");
  EXPECT_THAT(copy({file}, "gs://b/kept").error().what(),
              HasSubstr("gs://b/kept is there already: --overwrite"));
  EXPECT_EQ(object("kept"), "old");
  EXPECT_EQ(copy({"gs://b/kept"}, file).error().code(), Code::kAlreadyExists);
  EXPECT_EQ(*base::read_file(file), "new");
  ASSERT_TRUE(copy({file}, "gs://b/kept", true));
  EXPECT_EQ(object("kept"), "new");
}

TEST(Copy, WhatCannotBeCopied) {
  service().bucket.put("damaged", "text");
  service().bucket.lie_about_crc("damaged", 1);
  const test::Folder folder;
  EXPECT_THAT(copy({"gs://b/damaged"}, folder.path("x")).error().what(), HasSubstr("do not fit its crc32c"));
  EXPECT_FALSE(base::path_exists(folder.path("x")));
  EXPECT_EQ(copy({"gs://b/missing"}, folder.path("x")).error().code(), Code::kNotFound);
  EXPECT_THAT(copy({"pipe:true"}, "x").error().what(), HasSubstr("expected a file or an object"));
  EXPECT_THAT(copy({"a/x", "b/x"}, folder.path()).error().what(), HasSubstr("two of the files would become"));
  EXPECT_THAT(copy({folder.path()}, "gs://b/").error().what(), HasSubstr("expected a file or an object"));
  EXPECT_THAT(copy({"x"}, "https://host/x").error().what(), HasSubstr("expected a path, gs://"));
}

base::Result<ShardReport> write(const std::string& folder, std::int64_t count, bool overwrite = false) {
  ShardOptions options;
  options.folder = folder;
  options.shard_size = 2;
  options.overwrite = overwrite;
  const auto produce = [](std::int64_t i) -> base::Result<NewSample> {
    return NewSample{sample_key(i), {{"txt", "x"}}};
  };
  return write_shards(count, produce, options);
}

TEST(ShardUpload, SetsGoIntoBuckets) {
  service().bucket.put("set/test-0000.tar", "x");
  service().bucket.put("set/sizes.json", R"({"test-0000.tar": 9})");
  const auto report = write("gs://b/set", 5);
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_THAT(report->shards, ElementsAre("gs://b/set/train-0000.tar", "gs://b/set/train-0001.tar",
                                          "gs://b/set/train-0002.tar"));
  for (const char* part : {"\"test-0000.tar\": 9", "\"train-0000.tar\": 2", "\"train-0002.tar\": 1"})
    EXPECT_THAT(object("set/sizes.json"), HasSubstr(part));
  EXPECT_THAT(write("gs://b/set", 3).error().what(), HasSubstr("already holds 3 shards of this set"));
  // A shorter set leaves nothing of the longer one.
  ASSERT_TRUE(write("gs://b/set/", 3, true));
  EXPECT_EQ(object("set/train-0002.tar"), "nothing");
  EXPECT_THAT(object("set/sizes.json"), Not(HasSubstr("train-0002")));
  ASSERT_TRUE(write_lines("gs://b/set/classes.txt", {"cat", "dog"}));
  EXPECT_EQ(object("set/classes.txt"), "cat\ndog\n");
}

// What was uploaded is there for the next run, of the same samples alone.
TEST(ShardUpload, ARunThatEndedWithAnErrorGoesOn) {
  std::atomic<int> produced{0};
  const auto write_part = [&](const std::string& fingerprint) {
    ShardOptions options;
    options.folder = "gs://b/stopped";
    options.shard_size = 2;
    options.workers = 1;
    options.fingerprint = fingerprint;
    produced = 0;
    const auto produce = [&](std::int64_t i) -> base::Result<NewSample> {
      if (++produced; i == 3 && fingerprint == "bad") return base::fail(Code::kDataLoss, "no image");
      return NewSample{sample_key(i), {{"txt", "x"}}};
    };
    return write_shards(7, produce, options);
  };
  EXPECT_THAT(write_part("bad").error().what(),
              HasSubstr("no image; the uploaded shards are in gs://b/stopped/.train.partial/"));
  EXPECT_EQ(object("stopped/sizes.json"), "nothing");
  service().set_fault([](const cloud::test::Request& request) -> std::optional<cloud::test::Reply> {
    if (request.parameter("name") != "stopped/.train.partial/train-0002.tar") return std::nullopt;
    return cloud::test::Reply{403, {}, "no"};
  });
  EXPECT_FALSE(write_part("good"));
  EXPECT_GE(produced, 6);  // nothing of the other samples
  service().set_fault(nullptr);
  const auto report = write_part("good");
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_LE(produced, 3);
  EXPECT_GE(report->continued, 2);
  EXPECT_THAT(object("stopped/sizes.json"), HasSubstr("\"train-0003.tar\": 1"));
  for (const std::string& name : service().bucket.names())
    EXPECT_THAT(name, Not(HasSubstr("stopped/.train.partial"))) << name;
}

// An upload that fails in the middle: no sizes.json says that the set is whole.
TEST(ShardUpload, ASetThatIsNotWholeDoesNotLookSo) {
  service().set_fault([](const cloud::test::Request& request) -> std::optional<cloud::test::Reply> {
    if (request.parameter("name") != "part/.train.partial/train-0002.tar") return std::nullopt;
    return cloud::test::Reply{403, {}, "no"};
  });
  EXPECT_FALSE(write("gs://b/part", 5));
  service().set_fault(nullptr);
  for (const std::string& name : service().bucket.names())
    EXPECT_FALSE(base::starts_with(name, "part/")) << name;
}

}  // namespace
}  // namespace sluice::data
