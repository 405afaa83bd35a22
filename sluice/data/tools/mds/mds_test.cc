// Sets in MDS, good ones and bad ones. tests/python/mds_oracle.py reads those of the format's own package.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "sluice/base/files/file.h"
#include "sluice/data/dataset.h"
#include "sluice/data/tools/mds/mds.h"
#include "sluice/data/tools/mds/mds_import.h"
#include "sluice/data/tools/mds/mds_values.h"

namespace sluice::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename Number>
std::string bytes_of(std::initializer_list<Number> numbers) {
  return {reinterpret_cast<const char*>(numbers.begin()), numbers.size() * sizeof(Number)};
}
std::string u32(std::uint32_t number) { return bytes_of({number}); }

// Samples with a number (int), a text (str) and ids (ndarray:uint16).
std::string sample_of(std::int64_t number) {
  const std::string text(static_cast<std::size_t>(number % 4), 'x');
  std::string ids = bytes_of<std::uint8_t>({1 << 2, 3});  // one extent, of uint8: 3
  ids += bytes_of<std::uint16_t>({static_cast<std::uint16_t>(number), 7, 65535});
  return u32(static_cast<std::uint32_t>(ids.size())) + u32(static_cast<std::uint32_t>(text.size())) + ids +
         bytes_of<std::int64_t>({number - 2}) + text;
}
std::string shard_of(const std::vector<std::string>& samples) {
  const std::string config = "{\"a\": 1}";
  auto at = static_cast<std::uint32_t>(8 + 4 * samples.size() + config.size());
  std::string head = u32(static_cast<std::uint32_t>(samples.size())) + u32(at), body;
  for (const std::string& sample : samples) {
    body += sample;
    head += u32(at += static_cast<std::uint32_t>(sample.size()));
  }
  return head + config + body;
}

const std::vector<MdsColumn>& columns() {
  static const std::vector<MdsColumn> kColumns = {
      {"ids", "ndarray:uint16", std::nullopt}, {"number", "int", 8}, {"text", "str", std::nullopt}};
  return kColumns;
}

std::string shard_entry(const std::string& name, std::size_t bytes, int samples,
                        const std::string& hashes = "") {
  return base::str(
      "{\"column_encodings\": [\"ndarray:uint16\", \"int\", \"str\"], \"column_names\": [\"ids\", "
      "\"number\", \"text\"], \"column_sizes\": [null, 8, null], \"compression\": null, \"format\": "
      "\"mds\", \"hashes\": [], \"raw_data\": {\"basename\": \"",
      name, "\", \"bytes\": ", bytes, ", \"hashes\": {", hashes, "}}, \"samples\": ", samples,
      ", \"size_limit\": 100, \"version\": 2, \"zip_data\": null}");
}
std::string index_of(const std::vector<std::string>& shards) {
  return base::str("{\"shards\": [", base::join(shards, ", "), "], \"version\": 2}");
}

template <typename T>
std::string error_of(const base::Result<T>& result) {
  return result ? "no error" : result.error().what();
}

class Mds : public testing::Test {
 protected:
  Mds() : folder_(base::value_or_throw(base::TemporaryDirectory::create())) {
    write("shard.00000.mds", first_);
    write("shard.00001.mds", second_);
    write("index.json", index_of({shard_entry("shard.00000.mds", first_.size(), 3,
                                              "\"sha1\": \"" + sha1_ + "\", \"xxh64\": \"0\""),
                                  shard_entry("shard.00001.mds", second_.size(), 2)}));
  }
  void write(const std::string& name, const std::string& bytes) {
    base::value_or_throw(base::write_file_atomically(folder_.path(name), bytes));
  }
  base::Result<MdsReport> pack(std::vector<std::string> taken = {}) {
    MdsOptions options{folder_.path(), std::move(taken), {}};
    options.shards.folder = folder_.path("out");
    options.shards.shard_size = 2;
    options.shards.overwrite = true;
    return pack_mds(options);
  }

  base::TemporaryDirectory folder_;
  const std::string first_ = shard_of({sample_of(0), sample_of(1), sample_of(2)});
  const std::string second_ = shard_of({sample_of(3), sample_of(4)});
  const std::string sha1_ = "4d12a00378d60f91c5f4a97002ee9310c38aaedd";  // of first_, by hashlib
};

TEST_F(Mds, BecomesShardsInItsOrder) {
  const auto report = pack();
  ASSERT_TRUE(report) << error_of(report);
  EXPECT_EQ(report->shards.samples, 5);
  EXPECT_EQ(report->shards.shards.size(), 3u);
  EXPECT_THAT(report->members, ElementsAre(std::pair("ids.npy", "ndarray:uint16"),
                                           std::pair("number.cls", "int"), std::pair("text.txt", "str")));
  EXPECT_THAT(report->unknown_hashes, ElementsAre("xxh64"));
  const auto stream = WebDataset(folder_.path("out/train-{0000..0002}.tar"))
                          .decode("l")
                          .to_tuple("ids.npy", "number.cls", "text.txt", "__key__")
                          .batch(5)
                          .open();
  const auto batch = stream->next();
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(batch->columns[0].array.describe(), "int32 [5, 3]");
  for (int i = 0; i < 5; ++i) {
    const auto* const ids = batch->columns[0].array.data<std::int32_t>() + 3 * i;
    EXPECT_THAT(std::vector<std::int32_t>(ids, ids + 3), ElementsAre(i, 7, 65535));
    EXPECT_EQ(batch->columns[1].array.data<std::int64_t>()[i], i - 2);
    EXPECT_EQ(batch->columns[2].text[i], std::string(static_cast<std::size_t>(i % 4), 'x'));
    EXPECT_EQ(batch->columns[3].text[i], base::str("000000", i));
  }
  EXPECT_THAT(error_of(pack({"nothing"})), HasSubstr("expected one of ids, number, text"));
  EXPECT_THAT(error_of(pack({"ids=x", "text=X"})), HasSubstr("two columns would be the member x"));
  EXPECT_THAT(error_of(pack({"ids=a/b"})), HasSubstr("'a/b' cannot be the extension"));
}

TEST_F(Mds, EachPlaceWhereAShardIsCutOffIsAnError) {
  for (std::size_t size = 0; size < first_.size(); ++size)
    EXPECT_FALSE(MdsShard::parse(first_.substr(0, size), columns(), 3)) << size;
  EXPECT_THAT(error_of(MdsShard::parse(first_, columns(), 4)),
              HasSubstr("has 3 samples, and the index says 4"));
  // A value that says it is larger than what is left of its sample, and one that leaves something.
  for (const auto& [size, expected] :
       {std::pair(9999U, "'text' has 9999 bytes, and 2 are left of the sample"),
        std::pair(1U, "has 26 bytes, which its columns do not fill")}) {
    const std::string sample = sample_of(2);
    const auto shard =
        MdsShard::parse(shard_of({sample.substr(0, 4) + u32(size) + sample.substr(8)}), columns(), 1);
    ASSERT_TRUE(shard);
    EXPECT_THAT(error_of(shard->sample(0)), HasSubstr(expected));
  }
  write("shard.00001.mds", second_.substr(0, 40));
  EXPECT_THAT(error_of(pack()), HasSubstr("shard.00001.mds: it has 40 bytes, and index.json says"));
  std::filesystem::remove(folder_.path("shard.00001.mds"));
  EXPECT_THAT(error_of(pack()), HasSubstr("shard.00001.mds"));
  std::string changed = first_;
  changed.back() ^= 1;
  write("shard.00000.mds", changed);
  EXPECT_THAT(error_of(pack()), HasSubstr("shard.00000.mds: its sha1 sum is "));
}

TEST_F(Mds, AnIndexOfSomethingElseIsAnError) {
  const auto read = [&](const std::string& text) { return error_of(parse_mds_index(text)); };
  const std::string good = index_of({shard_entry("a", 1, 1)});
  EXPECT_EQ(read(good), "no error");
  const auto with = [&](const std::string& old, const std::string& put) {
    std::string text = good;
    return text.replace(text.find(old), old.size(), put);
  };
  EXPECT_THAT(read("{"), HasSubstr("no index of MDS shards"));
  EXPECT_THAT(read("{}"), HasSubstr("'shards' is missing"));
  EXPECT_THAT(read(index_of({})), HasSubstr("it lists no shards"));
  EXPECT_THAT(read(with("\"version\": 2", "\"version\": 3")), HasSubstr("expected mds in version 2"));
  EXPECT_THAT(read(with("\"mds\"", "\"json\"")), HasSubstr("the format 'json'"));
  EXPECT_THAT(read(with("\"basename\": \"a", "\"basename\": \"../a")),
              HasSubstr("outside of the set's folder"));
  for (const char* name : {"/a", "b/../../a", "./", "..", ""})
    EXPECT_THAT(read(with("\"basename\": \"a\"", base::str("\"basename\": \"", name, "\""))),
                HasSubstr("outside of the set's folder"))
        << name;
  EXPECT_THAT(read(with("\"bytes\": 1", "\"bytes\": -1")), HasSubstr("'bytes' is not a number"));
  EXPECT_THAT(read(with("[null, 8, null]", "[null, 8]")), HasSubstr("3 columns, 3 encodings and 2 sizes"));
  write("index.json", with("\"int\"", "\"float128\""));
  EXPECT_THAT(error_of(pack()), HasSubstr("column 'number': the encoding 'float128' is not known"));
  write("index.json", with("\"int\"", "\"pkl\""));
  EXPECT_THAT(error_of(pack()), HasSubstr("a program that runs when it is read"));
  write("index.json", with("\"int\"", "\"int32\""));
  EXPECT_THAT(error_of(pack()), HasSubstr("has 8 bytes a value, which is not the encoding's size"));
  std::filesystem::remove(folder_.path("index.json"));
  EXPECT_THAT(error_of(pack()), HasSubstr("expected the folder of a set of MosaicML's Streaming"));
}

TEST(MdsValues, DamagedOnesAreErrors) {
  const auto read = [](const std::string& encoding, const std::string& value) {
    return error_of(mds_members(base::value_or_throw(parse_mds_encoding(encoding)), value));
  };
  EXPECT_THAT(read("ndarray", ""), HasSubstr("an array has no bytes"));
  EXPECT_THAT(read("ndarray", "\x63"), HasSubstr("element type is 99"));
  EXPECT_THAT(read("ndarray", bytes_of<std::uint8_t>({8, 1 << 2})), HasSubstr("cut off inside its shape"));
  EXPECT_THAT(read("ndarray", bytes_of<std::uint8_t>({8, 1 << 2, 3, 0, 0})),
              HasSubstr("uint8 [3] needs 3 bytes, found 2"));
  EXPECT_THAT(read("ndarray:int64", bytes_of<std::uint8_t>({2 << 2 | 1, 255, 255, 255, 255})),
              HasSubstr("found 0"));
  EXPECT_THAT(read("ndarray:uint64:1", bytes_of<std::uint64_t>({1ULL << 63})), HasSubstr("above 2^63"));
  EXPECT_THAT(read("int", "1234567"), HasSubstr("int64 [] needs 8 bytes"));
  EXPECT_THAT(read("str_int", "1e3"), HasSubstr("a whole number is '1e3'"));
  EXPECT_THAT(read("json", "{"), testing::Not("no error"));
  EXPECT_THAT(read("pil", u32(2) + u32(2) + u32(9)), HasSubstr("cut off inside its header"));
  EXPECT_THAT(read("pil", u32(2) + u32(2) + u32(1) + "L123"),
              HasSubstr("2 × 2 pixels in mode L has 3 bytes"));
  EXPECT_THAT(read("pil", u32(2) + u32(2) + u32(4) + "CMYK1234"),
              HasSubstr("mode 'CMYK': expected 1, L, RGB or RGBA"));
  EXPECT_THAT(read("pil", u32(0xFFFFFFFF) + u32(0xFFFFFFFF) + u32(4) + "RGBA"), HasSubstr("has 0 bytes"));
  EXPECT_THAT(read("jpegarray", u32(2) + u32(1)), HasSubstr("cut off inside its header"));
  EXPECT_THAT(read("jpegarray", u32(1) + u32(3) + "ab"), HasSubstr("image 0 of a list is cut off"));
  EXPECT_THAT(read("list[png]", u32(0) + u32(1) + u32(1) + "abc"), HasSubstr("bytes are left"));
  for (const char* const bad : {"ndarray:float8", "ndarray:int8:0",
                                "ndarray:int8:4294967295,4294967295,4294967295", "int8:3", "list[pkl]", ""})
    EXPECT_FALSE(parse_mds_encoding(bad)) << bad;
}

TEST(MdsValues, IdsAreWholeNumbersOfKnownTypes) {
  const auto bytes = base::value_or_throw(parse_mds_encoding("bytes"));
  EXPECT_EQ(base::value_or_throw(mds_ids(bytes, "int64", bytes_of<std::int64_t>({5, 70000}))),
            (std::vector<std::uint32_t>{5, 70000}));
  EXPECT_THAT(error_of(mds_ids(bytes, "", "12")), HasSubstr("--id-type"));
  EXPECT_THAT(error_of(mds_ids(bytes, "float32", "1234")), HasSubstr("'float32' is not one of their types"));
  EXPECT_THAT(error_of(mds_ids(bytes, "uint32", "12345")), HasSubstr("5 bytes are not numbers of 4 bytes"));
  EXPECT_THAT(error_of(mds_ids(bytes, "int64", bytes_of<std::int64_t>({-1}))),
              HasSubstr("the id -1 is not a token"));
  EXPECT_THAT(error_of(mds_ids(base::value_or_throw(parse_mds_encoding("str")), "", "a")),
              HasSubstr("it holds no tokens"));
}

}  // namespace
}  // namespace sluice::data
