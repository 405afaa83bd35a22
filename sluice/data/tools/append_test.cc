// Sets that grow and change: append, update, and runs that were stopped while they moved shards into place.
#include <gmock/gmock.h>

#include "sluice/data/dataset.h"
#include "sluice/data/shards/group.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/test_support.h"
#include "sluice/data/tools/inspect.h"
#include "sluice/data/tools/pack.h"
#include "sluice/data/tools/update.h"

namespace sluice::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Samples = std::vector<std::string>;

class AppendTest : public ::testing::Test {
 protected:
  void images(const std::string& place, int count, int level) {
    for (int i = 0; i < count; ++i)
      folder_.write(place + "/" + std::to_string(i) + ".png", test::gray_png(level + i));
  }
  base::Result<PackReport> run(const std::string& input, bool append) {
    PackOptions options;
    options.input = folder_.path(input);
    options.shards.folder = folder_.path("set");
    options.shards.shard_size = 4;
    options.shards.append = append;
    options.shuffle = false;
    return pack(options);
  }
  // "KEY:CLASS:LEVEL" of each sample of the set.
  Samples samples() {
    Samples result;
    for (const std::string& url : WebDataset(folder_.path("set/train-*.tar")).urls()) {
      ShardReader reader(*open_source(url), Wanted{});
      RawSample sample;
      while (*reader.next(sample)) {
        const auto pixels = decode_image(sample.find("png")->bytes, ColorModel::kGray);
        result.push_back(base::str(sample.key, ":", sample.find("cls")->bytes, ":", int{pixels->bytes[0]}));
      }
    }
    return result;
  }
  bool is_sound() {
    VerifyOptions options;
    options.urls = WebDataset(folder_.path("set/train-*.tar")).urls();
    const auto report = verify(options);
    return report && report->failures() == 0 && report->unsummed == 0;
  }

  test::Folder folder_;
};

TEST_F(AppendTest, ShardsKeysAndClassesGoOn) {
  images("in/b", 3, 10);
  images("in/d", 3, 20);
  ASSERT_TRUE(run("in", false));
  images("more/a", 2, 30);  // a class that is new
  images("more/d", 3, 40);
  const auto report = run("more", true);
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_EQ(report->shards.samples, 5);
  EXPECT_THAT(report->shards.shards,
              ElementsAre(folder_.path("set/train-0002.tar"), folder_.path("set/train-0003.tar")));
  EXPECT_THAT(report->classes, ElementsAre("b", "d", "a"));
  EXPECT_EQ(*base::read_file(folder_.path("set/classes.txt")), "b\nd\na\n");
  EXPECT_THAT(samples(), ElementsAre("0000000:0:10", "0000001:0:11", "0000002:0:12", "0000003:1:20",
                                     "0000004:1:21", "0000005:1:22", "0000006:2:30", "0000007:2:31",
                                     "0000008:1:40", "0000009:1:41", "0000010:1:42"));
  EXPECT_TRUE(is_sound());
  const auto sizes = read_sizes(folder_.path("set/any"));
  EXPECT_EQ((*sizes)->size(), 4u);
  EXPECT_EQ((*sizes)->at("train-0001.tar").samples, 2);
  EXPECT_EQ(WebDataset(folder_.path("set/train-*.tar")).images("png").labels("cls").size(), 11);
}

TEST_F(AppendTest, WhatThereIsNothingToAddTo) {
  images("in/b", 1, 10);
  EXPECT_THAT(run("in", true).error().what(), HasSubstr("there is no folder"));
  const std::string list = folder_.write("list.txt", "in/b/0.png 1\n");
  EXPECT_THAT(run("list.txt", true).error().what(), HasSubstr("has no shards named train-0000.tar …"));
  ASSERT_TRUE(run("list.txt", false));
  EXPECT_THAT(run("in", true).error().what(),
              HasSubstr("classes.txt is missing: the set's classes have no names, so Sluice cannot number "
                        "'b'; expected a list"));
  EXPECT_THAT(run("in", false).error().what(), HasSubstr("or add to them with 'sluice data append'"));
  ASSERT_TRUE(run("list.txt", true));
  EXPECT_THAT(samples(), ElementsAre("0000000:1:10", "0000001:1:10"));
}

// Names of other tools: the width of their numbers, and keys that are not numbers.
TEST_F(AppendTest, ASetOfAnotherTool) {
  folder_.write("set/train-000007.tar",
                test::archive({{"n01_x.png", test::gray_png(1)}, {"n01_x.cls", "0"}}));
  images("in", 1, 10);
  folder_.write("list.txt", "in/0.png 1\n");
  const auto report = run("list.txt", true);
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_THAT(report->shards.shards, ElementsAre(folder_.path("set/train-000008.tar")));
  EXPECT_THAT(samples(), ElementsAre("n01_x:0:1", "0000000:1:10"));
}

base::Result<ShardReport> write_numbers(const std::string& folder, int samples, bool append) {
  ShardOptions options;
  options.folder = folder;
  options.shard_size = 4;
  options.append = append;
  options.fingerprint = append ? "more" : "one";
  return write_shards(
      samples,
      [](std::int64_t i) -> base::Result<NewSample> {
        return NewSample{sample_key(i), {{"cls", std::to_string(i)}}};
      },
      options);
}

// What a kill leaves while shards are moved: some are at their place, the others in the hidden folder.
TEST_F(AppendTest, ARunThatWasStoppedWhileItMovedShardsEndsTheSame) {
  for (const bool append : {false, true}) {
    const std::string whole = append ? "whole-2" : "whole-1";
    ASSERT_TRUE(write_numbers(folder_.path(whole), 6, false));
    if (append) {
      ASSERT_TRUE(write_numbers(folder_.path(whole), 11, true));
    }
    const Samples names = *base::list_directory(folder_.path(whole));
    const int first = append ? 2 : 0, last = append ? 5 : 2;
    for (int moved = first; moved <= last; ++moved) {
      const std::string out = base::str("out-", append, moved);
      if (append) {
        ASSERT_TRUE(write_numbers(folder_.path(out), 6, false));
      }
      for (int shard = first; shard < last; ++shard)
        for (const char* ending : {".idx", ".tar"}) {
          const std::string name = base::str("train-000", shard, ending);
          folder_.write(base::str(out, shard < moved ? "/" : "/.train.partial/", name),
                        *base::read_file(folder_.path(whole + "/" + name)));
        }
      folder_.write(out + "/.train.partial/fingerprint",
                    append ? "more\n2 4 6\nmoving" : "one\n0 4 0\nmoving");
      const auto report = write_numbers(folder_.path(out), append ? 11 : 6, append);
      ASSERT_TRUE(report) << report.error().what();
      EXPECT_EQ(report->continued, last - first);
      EXPECT_EQ(*base::list_directory(folder_.path(out)), names);
      for (const std::string& name : names)
        EXPECT_EQ(*base::read_file(folder_.path(out + "/" + name)),
                  *base::read_file(folder_.path(whole + "/" + name)))
            << name << moved;
    }
  }
}

class UpdateTest : public AppendTest {
 protected:
  void SetUp() override {
    images("in/b", 6, 10);
    images("in/c", 6, 20);
    ASSERT_TRUE(run("in", false));
  }
  base::Result<UpdateReport> update() {
    UpdateOptions options;
    options.urls = WebDataset(folder_.path("set/train-*.tar")).urls();
    options.folder = folder_.path("new");
    return update_samples(options);
  }
};

TEST_F(UpdateTest, OnlyTheShardsConcernedAreWrittenAgain) {
  const std::string first = *base::read_file(folder_.path("set/train-0000.tar"));
  folder_.write("new/0000005.cls", "7");
  folder_.write("new/0000010.png", test::gray_png(99));
  folder_.write("new/0000010.json", "{}");
  const auto report = update();
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_EQ(report->samples, 2);
  EXPECT_EQ(report->replaced, 2);
  EXPECT_EQ(report->added, 1);
  EXPECT_THAT(report->shards,
              ElementsAre(folder_.path("set/train-0001.tar"), folder_.path("set/train-0002.tar")));
  EXPECT_EQ(*base::read_file(folder_.path("set/train-0000.tar")), first);
  EXPECT_THAT(samples(), ElementsAre("0000000:0:10", "0000001:0:11", "0000002:0:12", "0000003:0:13",
                                     "0000004:0:14", "0000005:7:15", "0000006:1:20", "0000007:1:21",
                                     "0000008:1:22", "0000009:1:23", "0000010:1:99", "0000011:1:25"));
  EXPECT_TRUE(is_sound());
  const auto index = read_index(folder_.path("set/train-0002.tar"));
  EXPECT_EQ((*index)->samples.at(2).size(), 3u);
  EXPECT_EQ((*index)->samples.at(3).size(), 2u);
}

TEST_F(UpdateTest, MembersThatNobodyCanDecodeAreRefused) {
  const std::pair<const char*, const char*> broken[] = {
      {"cls", "cat"}, {"json", "{\"a\": "}, {"npy", "numbers"}, {"png", "no image"}};
  for (const auto& [extension, bytes] : broken) {
    folder_.write(base::str("new/0000005.", extension), bytes);
    const auto report = update();
    ASSERT_FALSE(report) << extension;
    EXPECT_THAT(report.error().what(), HasSubstr(base::str("0000005.", extension)));
    ASSERT_TRUE(base::remove_file(folder_.path(base::str("new/0000005.", extension))));
  }
  folder_.write("set/train-0001.tar.tmp-999999999-0", "left by kill -9");
  folder_.write("new/._0000005.cls", "x");
  folder_.write("new/.ipynb_checkpoints/0000005.cls", "x");
  folder_.write("new/0000005.cls", "7");
  ASSERT_TRUE(update());
  EXPECT_FALSE(base::path_exists(folder_.path("set/train-0001.tar.tmp-999999999-0")));
  ASSERT_TRUE(base::remove_file(folder_.path("new/0000005.cls")));
  folder_.write("new/a.b.cls", "7");
  EXPECT_THAT(update().error().what(), HasSubstr("ends at the first dot"));
}

TEST_F(UpdateTest, ARunningTrainingAndOneThatResumesStop) {
  auto dataset = WebDataset(folder_.path("set/train-*.tar"))
                     .images("png")
                     .labels("cls")
                     .batch(4)
                     .shuffle(4)
                     .interleave(1);
  const auto before = dataset.open(0);
  ASSERT_TRUE(before->next());
  const std::string state = before->state();
  folder_.write("new/0000005.cls", "7");  // as many bytes as before
  ASSERT_TRUE(update());
  EXPECT_THAT(test::thrown([&] {
                const auto next = dataset.open(1);
                while (next->next()) {
                }
              }),
              HasSubstr("train-0001.tar"));
  const auto fresh = WebDataset(folder_.path("set/train-*.tar"))
                         .images("png")
                         .labels("cls")
                         .batch(4)
                         .shuffle(4)
                         .interleave(1);
  EXPECT_THAT(test::thrown([&] { fresh.resume(state, {}); }), HasSubstr("other contents than they had"));
}

// A kill: whatever was done before is no obstacle, and the set can be read meanwhile.
TEST_F(UpdateTest, AStoppedUpdateIsFinishedByTheSameCall) {
  folder_.write("new/0000005.cls", "7");
  folder_.write("new/0000010.cls", "8");
  const std::string sizes = folder_.path("set/sizes.json"), second = folder_.path("set/train-0001.tar");
  auto unsummed = **read_sizes(folder_.path("set/any"));
  unsummed.at("train-0001.tar").sum.reset();
  unsummed.at("train-0002.tar").sum.reset();
  ASSERT_TRUE(write_text(sizes, format_sizes(unsummed)));
  ASSERT_TRUE(base::remove_file(index_path(second)));
  EXPECT_EQ(WebDataset(folder_.path("set/train-*.tar")).images("png").labels("cls").size(), 12);
  ASSERT_TRUE(update());
  EXPECT_THAT(samples().at(5), "0000005:7:15");
  EXPECT_THAT(samples().at(10), "0000010:8:24");
  EXPECT_TRUE(is_sound());
  ASSERT_TRUE(update());
  EXPECT_TRUE(is_sound());
}

TEST_F(UpdateTest, NothingIsWrittenWhereSomethingIsWrong) {
  const std::string before = *base::read_file(folder_.path("set/train-0001.tar"));
  folder_.write("new/0000005.cls", "7");
  folder_.write("new/0000099.cls", "7");
  EXPECT_THAT(update().error().what(),
              HasSubstr("no sample has the key '0000099': expected files named after samples"));
  ASSERT_TRUE(base::remove_file(folder_.path("new/0000099.cls")));
  folder_.write("new/0000004.png", "no image");
  EXPECT_THAT(update().error().what(), HasSubstr("0000004.png: not an image"));
  ASSERT_TRUE(base::remove_file(folder_.path("new/0000004.png")));
  folder_.write("new/README", "x");
  EXPECT_THAT(update().error().what(), HasSubstr("README is not a member of a sample"));
  EXPECT_EQ(*base::read_file(folder_.path("set/train-0001.tar")), before);
}

}  // namespace
}  // namespace sluice::data
