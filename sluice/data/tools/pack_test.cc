// Packing folders and lists of images.
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <filesystem>

#include "sluice/data/dataset.h"
#include "sluice/data/images/image.h"
#include "sluice/data/test_files.h"
#include "sluice/data/test_labels.h"
#include "sluice/data/test_support.h"
#include "sluice/data/tools/idx.h"
#include "sluice/data/tools/inspect.h"
#include "sluice/data/tools/pack.h"
#include "sluice/data/tools/table.h"

namespace sluice::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Pack, AFolderOfClasses) {
  const test::Folder folder;
  for (int i = 0; i < 5; ++i) {
    folder.write("in/dog/" + std::to_string(i) + ".png", test::gray_png(i));
    folder.write("in/cat/deep/" + std::to_string(i) + ".PNG", test::gray_png(100 + i));
  }
  folder.write("in/cat/notes.txt", "x");
  PackOptions options;
  options.input = folder.path("in");
  options.shards = {folder.path("out"), "train", 4, false, nullptr, 0, ""};
  const auto report = pack(options);
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_THAT(report->classes, ElementsAre("cat", "dog"));
  EXPECT_EQ(report->shards.shards.size(), 3u);
  EXPECT_EQ(report->left_out, 1);
  EXPECT_THAT(report->first_left_out, HasSubstr("notes.txt"));
  EXPECT_EQ(*base::read_file(folder.path("out/classes.txt")), "cat\ndog\n");
  EXPECT_THAT(*base::list_directory(folder.path("out")),
              ElementsAre("classes.txt", "sizes.json", "train-0000.idx", "train-0000.tar", "train-0001.idx",
                          "train-0001.tar", "train-0002.idx", "train-0002.tar"));
  const auto sizes = read_sizes(folder.path("out/train-0002.tar"));
  EXPECT_EQ((*sizes)->at("train-0002.tar").samples, 2);
  EXPECT_EQ((*sizes)->at("train-0002.tar").sum, *sum_source(folder.path("out/train-0002.tar")));
  const auto stream = WebDataset(folder.path("out/*.tar")).images("png", "l8").labels("cls").batch(10).open();
  const auto batch = stream->next();
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(batch->image.data<std::uint8_t>()[i * 4] >= 100 ? 0 : 1, batch->label.data<std::int64_t>()[i]);

  EXPECT_THAT(pack(options).error().what(), HasSubstr("already holds 3 shards"));
  options.shards.overwrite = true;
  options.shards.shard_size = 100;
  folder.write("out/sizes.json", "{\"other.tar\": 3, \"train-0000.tar\": 4, \"train-0001.tar\": 4}");
  ASSERT_TRUE(pack(options));
  EXPECT_THAT(*base::list_directory(folder.path("out")),
              ElementsAre("classes.txt", "sizes.json", "train-0000.idx", "train-0000.tar"));
  const auto written = read_sizes(folder.path("out/train-0000.tar"));
  EXPECT_EQ((*written)->size(), 2u);
  EXPECT_EQ((*written)->at("train-0000.tar").samples, 10);
  const std::string once = *base::read_file(folder.path("out/train-0000.tar"));
  ASSERT_TRUE(pack(options));
  EXPECT_EQ(*base::read_file(folder.path("out/train-0000.tar")), once);
}

TEST(Pack, LinksAreFollowedOnceAndThoseToNothingAreReported) {
  namespace fs = std::filesystem;
  const test::Folder folder;
  folder.write("in/cat/a.png", test::gray_png(1));
  folder.write("in/dog/deep/b.png", test::gray_png(2));
  folder.write("elsewhere/c.png", test::gray_png(3));
  fs::create_directory_symlink(folder.path("in/cat"), folder.path("in/cat/again"));
  fs::create_directory_symlink(folder.path("in/dog"), folder.path("in/dog/deep/up"));
  fs::create_directory_symlink(folder.path("elsewhere"), folder.path("in/dog/linked"));
  fs::create_symlink(folder.path("nowhere.png"), folder.path("in/dog/gone.png"));
  PackOptions options;
  options.input = folder.path("in");
  options.shards.folder = folder.path("out");
  const auto report = pack(options);
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_EQ(report->shards.samples, 3);
  EXPECT_EQ(report->left_out, 3);
}

TEST(Pack, HiddenFoldersAndAppleDoublesArePassedOver) {
  const test::Folder folder;
  for (const char* split : {"train", "test"}) {
    folder.write(base::str("in/", split, "/cat/0.png"), test::gray_png(1));
    folder.write(base::str("in/", split, "/cat/.ipynb_checkpoints/0-checkpoint.png"), test::gray_png(1));
    folder.write(base::str("in/", split, "/cat/._0.png"), "x");
  }
  PackOptions options;
  options.input = folder.path("in");
  options.shards.folder = folder.path("out");
  for (const char* left :
       {"train-0000.tar.tmp-999999999-0", "sizes.json.tmp-999999999-3", "notes.tmp-999999999-3"})
    folder.write(base::str("out/", left), "x");
  const auto report = pack(options);
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_EQ(report->shards.samples, 2);
  EXPECT_EQ(report->left_out_kinds.at("folder that begins with a dot"), 2);
  EXPECT_EQ(report->left_out_kinds.at("AppleDouble of macOS (._NAME)"), 2);
  ASSERT_EQ(report->nested.size(), 2u);
  EXPECT_EQ(report->nested.front().first, "test");
  EXPECT_THAT(report->nested.front().second, ElementsAre("cat"));
  EXPECT_THAT(
      *base::list_directory(folder.path("out")),
      ElementsAre("classes.txt", "notes.tmp-999999999-3", "sizes.json", "train-0000.idx", "train-0000.tar"));
}

TEST(Pack, ClassesNamedAfterTheDeepestFolders) {
  const test::Folder folder;
  for (const char* name :
       {"2024/dog/0.png", "2024/cat/1.png", "2025/cat/old/2.png", "2025/cat/3.png", "4.png"})
    folder.write(base::str("in/", name), test::gray_png(name[std::strlen(name) - 5] - '0'));
  PackOptions options;
  options.shards.folder = folder.path("out");
  options.shards.overwrite = true;
  options.shuffle = false;
  options.class_folder = ClassFolder::kDeepest;
  for (const char* input : {"in", "in/"}) {
    options.input = folder.path(input);
    const auto report = pack(options);
    ASSERT_TRUE(report) << report.error().what();
    EXPECT_THAT(report->classes, ElementsAre("cat", "dog", "old"));
    EXPECT_EQ(*base::read_file(folder.path("out/classes.txt")), "cat\ndog\nold\n");
    // 2024/cat/1, 2025/cat/3, 2024/dog/0, 2025/cat/old/2
    EXPECT_THAT(test::labels_in(folder.path("out/*.tar")),
                ElementsAre(testing::Pair("0000000", 0), testing::Pair("0000001", 0),
                            testing::Pair("0000002", 1), testing::Pair("0000003", 2)));
    EXPECT_EQ(report->first_left_out, folder.path(base::str(input, input[2] == '/' ? "" : "/", "4.png")));
    EXPECT_TRUE(report->nested.empty() && report->joined_parts.empty());
  }
  for (const char* name : {"train/cat/0.png", "Val/cat/1.png", "test/2.png", "more/cat/3.png"})
    folder.write(base::str("split/", name), test::gray_png(1));
  options.input = folder.path("split");
  EXPECT_THAT(pack(options)->joined_parts,
              ElementsAre("Val", "train"));  // images of test are of a class "test"

  std::filesystem::create_directories(folder.path("empty/cat"));
  options.input = folder.path("empty");
  EXPECT_THAT(pack(options).error().what(),
              HasSubstr("empty holds no images in folders: expected folders named"));
  options.input = folder.write("list.csv", "0.png,1\n");
  EXPECT_THAT(pack(options).error().what(), HasSubstr("list.csv is a list, which names the classes itself"));
  folder.write("lines/a\nb/0.png", test::gray_png(1));
  options.input = folder.path("lines");
  EXPECT_THAT(pack(options).error().what(), HasSubstr("the class 'a b' has a line break"));
}

TEST(Pack, AListOfImages) {
  const test::Folder folder;
  folder.write("a b.png", test::gray_png(1));
  folder.write("c.png", test::gray_png(2));
  PackOptions options;
  options.shards.folder = folder.path("out");
  options.shards.overwrite = true;
  options.shuffle = false;
  const auto packed = [&](const std::string& list) {
    options.input = folder.write("list.txt", list);
    return pack(options);
  };
  ASSERT_TRUE(packed("# images\na b.png 3\nc.png\t12\n"));
  EXPECT_THAT(test::labels_in(folder.path("out/*.tar")),
              ElementsAre(testing::Pair("0000000", 3), testing::Pair("0000001", 12)));
  EXPECT_THAT(packed("a b.png,zebra\nc.png,ant\n")->classes, ElementsAre("ant", "zebra"));
  EXPECT_THAT(test::labels_in(folder.path("out/*.tar")),
              ElementsAre(testing::Pair("0000000", 1), testing::Pair("0000001", 0)));
  EXPECT_THAT(packed("c.png\n").error().what(),
              HasSubstr("list.txt, line 1: expected an image and its class"));
  EXPECT_THAT(packed("c.png 1\nd.png 1\n").error().what(), HasSubstr("line 2: no such file"));
  EXPECT_THAT(packed("").error().what(), HasSubstr("no samples"));
}

TEST(Pack, ListsAsCsvAndJsonLines) {
  const auto parsed = parse_list("label,file\n1,\"a, \"\"b\"\".png\"\n\n2,c.png\r\n", "x.csv");
  ASSERT_TRUE(parsed) << parsed.error().what();
  ASSERT_EQ(parsed->size(), 2u);
  EXPECT_EQ((*parsed)[0].path, "a, \"b\".png");
  EXPECT_EQ((*parsed)[0].class_name, "1");
  EXPECT_EQ((*parsed)[1].line, 4u);
  EXPECT_EQ((*parse_list("a.png,x,7\n", "x.csv"))[0].class_name, "7");
  const auto marked = parse_list(
      "\xef\xbb\xbf"
      "file,class\na.png,1\n",
      "x.csv");
  ASSERT_TRUE(marked) << marked.error().what();
  ASSERT_EQ(marked->size(), 1u);
  EXPECT_EQ((*marked)[0].path, "a.png");
  EXPECT_THAT(parse_list("a.png,1\nb.png\n", "x.csv").error().what(), HasSubstr("x.csv, line 2: expected"));
  EXPECT_THAT(parse_list("\"a.png,1\n", "x.csv").error().what(), HasSubstr("a quote is not closed"));
  const auto lines =
      parse_list("{\"image\": \"a.png\", \"label\": 3, \"by\": \"me\"}\n{\"file\":\"b.png\"}", "x.jsonl");
  ASSERT_TRUE(lines) << lines.error().what();
  EXPECT_EQ((*lines)[0].class_name, "3");
  EXPECT_EQ((*lines)[0].json, "{\"by\":\"me\"}");
  EXPECT_EQ((*lines)[1].class_name + (*lines)[1].json, "");
  EXPECT_THAT(parse_list("[1]", "x.jsonl").error().what(), HasSubstr("line 1: expected a JSON object"));
  EXPECT_THAT(parse_list("{\"file\": \"a.png\"}\n{bad\n", "x.jsonl").error().what(),
              testing::StartsWith("x.jsonl, line 2: not valid JSON: at column 2: "));
  EXPECT_THAT(parse_list("{\"cls\": 1}", "x.jsonl").error().what(), HasSubstr("expected a member \"file\""));

  const test::Folder folder;
  folder.write("a.png", test::gray_png(1));
  folder.write("b.png", test::gray_png(2));
  PackOptions options;
  options.shuffle = false;
  options.shards.folder = folder.path("out");
  options.input =
      folder.write("list.jsonl", "{\"file\":\"a.png\",\"class\":\"x\",\"n\":[1]}\n{\"file\":\"b.png\"}\n");
  ASSERT_TRUE(pack(options));
  EXPECT_THAT(list_shard(folder.path("out/train-0000.tar"))->extensions,
              ElementsAre(testing::Pair("cls", 1), testing::Pair("json", 1), testing::Pair("png", 2)));
}

// What a run leaves that was killed: the hidden folder with the shards that were finished.
TEST(Pack, AStoppedRunGoesOn) {
  const test::Folder folder;
  std::atomic<int> produced{0};
  const auto produce = [&](std::int64_t i) -> base::Result<NewSample> {
    ++produced;
    return NewSample{sample_key(i), {{"cls", std::to_string(i)}}};
  };
  ShardOptions options;
  options.folder = folder.path("whole");
  options.shard_size = 10;
  options.fingerprint = "one";
  ASSERT_TRUE(write_shards(35, produce, options));
  EXPECT_EQ(produced, 35);
  options.folder = folder.path("out");
  const auto leave = [&](const std::string& fingerprint) {
    folder.write("out/.train.partial/fingerprint", fingerprint + "\n0 4 0");
    for (const char* name : {"train-0000.tar", "train-0002.tar"})
      folder.write(std::string("out/.train.partial/") + name,
                   *base::read_file(folder.path(std::string("whole/") + name)));
  };
  leave("one");
  produced = 0;
  const auto report = write_shards(35, produce, options);
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_EQ(produced, 15);
  EXPECT_EQ(report->continued, 2);
  EXPECT_EQ(report->samples, 35);
  for (const char* name : {"train-0000.tar", "train-0001.tar", "train-0002.tar", "train-0003.tar"})
    EXPECT_EQ(*base::read_file(folder.path(std::string("out/") + name)),
              *base::read_file(folder.path(std::string("whole/") + name)));
  EXPECT_EQ(base::list_directory(folder.path("out"))->size(), 9u);  // with index files, and sizes.json
  // Another set is begun again.
  leave("two");
  produced = 0;
  options.overwrite = true;
  EXPECT_EQ(write_shards(35, produce, options)->continued, 0);
  EXPECT_EQ(produced, 35);
}

TEST(Pack, TheNumberOfThreadsChangesNothing) {
  const test::Folder folder;
  for (int i = 0; i < 40; ++i) folder.write("in/a/" + std::to_string(i) + ".png", test::gray_png(i));
  PackOptions options;
  options.input = folder.path("in");
  options.shards.shard_size = 7;
  for (const int workers : {1, 4}) {
    options.shards.folder = folder.path(std::to_string(workers));
    options.shards.workers = workers;
    std::int64_t last = 0;
    options.shards.progress = [&](std::int64_t done, std::int64_t total) {
      EXPECT_GT(done, last);
      EXPECT_EQ(total, 40);
      last = done;
    };
    ASSERT_TRUE(pack(options));
    EXPECT_EQ(last, 40);
  }
  const auto names = base::list_directory(folder.path("1"));
  EXPECT_EQ(names->size(), 14u);  // six shards and index files, sizes.json, the classes
  for (const std::string& name : *names)
    EXPECT_EQ(*base::read_file(folder.path("1/" + name)), *base::read_file(folder.path("4/" + name)));
}

TEST(Pack, AFailureLeavesTheOldSet) {
  const test::Folder folder;
  folder.write("in/a/1.png", test::gray_png(1));
  PackOptions options;
  options.input = folder.path("in");
  options.shards.folder = folder.path("out");
  options.shards.overwrite = true;
  ASSERT_TRUE(pack(options));
  const std::string before = *base::read_file(folder.path("out/train-0000.tar"));
  folder.write("in/a/2.png", "no image");
  EXPECT_THAT(pack(options).error().what(), HasSubstr("2.png: not an image"));
  EXPECT_EQ(*base::read_file(folder.path("out/train-0000.tar")), before);
  EXPECT_THAT(*base::list_directory(folder.path("out")),
              ElementsAre("classes.txt", "sizes.json", "train-0000.idx", "train-0000.tar"));
}

}  // namespace
}  // namespace sluice::data
