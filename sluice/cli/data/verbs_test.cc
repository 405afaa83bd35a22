#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/cli/data/test_program.h"
#include "sluice/cli/verbs.h"
#include "sluice/data/images/image.h"
#include "sluice/data/test_files.h"
#include "sluice/data/test_support.h"

namespace sluice::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

test::Outcome sluice_program(std::vector<std::string> arguments) {
  return test::sluice_program({data_verb()}, std::move(arguments));
}

class DataVerbs : public ::testing::Test {
 protected:
  void write_images() {
    for (int i = 0; i < 6; ++i)
      folder_.write((i % 2 == 0 ? "in/even/" : "in/odd/") + std::to_string(i) + ".png",
                    data::test::gray_png(i));
  }

  data::test::Folder folder_;
};

TEST_F(DataVerbs, PackListAndVerify) {
  write_images();
  const std::string out = folder_.path("out");
  const auto packed =
      sluice_program({"data", "pack", folder_.path("in"), out, "--shard-size", "4", "--prefix", "val"});
  EXPECT_EQ(packed.status, 0) << packed.err;
  EXPECT_THAT(packed.out, HasSubstr("6 samples in 2 shards"));
  EXPECT_THAT(packed.out, HasSubstr("2 classes"));

  const auto listed = sluice_program({"data", "ls", out + "/val-{0000..0001}.tar", "--json", "--keys"});
  EXPECT_EQ(listed.status, 0) << listed.err;
  const auto document = nlohmann::json::parse(listed.out);
  EXPECT_EQ(document["samples"], 6);
  EXPECT_EQ(document["shards"][0]["samples"], 4);
  EXPECT_EQ(document["shards"][0]["extensions"]["png"], 4);
  EXPECT_EQ(document["shards"][1]["keys"].size(), 2u);
  EXPECT_THAT(sluice_program({"data", "ls", out + "/*.tar"}).out, HasSubstr("6 samples"));

  const auto sound =
      sluice_program({"data", "verify", out + "/*.tar", "--require", "jpg;png", "--require", "cls"});
  EXPECT_EQ(sound.status, 0) << sound.out;
  EXPECT_THAT(sound.out, HasSubstr("no problems"));
  const auto unsound = sluice_program({"data", "verify", out + "/*.tar", "--classes", "1", "--json"});
  EXPECT_EQ(unsound.status, 1);
  EXPECT_EQ(nlohmann::json::parse(unsound.out)["failures"], 3);
  EXPECT_THAT(unsound.err, HasSubstr("3 problems"));
}

TEST_F(DataVerbs, MistakesAreAnsweredInWords) {
  const auto few = sluice_program({"data", "verify", "x.tar", "--workers", "-1"});
  EXPECT_EQ(few.status, 2);
  EXPECT_THAT(few.err, HasSubstr("--workers: expected a number of 0 or more, found -1\n"));
  EXPECT_THAT(sluice_program({"data", "pack", "in", "out", "--shard-size", "0"}).err,
              HasSubstr("--shard-size: expected a number above 0, found 0\n"));
  const auto unknown = sluice_program({"data", "verfy", "x.tar"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("unknown verb \"verfy\"; did you mean \"verify\"? Known: "));
  EXPECT_THAT(sluice_program({"data", "zzzzzz"}).err, HasSubstr("unknown verb \"zzzzzz\". Known: "));
}

TEST_F(DataVerbs, MistakesSayWhatIsExpected) {
  write_images();
  folder_.write("x.tar", "hello");
  folder_.write("x.npy", "hello");
  folder_.write("x.ppm", std::string("P6 1 1 255\n\0\1\2", 14));
  folder_.write("changes/none.cls", "1");
  const std::string in = folder_.path("in"), out = folder_.path("out"), none = folder_.path("none");
  const std::string good = out + "/train-0000.tar";
  ASSERT_EQ(sluice_program({"data", "pack", in, out}).status, 0);
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"cp", good, "gs://"}, "'gs://' is not an object: expected gs://BUCKET/NAME"},
      {{"cp", good, "ftp://host/x"}, "cannot copy to 'ftp://host/x': expected a path, gs://…"},
      {{"cp", good, none + "/x.tar"}, "there is no folder " + none + ": make it first"},
      {{"cp", good}, "SOURCE TARGET: expected at least 2 words, found 1"},
      {{"cat", good, "--key", "k"}, "has the key 'k': 'sluice data ls --keys' lists the keys"},
      {{"cat", good, "--where", "cls = 77"}, "--where holds for no sample of these shards"},
      {{"pack", folder_.path("x.ppm"), none}, "expected a folder of classes, or a list"},
      {{"append", none, in}, "there is no folder " + none + ": expected the folder of a set"},
      {{"update", good, none}, "expected a folder of files named KEY.EXTENSION"},
      {{"update", good, folder_.path("changes")}, "no sample has the key 'none'"},
      {{"index", folder_.path("x.tar")}, "not a tar archive, or cut off inside the header at byte 0"},
      {{"idx", good, good, none}, "expected a file such as train-images-idx3-ubyte"}};
  for (const auto& [words, expected] : cases) {
    std::vector<std::string> line = {"data"};
    line.insert(line.end(), words.begin(), words.end());
    const auto said = sluice_program(line);
    EXPECT_NE(said.status, 0);
    EXPECT_THAT(said.err, HasSubstr(expected)) << words[0];
  }
}

TEST_F(DataVerbs, NamesMayBeAnyBytes) {
  const std::string shard = folder_.write("caf\xe9-0.tar", data::test::archive({{"a\xff.txt", "x"}}));
  const auto indexed = sluice_program({"data", "index", shard, "--json"});
  EXPECT_EQ(indexed.status, 0) << indexed.err;
  EXPECT_THAT(nlohmann::json::parse(indexed.out)["shards"][0]["shard"].get<std::string>(),
              HasSubstr(R"(/caf\xe9-0.tar)"));
  EXPECT_EQ(nlohmann::json::parse(*base::read_file(folder_.path("sizes.json")))[R"(caf\xe9-0.tar)"], 1);
  EXPECT_TRUE(base::path_exists(folder_.path("caf\xe9-0.idx")));
  const auto listed = sluice_program({"data", "ls", shard, "--json", "--keys"});
  EXPECT_EQ(nlohmann::json::parse(listed.out)["shards"][0]["keys"][0], R"(a\xff)");
  // The sums of sizes.json are those of the shard.
  EXPECT_EQ(sluice_program({"data", "verify", shard}).status, 0);
  folder_.write("caf\xe9-0.tar", data::test::archive({{"b.txt", "x"}, {"c.txt", "x"}}));
  EXPECT_EQ(sluice_program({"data", "verify", shard}).status, 1);
}

TEST_F(DataVerbs, EveryIndexFileHasItsLineInTheSizes) {
  folder_.write("s-0.tar", data::test::archive({{"a.txt", "x"}}));
  folder_.write("s-1.tar", "no archive");
  folder_.write("s-2.tar", data::test::archive({{"b.txt", "x"}, {"c.txt", "y"}}));
  const auto indexed = sluice_program({"data", "index", folder_.path("s-{0..2}.tar")});
  EXPECT_EQ(indexed.status, 1);
  EXPECT_THAT(indexed.err, HasSubstr("s-1.tar"));
  EXPECT_THAT(indexed.err,
              HasSubstr("(shards that have an index file and a line in sizes.json now: 2 of 3)"));
  const auto sizes = nlohmann::json::parse(*base::read_file(folder_.path("sizes.json")));
  for (const int i : {0, 1, 2})
    EXPECT_EQ(sizes.contains(base::str("s-", i, ".tar")),
              base::path_exists(folder_.path(base::str("s-", i, ".idx"))));
  EXPECT_EQ(sizes["s-2.tar"], 2);
  // What stands there and cannot be read is said before anything is written.
  folder_.write("sizes.json", "{");
  ASSERT_TRUE(base::remove_file(folder_.path("s-0.idx")));
  EXPECT_THAT(sluice_program({"data", "index", folder_.path("s-0.tar")}).err,
              HasSubstr("sizes.json: expected"));
  EXPECT_FALSE(base::path_exists(folder_.path("s-0.idx")));
}

TEST_F(DataVerbs, OneIsNotMany) {
  folder_.write("in/only/1.webp", data::test::from_base64(data::test::kWebpLossless));
  folder_.write("in/only/2.svg", "<svg>");
  folder_.write("in/only/3.SVG", "<svg>");
  folder_.write("in/only/README", "x");
  const std::string out = folder_.path("out");
  const auto packed = sluice_program({"data", "pack", folder_.path("in"), out});
  EXPECT_THAT(packed.out, HasSubstr("1 sample in 1 shard, "));
  EXPECT_THAT(packed.out, HasSubstr("1 class: "));
  EXPECT_THAT(packed.out, HasSubstr("3 files left out (2 svg, 1 without extension), the first being "));
  EXPECT_THAT(sluice_program({"data", "ls", out + "/*.tar"}).out, HasSubstr("1 sample "));
  EXPECT_THAT(sluice_program({"data", "verify", out + "/*.tar"}).out,
              ContainsRegex("1 sample \\(2 members, [0-9.]+ k?B\\) in 1 shard: no problems"));
  EXPECT_THAT(sluice_program({"data", "index", out + "/*.tar"}).out, HasSubstr("1 sample in 1 shard: "));
  EXPECT_THAT(sluice_program({"data", "stats", out + "/*.tar"}).out,
              HasSubstr("For sluice train: --images webp --classes 1"));
}

TEST_F(DataVerbs, FoldersAboveTheClassesAreSaid) {
  for (const char* name : {"train/even/0.png", "train/odd/1.png", "test/even/2.png"})
    folder_.write(base::str("in/", name), data::test::gray_png(1));
  const std::string in = folder_.path("in"), out = folder_.path("out");
  const auto first = sluice_program({"data", "pack", in, out});
  EXPECT_THAT(first.out, HasSubstr("2 classes: "));
  EXPECT_THAT(first.out,
              HasSubstr("note: test holds no images itself, only folders with images (even), and all "
                        "of them are of the class test (it is so for 2 classes). If these folders are "
                        "the classes, pack " +
                        in +
                        "/test instead, or all of them as one set with "
                        "--class-folder deepest\n"));
  const auto deepest = sluice_program({"data", "pack", in, out, "--overwrite", "--class-folder", "deepest"});
  EXPECT_EQ(*base::read_file(out + "/classes.txt"), "even\nodd\n");
  EXPECT_THAT(deepest.out, HasSubstr("note: test, train of " + in +
                                     " are one set now. To test on samples that no "
                                     "training sees, pack each of them\n"));
  EXPECT_THAT(sluice_program({"data", "pack", in, out, "--class-folder", "last"}).err,
              HasSubstr("--class-folder: expected first, deepest, found 'last'"));
}

// The class of a tile is a name where the folder has classes.txt: captions of other widths.
TEST_F(DataVerbs, SheetsShowTheNamesOfClasses) {
  write_images();
  const std::string out = folder_.path("out"), shards = out + "/*.tar";
  ASSERT_EQ(sluice_program({"data", "pack", folder_.path("in"), out}).status, 0);
  const auto sheet = [&](const std::string& name) {
    EXPECT_EQ(sluice_program({"data", "cat", shards, "--sheet", folder_.path(name)}).status, 0);
    return *base::read_file(folder_.path(name));
  };
  const std::string named = sheet("named.png");
  folder_.write("out/classes.txt", "even\nodd\n");
  EXPECT_EQ(sheet("same.png"), named);
  folder_.write("out/classes.txt", "EVEN\nODD\n");
  EXPECT_NE(sheet("other.png"), named);
  ASSERT_TRUE(base::remove_file(folder_.path("out/classes.txt")));
  EXPECT_NE(sheet("numbers.png"), named);
}

TEST_F(DataVerbs, CatIndexAndStats) {
  write_images();
  const std::string out = folder_.path("out"), shards = out + "/*.tar";
  ASSERT_EQ(sluice_program({"data", "pack", folder_.path("in"), out, "--shard-size", "4"}).status, 0);

  const auto shown = sluice_program({"data", "cat", shards, "--key", "0000002"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("sample 0000002"));
  EXPECT_THAT(shown.out, HasSubstr("2 × 2 pixels"));
  const auto part = sluice_program({"data", "cat", shards, "--skip", "5", "--part", "png"});
  EXPECT_TRUE(data::decode_png(part.out, data::ColorModel::kGray)) << part.err;
  ASSERT_EQ(sluice_program({"data", "cat", shards, "--count", "3", "--out", folder_.path("parts")}).status,
            0);
  EXPECT_EQ(base::list_directory(folder_.path("parts"))->size(), 6u);
  const auto sheet =
      sluice_program({"data", "cat", shards, "--sheet", folder_.path("s.png"), "--columns", "4"});
  EXPECT_THAT(sheet.out, HasSubstr("6 images"));
  const auto pixels = data::decode_png(*base::read_file(folder_.path("s.png")), data::ColorModel::kRgb);
  ASSERT_TRUE(pixels);
  EXPECT_EQ(pixels->width, 4 * 118 + 6);
  EXPECT_THAT(sluice_program({"data", "cat", shards, "--key", "none"}).err,
              HasSubstr("no sample of these shards has the key 'none'"));
  EXPECT_THAT(sluice_program({"data", "cat", shards, "--skip", "6"}).err,
              HasSubstr("no sample is left after --skip 6"));
  EXPECT_EQ(sluice_program({"data", "cat", shards, "--sheet", "x", "--part", "png"}).status, 2);
  EXPECT_THAT(sluice_program({"data", "cat", shards, "--sheet", folder_.path("s.jpg")}).err,
              HasSubstr("expected a name that ends in .png, found"));

  const auto indexed = sluice_program({"data", "index", shards, "--json"});
  EXPECT_EQ(indexed.status, 0) << indexed.err;
  EXPECT_EQ(nlohmann::json::parse(indexed.out)["samples"], 6);
  EXPECT_TRUE(base::path_exists(out + "/train-0001.idx"));
  // The same samples through the index, of which only their own bytes are read.
  EXPECT_EQ(sluice_program({"data", "cat", shards, "--key", "0000002"}).out, shown.out);
  EXPECT_EQ(sluice_program({"data", "cat", shards, "--skip", "5", "--part", "png"}).out, part.out);
  EXPECT_EQ(sluice_program({"data", "cat", shards, "--skip", "6"}).status, 1);
  EXPECT_EQ(sluice_program({"data", "verify", shards, "--duplicates", "exact"}).status, 0);
  const auto leaks =
      sluice_program({"data", "verify", shards, out + "/train-0001.tar", "--duplicates", "exact", "--json"});
  EXPECT_EQ(leaks.status, 1);
  EXPECT_EQ(nlohmann::json::parse(leaks.out)["leaks"], 2);
  const auto sizes = nlohmann::json::parse(*base::read_file(out + "/sizes.json"));
  EXPECT_EQ(sizes["train-0000.tar"], 4);
  EXPECT_EQ(sizes["train-0001.tar"], 2);

  const auto stats = sluice_program({"data", "stats", shards, "--gray"});
  EXPECT_EQ(stats.status, 0) << stats.err;
  // Levels 0 to 5: mean 2.5 ÷ 255, deviation √(35 ÷ 12) ÷ 255.
  EXPECT_THAT(stats.out, HasSubstr("--classes 2 --channels 1 --mean 0.0098 --std 0.0067"));
  const auto document = nlohmann::json::parse(sluice_program({"data", "stats", shards, "--json"}).out);
  EXPECT_EQ(document["classes"]["1"], 3);
  EXPECT_EQ(document["mean"].size(), 3u);
}

TEST_F(DataVerbs, FailuresAndWrongUsageDiffer) {
  EXPECT_EQ(sluice_program({"data"}).status, 2);
  EXPECT_EQ(sluice_program({"data", "pack"}).status, 2);
  EXPECT_EQ(sluice_program({"data", "ls", "x", "--unknown"}).status, 2);
  EXPECT_EQ(sluice_program({"data", "pack", "a", "b", "--shard-size", "0"}).status, 2);
  EXPECT_EQ(sluice_program({"data", "cifar10", "--help"}).status, 0);
  const auto missing = sluice_program({"data", "ls", folder_.path("none.tar")});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("sluice data ls: no such shard"));
  EXPECT_EQ(sluice_program({"data", "digits", folder_.path("none"), folder_.path("out")}).status, 1);
  folder_.write("no.tar.gz", "x");
  const auto other = sluice_program({"data", "cifar10", folder_.path("no.tar.gz"), folder_.path("out")});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("expected the MD5 sum"));
}

TEST_F(DataVerbs, DigitsTwiceNeedOverwrite) {
  std::string csv;
  for (int row = 0; row < 20; ++row) {
    for (int i = 0; i < 64; ++i) csv += "5,";
    csv += std::to_string(row % 10) + "\n";
  }
  folder_.write("digits.csv", csv);
  const std::vector<std::string> arguments = {
      "data", "digits", folder_.path("digits.csv"), folder_.path("out"), "--test-share", "0.5"};
  EXPECT_THAT(sluice_program(arguments).out, HasSubstr("10 samples in 1 shard"));
  EXPECT_THAT(sluice_program(arguments).err, HasSubstr("--overwrite"));
  auto again = arguments;
  again.push_back("--overwrite");
  EXPECT_EQ(sluice_program(again).status, 0);
}

}  // namespace
}  // namespace sluice::cli
