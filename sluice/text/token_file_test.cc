#include "sluice/text/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "sluice/base/files/file.h"
#include "sluice/text/test_tokenizer.h"
#include "sluice/text/test_tokens.h"
#include "sluice/text/tools/pack.h"
#include "sluice/text/tools/token_format.h"
#include "sluice/text/tools/token_writer.h"

namespace sluice::text {
namespace {

using test::thrown;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<std::uint32_t>;

class TokenFiles : public ::testing::Test {
 protected:
  std::string write(const std::string& name, int width, const std::vector<Ids>& documents) {
    const std::string path = folder_.path(name);
    test::token_file(path, documents, width);
    return path;
  }
  // A file with a number in another place.
  template <typename T>
  void patch(const std::string& path, std::size_t at, T value) {
    std::string bytes = base::value_or_throw(base::read_file(path));
    std::memcpy(bytes.data() + at, &value, sizeof value);
    base::value_or_throw(base::write_file_atomically(path, bytes));
  }
  void cut(const std::string& path, std::size_t less) {
    std::string bytes = base::value_or_throw(base::read_file(path));
    base::value_or_throw(base::write_file_atomically(path, bytes.substr(0, bytes.size() - less)));
  }

  base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
};

TEST_F(TokenFiles, GiveBackWhatWasWritten) {
  for (const int width : {2, 4}) {
    const std::uint32_t large = width == 2 ? 65'535 : 200'000;
    const std::string path = write("a" + std::to_string(width), width, {{1, 2, 3}, {}, {large}});
    const auto set = TokenSet::open(path + ".bin::" + path + ".bin");
    EXPECT_EQ(set.documents(), 6u);
    EXPECT_EQ(set.tokens(), 8u);
    EXPECT_EQ(set.files()[0].width(), width);
    EXPECT_THAT(set.document(0), ElementsAre(1, 2, 3));
    EXPECT_THAT(set.document(4), ElementsAre());
    EXPECT_THAT(set.document(5), ElementsAre(large));
    EXPECT_THAT(thrown([&] { set.document(6); }), HasSubstr("document 6 of 6"));
    Ids ids(2);
    set.files()[0].copy(2, 2, ids.data());
    EXPECT_THAT(ids, ElementsAre(3, large));
    EXPECT_THAT(thrown([&] { set.files()[0].copy(3, 2, ids.data()); }),
                HasSubstr("2 tokens from 3 on, and there are 4"));
  }
}

TEST_F(TokenFiles, AreReadAsOneSet) {
  write("train-0000", 2, {{1, 2, 3}, {4}});
  write("train-0001", 2, {{5, 6, 7, 8}});
  const std::string& folder = folder_.path();
  std::size_t longest = 0;
  // [token_set]
  const auto set = sluice::text::TokenSet::open(folder + "/train-*.bin");
  for (std::size_t i = 0; i < set.documents(); ++i) {
    const std::vector<std::uint32_t> ids = set.document(i);
    longest = std::max(longest, ids.size());
  }
  // [end]
  EXPECT_EQ(set.documents(), 3u);
  EXPECT_EQ(longest, 4u);
  EXPECT_EQ(set.length(2), 4u);
}

TEST_F(TokenFiles, NameTheFirstIdThatIsNoToken) {
  const auto file = TokenFile::open(write("a", 2, {{1, 2}, {3}, {4, 500, 6}}));
  file.check(501);
  EXPECT_THAT(thrown([&] { file.check(500); }),
              HasSubstr("the id 500 at place 1 of document 2 (token 4 of the file) is not below"));
  auto writer = base::value_or_throw(TokenWriter::create(folder_.path("b"), 2));
  const Ids large = {1, 70'000};
  const auto status = writer.add(large.data(), large.size());
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what(), HasSubstr("the id 70000 at place 1 of document 0 does not fit 2 bytes"));
}

TEST_F(TokenFiles, SayWhatStandsInTheirPlace) {
  const std::string set = folder_.path("set"), shard = folder_.path("a.tar");
  base::value_or_throw(base::make_directories(set));
  base::value_or_throw(base::write_file_atomically(shard, ""));
  write("set/a", 2, {{1, 2}});
  const auto message = [](const std::string& files) { return thrown([&] { TokenSet::open(files); }); };
  EXPECT_EQ(message(set), "'" + set + "' is a folder, expected token files: write '" + set + "/*.bin'");
  EXPECT_EQ(message(set + "/"),
            "'" + set + "/' is a folder, expected token files: write '" + set + "/*.bin'");
  EXPECT_EQ(message(folder_.path("*.tar")), "'" + shard +
                                                "' is a shard, expected token files: "
                                                "'sluice text pack' makes them of it");
  base::value_or_throw(base::remove_file(set + "/a.idx"));
  EXPECT_THAT(message(set + "/a.bin"), HasSubstr(": cannot open " + set + "/a.idx: "));
}

TEST_F(TokenFiles, SayHowAnIndexIsWrong) {
  const auto message = [&](const std::string& path) { return thrown([&] { TokenFile::open(path); }); };
  std::string path = write("cut", 2, {{1, 2}, {3}});
  cut(path + ".bin", 2);
  EXPECT_THAT(message(path),
              HasSubstr("sequence 1 ends at byte 6, and " + path + ".bin has 4: it is cut off"));
  path = write("short", 2, {{1, 2}, {3}});
  cut(path + ".idx", 8);
  EXPECT_THAT(message(path),
              HasSubstr("do not hold 2 sequences and 3 starts of documents: it is cut off or damaged"));
  path = write("many", 2, {{1, 2}, {3}});
  patch<std::uint64_t>(path + ".idx", sizeof kIndexMagic + 9, ~std::uint64_t{0} / 4);
  EXPECT_THAT(message(path), HasSubstr("it is cut off or damaged"));
  path = write("length", 2, {{1, 2}, {3}});
  patch<std::int32_t>(path + ".idx", kIndexHeader, -5);
  EXPECT_THAT(message(path), HasSubstr("sequence 0 has -5 ids at byte 0"));
  path = write("place", 2, {{1, 2}, {3}});
  patch<std::int64_t>(path + ".idx", kIndexHeader + 8 + 8, 400);
  EXPECT_THAT(message(path), HasSubstr("sequence 1 has 1 ids at byte 400, expected some at byte 4"));
  path = write("start", 2, {{1, 2}, {3}});
  patch<std::int64_t>(path + ".idx", kIndexHeader + 8 + 16 + 8, 7);
  EXPECT_THAT(message(path), HasSubstr("document 1 begins with sequence 7 of 2"));
  path = write("type", 2, {{1, 2}});
  patch<std::uint8_t>(path + ".idx", sizeof kIndexMagic + 8, 6);
  EXPECT_THAT(message(path), HasSubstr("ids of the element type 6; known are 8 (uint16) and 4 (int32)"));
  path = write("version", 2, {{1, 2}});
  patch<std::uint64_t>(path + ".idx", sizeof kIndexMagic, 2);
  EXPECT_THAT(message(path), HasSubstr("version 2 of the index; known is 1"));
  base::value_or_throw(base::write_file_atomically(folder_.path("plain.bin"), "abcd"));
  EXPECT_THAT(message(folder_.path("plain.bin")), HasSubstr("becomes one by 'sluice text import'"));
}

class Exchange : public TokenFiles {
 protected:
  TokenImportOptions options(TokenFormat format, const std::string& file) {
    TokenImportOptions options;
    options.format = format;
    options.files = {file};
    options.set.folder = folder_.path("out");
    options.set.overwrite = true;
    return options;
  }
};

TEST_F(Exchange, ThereAndBackAgain) {
  const std::vector<Ids> documents = {{7, 8, 50256}, {50256}, {9, 50256}};
  const std::string path = write("set", 4, documents);
  for (const TokenFormat format : {TokenFormat::kNanoGpt, TokenFormat::kLlmC, TokenFormat::kMegatron}) {
    const std::string file = folder_.path("there.bin");
    base::value_or_throw(export_tokens(path + ".bin", format, file, true));
    auto wanted = options(format, file);
    if (format != TokenFormat::kMegatron) wanted.ends_with = 50256;
    wanted.set.shard_tokens = 4;
    const auto report = base::value_or_throw(import_tokens(wanted));
    EXPECT_EQ(report.documents, 3u);
    EXPECT_EQ(report.tokens, 6u);
    EXPECT_EQ(report.files.size(), 2u);
    const auto set = TokenSet::open(folder_.path("out/train-*.bin"));
    for (std::size_t i = 0; i < documents.size(); ++i) EXPECT_EQ(set.document(i), documents[i]) << i;
  }
  auto begins = options(TokenFormat::kNanoGpt, folder_.path("begins.bin"));
  base::value_or_throw(export_tokens(path + ".bin", begins.format, begins.files[0], true));
  begins.begins_with = 50256;
  base::value_or_throw(import_tokens(begins));
  const auto set = TokenSet::open(folder_.path("out/train-*.bin"));
  EXPECT_THAT(set.document(0), ElementsAre(7, 8));
  EXPECT_THAT(set.document(2), ElementsAre(50256, 9));
}

TEST_F(Exchange, AnImportIsNotContinuedFromAnotherFileOfItsSize) {
  const std::string file = folder_.path("ids.bin");
  const auto write_ids = [&](const std::vector<std::uint16_t>& ids) {
    const std::string bytes(reinterpret_cast<const char*>(ids.data()), 2 * ids.size());
    base::value_or_throw(base::write_file_atomically(file, bytes));
  };
  auto wanted = options(TokenFormat::kNanoGpt, file);
  wanted.vocabulary = 256;
  wanted.ends_with = 9;
  wanted.set.shard_tokens = 4;
  write_ids({1, 2, 3, 9, 4, 5, 6, 9, 300});
  EXPECT_FALSE(import_tokens(wanted));
  write_ids({11, 2, 3, 9, 14, 5, 6, 9, 7});
  const auto report = base::value_or_throw(import_tokens(wanted));
  EXPECT_EQ(report.continued, 0u);
  EXPECT_EQ(TokenSet::open(folder_.path("out/train-*.bin")).document(0), (Ids{11, 2, 3, 9}));
}

// A shard of MDS whose samples are int64 ids in bytes.
std::string mds_shard(const std::vector<std::vector<std::int64_t>>& samples) {
  const auto number = [](std::size_t value) {
    const auto small = static_cast<std::uint32_t>(value);
    return std::string(reinterpret_cast<const char*>(&small), sizeof small);
  };
  std::size_t at = 8 + 4 * samples.size();
  std::string head = number(samples.size()) + number(at), body;
  for (const auto& ids : samples) {
    body += number(8 * ids.size());
    body.append(reinterpret_cast<const char*>(ids.data()), 8 * ids.size());
    head += number(at += 4 + 8 * ids.size());
  }
  return head + body;
}

TEST_F(Exchange, ASetOfStreamingGoesOnBehindABadShard) {
  const std::vector<std::string> shards = {mds_shard({{1, 2, 9, 3}, {4, 9, 5, 6}}),
                                           mds_shard({{7, 8, 9, 1}, {2, 3, 9, 9}})};
  std::vector<std::string> entries;
  for (std::size_t i = 0; i < shards.size(); ++i)
    entries.push_back(base::str(
        R"({"column_names": ["tokens"], "column_encodings": ["bytes"], "column_sizes": [null], "compression": null, )",
        R"("format": "mds", "hashes": [], "samples": 2, "size_limit": null, "version": 2, "zip_data": null, )",
        R"("raw_data": {"basename": "shard.)", i, R"(.mds", "bytes": )", shards[i].size(),
        R"(, "hashes": {}}})"));
  base::value_or_throw(base::write_file_atomically(
      folder_.path("index.json"),
      base::str("{\"version\": 2, \"shards\": [", base::join(entries, ", "), "]}")));
  auto wanted = options(TokenFormat::kMds, folder_.path());
  wanted.set.shard_tokens = 3;
  const auto message = [&] {
    const auto report = import_tokens(wanted);
    return report ? std::string("no error") : std::string(report.error().what());
  };
  base::value_or_throw(base::write_file_atomically(folder_.path("shard.0.mds"), shards[0]));
  EXPECT_THAT(message(), HasSubstr("its bytes do not say what numbers they are: expected --id-type"));
  wanted.id_type = "int64";
  wanted.ends_with = 9;
  EXPECT_THAT(message(), HasSubstr("shard.1.mds"));  // is not there
  base::value_or_throw(base::write_file_atomically(folder_.path("shard.1.mds"), shards[1]));
  const auto report = base::value_or_throw(import_tokens(wanted));
  EXPECT_EQ(report.continued, 2u);
  const auto set = TokenSet::open(folder_.path("out/train-*.bin"));
  ASSERT_EQ(set.documents(), 5u);
  EXPECT_THAT(set.document(0), ElementsAre(1, 2, 9));
  EXPECT_THAT(set.document(1), ElementsAre(3, 4, 9));
  EXPECT_THAT(set.document(2), ElementsAre(5, 6, 7, 8, 9));
  EXPECT_THAT(set.document(3), ElementsAre(1, 2, 3, 9));
  EXPECT_THAT(set.document(4), ElementsAre(9));
  wanted.column = "ids";
  EXPECT_THAT(message(), HasSubstr("has no column 'ids': expected --column with one of tokens"));
}

TEST_F(Exchange, SaysWhatIsWrongWithAFile) {
  const auto message = [&](TokenFormat format, std::string_view bytes, std::size_t vocabulary = 65'536) {
    const std::string file = folder_.path("foreign.bin");
    base::value_or_throw(base::write_file_atomically(file, bytes));
    auto wanted = options(format, file);
    wanted.vocabulary = vocabulary;
    const auto report = import_tokens(wanted);
    return report ? std::string("no error") : std::string(report.error().what());
  };
  EXPECT_THAT(message(TokenFormat::kNanoGpt, "abc"), HasSubstr("3 bytes: expected uint16 ids"));
  EXPECT_THAT(message(TokenFormat::kNanoGpt, std::string("\1\0\0\1", 4), 256),
              HasSubstr("the id 256 at place 1 is not below the vocabulary's size 256"));
  EXPECT_THAT(message(TokenFormat::kLlmC, "abcd"),
              HasSubstr("expected llm.c's header (20240520, 1 or 20240801, 7), found 0, 0"));
  const std::string path = write("set", 2, {{1, 2, 3}});
  const std::string file = folder_.path("llmc.bin");
  base::value_or_throw(export_tokens(path + ".bin", TokenFormat::kLlmC, file, false));
  const std::string whole = base::value_or_throw(base::read_file(file));
  EXPECT_EQ(whole.size(), 1024u + 6);
  EXPECT_THAT(message(TokenFormat::kLlmC, whole.substr(0, 1028)),
              HasSubstr("its header says 3 tokens of 2 bytes, and 4 bytes follow"));
  const auto again = export_tokens(path + ".bin", TokenFormat::kLlmC, file, false);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Code::kAlreadyExists);
}

}  // namespace
}  // namespace sluice::text
