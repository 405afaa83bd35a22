#include "sluice/data/shards/shard_index.h"

#include <gmock/gmock.h>

#include "sluice/data/shards/group.h"
#include "sluice/data/test_files.h"
#include "sluice/data/test_support.h"

namespace sluice::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ShardIndex, IsWrittenAsWds2idxWritesIt) {
  const test::Folder folder;
  const std::string url = folder.write("s.tar", test::archive({{"a.txt", "alpha"},
                                                               {"a.CLS", "1"},
                                                               {"README", "left out"},
                                                               {"d/b.seg.txt", std::string(600, 'b')},
                                                               {"c.txt", ""}}));
  const auto index = index_shard(url);
  ASSERT_TRUE(index) << index.error().what();
  const std::string text = *format_index(*index);
  EXPECT_EQ(text,
            "v1.2 3\ntxt 512 5 a.txt CLS 1536 1 a.CLS\nseg.txt 3584 600 d/b.seg.txt\ntxt 5120 0 c.txt\n");
  EXPECT_THAT(index->starts(), ElementsAre(0, 2048, 4608));
  EXPECT_EQ(index_path(url), folder.path("s.idx"));
  EXPECT_FALSE(read_index(url)->has_value());
  ASSERT_TRUE(write_index(url, *index));
  const auto again = read_index(url);
  ASSERT_TRUE(again && *again);
  EXPECT_EQ(*format_index(**again), text);
}

// Each sample can be read from its start, whatever headers stand before it.
TEST(ShardIndex, StartsAreWhereReadersCanBegin) {
  const test::Folder folder;
  const std::string url = folder.write("s.tar", test::unpacked(test::kTarWebdataset));
  const auto index = index_shard(url);
  ASSERT_TRUE(index);
  const auto starts = index->starts();
  ASSERT_EQ(starts.size(), 3u);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    SourceOptions options;
    options.begin = starts[i];
    ShardReader reader(*open_source(url, options), Wanted{});
    RawSample sample;
    for (std::size_t k = i; k < starts.size(); ++k) {
      ASSERT_TRUE(*reader.next(sample));
      EXPECT_EQ(sample.fields[0].member, index->samples[k][0].name);
    }
    EXPECT_FALSE(*reader.next(sample));
  }
}

TEST(ShardIndex, PathsAreCutAtTheFirstDot) {
  EXPECT_EQ(index_path("a.b/train-0.tar.gz"), "a.b/train-0.idx");
  EXPECT_EQ(index_path("gs://bucket/x.tar"), "gs://bucket/x.idx");
  EXPECT_EQ(index_path("x"), "x.idx");
}

TEST(ShardIndex, DamageIsNamed) {
  for (const auto& [text, what] : std::vector<std::pair<std::string, std::string>>{
           {"", "begins with 'v1.2 SAMPLES'"},
           {"v1.1 1\ntxt 0 1\n", "begins with 'v1.2 SAMPLES'"},
           {"v1.2 x\n", "begins with 'v1.2 SAMPLES'"},
           {"v1.2 2\ntxt 512 5 a.txt\n", "expected 2 samples"},
           {"v1.2 1\ntxt 512 five a.txt\n", "x.idx, line 2: expected 'EXTENSION OFFSET SIZE NAME'"},
           {"v1.2 1\ntxt 512 5\n", "x.idx, line 2"},
           {"v1.2 1\ntxt 99999999999999999999 5 a.txt\n", "x.idx, line 2"},
           {"v1.2 1\n\n", "a sample without members"}}) {
    const auto index = parse_index(text, "x.idx");
    ASSERT_FALSE(index) << text;
    EXPECT_THAT(index.error().what(), HasSubstr(what));
  }
  const ShardIndex nameless{{{{"", 512, 1, "a."}}}};
  EXPECT_THAT(format_index(nameless).error().what(), HasSubstr("a name with an extension"));
}

TEST(ShardIndex, NoBytesOfAnotherFileAreShown) {
  const auto error = [](std::string_view text) {
    return std::string(parse_index(text, "x.idx").error().what());
  };
  EXPECT_EQ(error(std::string_view("MMIDIDX\0\0\1\0\0", 12)),
            "x.idx: expected the index of a shard (.tar), found the index of a token file");
  EXPECT_THAT(error("v1.2\x01 \x02\n"), testing::HasSubstr("found other bytes than text: make it again"));
}

TEST(ShardIndex, NamesMayHoldWhiteSpace) {
  const test::Folder folder;
  const std::vector<std::string> names = {"a b.left eye.txt", "100%.txt", "%20.txt", "c\td\n.txt",
                                          "%2520.txt"};
  test::Members members;
  for (const std::string& name : names) members.emplace_back(name, "x");
  const std::string url = folder.write("s-0.tar", test::archive(members));
  const auto index = index_shard(url);
  ASSERT_TRUE(index) << index.error().what();
  ASSERT_TRUE(write_index(url, *index));
  const auto read = read_index(url);
  ASSERT_TRUE(read && *read) << read.error().what();
  EXPECT_EQ((*read)->starts(), index->starts());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ((*read)->samples[i][0].name, names[i]);
    EXPECT_EQ((*read)->samples[i][0].extension, index->samples[i][0].extension);
  }
}

TEST(ShardIndex, SizesKeepTheSumsOfShards) {
  const test::Folder folder;
  const std::string url = folder.write("s-0.tar", test::archive({{"a.txt", "x"}}));
  ShardSum sum;
  ASSERT_TRUE(index_shard(url, &sum));
  EXPECT_EQ(sum.bytes, 10240u);
  EXPECT_EQ(sum, *sum_source(url));
  const std::string text = format_sizes({{"s-0.tar", {1, sum}}, {"s-1.tar", 3}});
  EXPECT_THAT(text, HasSubstr("\"s-0.tar\": 1,\n \"s-1.tar\": 3,\n \"checksums\""));
  const auto sizes = parse_sizes(text, "sizes.json");
  ASSERT_TRUE(sizes) << sizes.error().what();
  EXPECT_EQ(sizes->size(), 2u);
  EXPECT_EQ(sizes->at("s-0.tar").sum, sum);
  EXPECT_FALSE(sizes->at("s-1.tar").sum);
}

TEST(ShardIndex, NamesMayBeAnyBytes) {
  const test::Folder folder;
  ShardSum sum{10240, 7};
  const ShardSizes sizes = {{"caf\xe9-0.tar", {1, sum}}, {R"(caf\xe9-0.tar)", 2}, {"größe.tar", 3}};
  const std::string text = format_sizes(sizes);
  EXPECT_THAT(text, HasSubstr(R"("caf\\xe9-0.tar": 1)"));
  const auto read = parse_sizes(text, "sizes.json");
  ASSERT_TRUE(read) << read.error().what();
  ASSERT_EQ(read->size(), 3u);
  for (const auto& [name, record] : sizes) {
    EXPECT_EQ(read->at(name).samples, record.samples);
    EXPECT_EQ(read->at(name).sum, record.sum);
  }
  const std::string url = folder.write("caf\xe9-0.tar", test::archive({{"a\xff.txt", "x"}}));
  ASSERT_TRUE(write_index(url, *index_shard(url)));
  EXPECT_EQ((*read_index(url))->samples[0][0].name, "a\xff.txt");
}

TEST(ShardIndex, SizesAreReadFromTheFolder) {
  const test::Folder folder;
  const std::string url = folder.path("s-0.tar");
  EXPECT_FALSE(read_sizes(url)->has_value());
  folder.write("sizes.json", format_sizes({{"s-0.tar", 20}, {"s-1.tar", 3}}));
  const auto sizes = read_sizes(url);
  ASSERT_TRUE(sizes && *sizes);
  EXPECT_EQ((*sizes)->at("s-1.tar").samples, 3);
  EXPECT_FALSE((*sizes)->at("s-1.tar").sum);
  for (const char* text : {"[1]", "{\"a\": -1}", "{\"a\": 1.5}", "{", "", "{\"checksums\": 3}",
                           "{\"a\": 1, \"checksums\": {\"a\": {\"bytes\": 1, \"crc32c\": \"?\"}}}"})
    EXPECT_THAT(parse_sizes(text, "sizes.json").error().what(), HasSubstr("sizes.json: expected"));
}

}  // namespace
}  // namespace sluice::data
