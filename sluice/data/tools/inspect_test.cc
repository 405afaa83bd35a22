// Verifying shards.
#include "sluice/data/tools/inspect.h"

#include <gmock/gmock.h>

#include "sluice/data/test_files.h"
#include "sluice/data/test_support.h"
#include "sluice/data/tools/pack.h"

namespace sluice::data {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
