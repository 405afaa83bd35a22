// Verifying shards.
#include "sluice/data/tools/inspect.h"

#include <gmock/gmock.h>

#include "sluice/data/decode/decode.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/test_files.h"
#include "sluice/data/test_support.h"
#include "sluice/data/tools/pack.h"

namespace sluice::data {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> problems_of(VerifyOptions options) {
  const auto report = verify(options);
  std::vector<std::string> problems;
  for (const Problem& problem : report->problems) problems.push_back(problem.what);
  return problems;
}

// A bit within an image's data that every decoder takes: the checksum alone knows.
TEST(Inspect, VerifyComparesWithTheSumsOfTheSet) {
  const test::Folder folder;
  for (int i = 0; i < 4; ++i) folder.write("in/a/" + std::to_string(i) + ".pgm", "P5 2 2 255\nabcd");
  PackOptions options;
  options.input = folder.path("in");
  options.shards.folder = folder.path("out");
  const std::string shard = pack(options)->shards.shards.front();
  EXPECT_EQ(verify({{shard}, {}, 0, 1, nullptr})->unsummed, 0);
  EXPECT_THAT(problems_of({{shard}, {}, 0, 1, nullptr}), IsEmpty());
  std::string bytes = *base::read_file(shard);
  bytes[bytes.find("abcd")] ^= 1;
  ASSERT_TRUE(base::write_file_atomically(shard, bytes));
  EXPECT_THAT(
      problems_of({{shard}, {}, 0, 1, nullptr}),
      ElementsAre(HasSubstr("A byte of it was changed, or it was replaced, after its index was made")));
}

std::string numbered_archive(int samples) {
  std::vector<std::pair<std::string, std::string>> members;
  for (int i = 0; i < samples; ++i) members.emplace_back(base::str(i, ".cls"), "1");
  return test::archive(members);
}

// An archive that ends early in zeros looks whole, and so does an index that lacks a sample.
TEST(Inspect, VerifyComparesWithTheIndexAndTheCounts) {
  const test::Folder folder;
  const std::string bytes = numbered_archive(10);
  const std::string shard = folder.write("s.tar", bytes);
  ASSERT_TRUE(write_index(shard, *index_shard(shard)));
  EXPECT_THAT(problems_of({{shard}, {}, 0, 1, nullptr}), IsEmpty());
  std::string cleared = bytes;
  std::fill(cleared.begin() + 5 * 1024, cleared.end(), '\0');
  folder.write("s.tar", cleared);
  EXPECT_THAT(problems_of({{shard}, {}, 0, 1, nullptr}),
              ElementsAre(AllOf(HasSubstr("has 5 samples"), HasSubstr("s.idx has 10"))));
  folder.write("s.tar", bytes);
  ShardIndex index = *index_shard(shard);
  index.samples.erase(index.samples.begin() + 3);
  ASSERT_TRUE(write_index(shard, index));
  EXPECT_THAT(problems_of({{shard}, {}, 0, 1, nullptr}), ElementsAre(HasSubstr("s.idx has 9")));
  index.samples.push_back(index.samples.back());
  ASSERT_TRUE(write_index(shard, index));
  EXPECT_THAT(problems_of({{shard}, {}, 0, 1, nullptr}), ElementsAre(HasSubstr("sample 3 begins at byte")));
  ASSERT_TRUE(base::remove_file(index_path(shard)));
  folder.write("sizes.json", "{\"s.tar\": 11}");
  EXPECT_THAT(problems_of({{shard}, {}, 0, 1, nullptr}),
              ElementsAre(HasSubstr("sizes.json next to it says 11")));
}

// 80,000 members with one key took minutes, as each was compared with all before it.
TEST(Inspect, ASampleWithManyMembersTakesLinearTime) {
  const test::Folder folder;
  std::vector<std::pair<std::string, std::string>> members;
  for (int i = 0; i < 100'001; ++i) members.emplace_back(base::str("a.", i), "");
  const std::string many = folder.write("many.tar", test::archive(members));
  EXPECT_THAT(index_shard(many).error().what(), HasSubstr("sample a has more than 100000 members"));
  members.resize(80'000);
  members.emplace_back("a.7", "");
  const std::string twice = folder.write("twice.tar", test::archive(members));
  EXPECT_THAT(index_shard(twice).error().what(), HasSubstr("has the same key and extension as a.7 "));
  EXPECT_THAT(problems_of({{twice}, {}, 0, 1, nullptr}), ElementsAre(HasSubstr("member a.7 ")));
}

TEST(Inspect, AppleDoublesArePassedOverAndSaidOnce) {
  const test::Folder folder;
  const std::string shard = folder.write(
      "mac.tar", test::archive({{"t/._0.cls", "x"}, {"t/0.cls", "1"}, {"t/._1.cls", "x"}, {"t/1.cls", "2"}}));
  EXPECT_THAT(problems_of({{shard}, {}, 0, 1, nullptr}), ElementsAre(HasSubstr("AppleDouble")));
  EXPECT_EQ(index_shard(shard)->samples.size(), 2u);
}

TEST(Inspect, PythonsNumbersAndByteOrderMarksAreNamed) {
  EXPECT_THAT(check_decodes("json", "{\"a\": NaN}").error().what(), HasSubstr("NaN, which Python writes"));
  EXPECT_THAT(check_decodes("json", "[1, -Infinity]").error().what(),
              HasSubstr("Infinity, which Python writes"));
  EXPECT_THAT(check_decodes("json", "{\"NaN\": x}").error().what(), Not(HasSubstr("Python")));
  EXPECT_TRUE(check_decodes("json", "{\"a\": \"NaN\"}"));
  EXPECT_THAT(check_decodes("cls",
                            "\xEF\xBB\xBF"
                            "3")
                  .error()
                  .what(),
              HasSubstr("byte order mark (BOM)"));
}

// Python's webdataset reads them so, too, and nobody misses the second one.
TEST(Inspect, SamplesThatADotInTheirKeysMergesAreNoted) {
  const test::Folder folder;
  const auto noted = [&](const test::Members& members) {
    const auto report = verify({{folder.write("s.tar", test::archive(members))}, {}, 0, 1, nullptr});
    EXPECT_EQ(report->failures(), 0);
    return report->problems.empty() ? "" : report->problems.front().what;
  };
  EXPECT_THAT(noted({{"22.txt", "x"}, {"22.cls", "1"}, {"22.5.txt", "y"}, {"22.5.cls", "2"}}),
              HasSubstr("sample 22 (at byte 0) has each of its members again as 5.cls and so on"));
  EXPECT_THAT(noted({{"2.05.txt", "x"}, {"2.05.cls", "1"}, {"2.06.txt", "y"}, {"2.06.cls", "2"}}),
              HasSubstr("as 06.cls"));
  EXPECT_EQ(noted({{"a.0.txt", "x"}, {"a.1.txt", "y"}, {"a.cls", "2"}}), "");
  EXPECT_EQ(noted({{"a.left.txt", "x"}, {"a.left.cls", "1"}, {"a.right.txt", "y"}, {"a.right.cls", "2"}}),
            "");
}

TEST(Inspect, VerifyFindsAllProblems) {
  const test::Folder folder;
  const std::string good =
      folder.write("good.tar", test::archive({{"a.png", test::gray_png(1)}, {"a.cls", "3"}}));
  const std::string bad = folder.write("bad.tar", test::archive({{"a.png", "broken"},
                                                                 {"a.cls", "3"},
                                                                 {"b.cls", "x"},
                                                                 {"c.png", test::gray_png(1)},
                                                                 {"c.cls", "11"},
                                                                 {"a.txt", "late"},
                                                                 {"noext", ""}}));
  const std::string cut =
      folder.write("cut.tar", test::archive({{"a.png", test::gray_png(1)}, {"a.cls", "3"}}).substr(0, 1100));
  EXPECT_THAT(problems_of({{good}, {}, 10, 0, nullptr}), IsEmpty());
  EXPECT_EQ(verify({{good}, {}, 10, 0, nullptr})->unsummed, 1);
  EXPECT_THAT(problems_of({{good, good}, {}, 10, 0, nullptr}),
              ElementsAre(HasSubstr("good.tar: listed more than once")));
  const auto problems = problems_of({{bad, good, cut}, {"jpg;png"}, 10, 2, nullptr});
  EXPECT_THAT(problems, Contains(HasSubstr("bad.tar: member a.png (header at byte 0): not an image")));
  EXPECT_THAT(problems,
              Contains(HasSubstr("member b.cls (header at byte 2048): expected a whole number, found 'x'")));
  EXPECT_THAT(problems, Contains(HasSubstr("sample b (at byte 2048) has no member jpg or png")));
  EXPECT_THAT(problems, Contains(HasSubstr("class 11 is out of range")));
  EXPECT_THAT(problems,
              Contains(HasSubstr("a.txt (header at byte 5120) continues a sample that ended before")));
  EXPECT_THAT(problems, Contains(HasSubstr("noext")));
  EXPECT_THAT(problems.back(), HasSubstr("cut.tar: cut off"));
  const auto report = verify({{bad}, {}, 0, 1, nullptr});
  EXPECT_EQ(report->failures() + 1, static_cast<std::int64_t>(report->problems.size()));  // noext is a note
  EXPECT_THAT(problems_of({{folder.write("gnu.tar", test::unpacked(test::kTarGnu))}, {}, 0, 1, nullptr}),
              Contains(HasSubstr("link.txt (header at byte 1024) is a link")));
}

}  // namespace
}  // namespace sluice::data
