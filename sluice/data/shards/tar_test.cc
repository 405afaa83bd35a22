#include "sluice/data/shards/tar.h"

#include <gmock/gmock.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdlib>

#include "sluice/data/shards/group.h"
#include "sluice/data/test_files.h"
#include "sluice/data/test_support.h"

namespace sluice::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

struct Everything {
  std::vector<Member> members;
  test::Members files;
};

base::Result<Everything> read_tar(std::unique_ptr<Source> source, bool skip_payloads = false) {
  TarReader tar(std::move(source));
  Everything result;
  Member member;
  while (true) {
    SLUICE_TRY(const bool found, tar.next(member));
    if (!found) return result;
    std::string payload;
    if (!skip_payloads) SLUICE_OK(tar.read_payload(payload));
    result.members.push_back(member);
    if (member.kind == MemberKind::kFile) result.files.emplace_back(member.name, payload);
  }
}

base::Result<Everything> read_tar(const std::string& bytes, bool skip_payloads = false) {
  return read_tar(memory_source("shard.tar", bytes), skip_payloads);
}

const std::string& small_archive() {
  static const std::string kBytes = test::archive({{"a.txt", "alpha"},
                                                   {"a.cls", "1"},
                                                   {std::string(150, 'n') + ".txt", "long"},
                                                   {"b.txt", std::string(600, 'b')}});
  return kBytes;
}

TEST(Tar, ReadsWhatTheWriterWrote) {
  const auto result = read_tar(small_archive());
  ASSERT_TRUE(result) << result.error().what();
  EXPECT_THAT(result->files, ElementsAre(Pair("a.txt", "alpha"), Pair("a.cls", "1"),
                                         Pair(std::string(150, 'n') + ".txt", "long"),
                                         Pair("b.txt", std::string(600, 'b'))));
  EXPECT_EQ(result->members[1].offset, 1024u);
  EXPECT_EQ(small_archive().size() % 10240, 0u);
}

TEST(Tar, NamesOfEveryLengthSurvive) {
  for (std::size_t length = 1; length < 300; length += 7) {
    for (const bool folders : {false, true}) {
      std::string name;
      for (std::size_t i = 0; i < length; ++i)
        name += folders && i % 50 == 30 ? '/' : static_cast<char>('a' + i % 26);
      const auto result = read_tar(test::archive({{name, "x"}}));
      ASSERT_TRUE(result) << result.error().what();
      EXPECT_EQ(result->files[0].first, name);
    }
  }
}

TEST(Tar, ReadsPythonsWebdatasetAndGnuTar) {
  const auto python = read_tar(test::unpacked(test::kTarWebdataset));
  ASSERT_TRUE(python) << python.error().what();
  ASSERT_EQ(python->files.size(), 9u);
  EXPECT_THAT(python->files, ::testing::Contains(Pair("dir/k2.txt", "text 2")));
  EXPECT_THAT(python->files, ::testing::Contains(Pair("dir/k1.cls", "1")));
  const std::string long_name = std::string(120, 'x') + "/" + std::string(110, 'y') + ".txt";
  for (const char* format : {test::kTarGnu, test::kTarPax}) {
    const auto result = read_tar(test::unpacked(format));
    ASSERT_TRUE(result) << result.error().what();
    EXPECT_THAT(result->files, ElementsAre(Pair("short.txt", "short"), Pair(long_name, "long name")));
    ASSERT_EQ(result->members.size(), 4u);
    EXPECT_EQ(result->members[1].kind, MemberKind::kLink);
    EXPECT_EQ(result->members[1].link, "short.txt");
    EXPECT_EQ(result->members[2].kind, MemberKind::kLink);
  }
  EXPECT_THAT(read_tar(test::unpacked(test::kTarUstar))->files, ElementsAre(Pair("short.txt", "short")));
}

// Long names, links, folders, empty files and names outside ASCII, in all formats that GNU tar, bsdtar and
// Python write.
TEST(Tar, ReadsWhatTheToolsOfThisMachineWrite) {
  const test::Folder folder;
  const std::string deep = "d/" + std::string(90, 'f') + "/" + std::string(90, 'g');
  const test::Members files{{"in/a.txt", "alpha"},
                            {"in/a.cls", ""},
                            {"in/" + deep + "/b.txt", std::string(5000, 'b')},
                            {"in/\xc3\xa9.txt", "not ASCII"}};
  for (const auto& [name, bytes] : files) folder.write(name, bytes);
  const std::string cd = "cd " + folder.path() + " && ln -sf a.txt in/link.txt && ";
  std::vector<std::string> commands;
  for (const char* format : {"gnu", "oldgnu", "pax", "posix", "ustar"})
    commands.push_back(base::str("tar --format=", format, " -cf"));
  for (const char* format : {"gnutar", "pax", "paxr", "ustar"})
    commands.push_back(base::str("bsdtar --format ", format, " -cf"));
  for (const char* format : {"USTAR", "GNU", "PAX"})
    commands.push_back(
        base::str("python3 -c 'import sys, tarfile; t = tarfile.open(sys.argv[1], \"w\", format=tarfile.",
                  format, "_FORMAT); t.add(sys.argv[2]); t.close()'"));
  int tools = 0;
  for (const std::string& command : commands) {
    const std::string tool = command.substr(0, command.find(' '));
    if (std::system(("command -v " + tool + " > /dev/null").c_str()) != 0) continue;
    ++tools;
    ASSERT_EQ(std::system((cd + command + " out.tar in").c_str()), 0) << command;
    const auto result = read_tar(*base::read_file(folder.path("out.tar")));
    ASSERT_TRUE(result) << command << ": " << result.error().what();
    EXPECT_THAT(result->files, ::testing::UnorderedElementsAreArray(files)) << command;
    int links = 0;
    for (const Member& member : result->members) links += member.kind == MemberKind::kLink ? 1 : 0;
    EXPECT_EQ(links, 1) << command;
  }
  if (tools == 0) GTEST_SKIP() << "neither tar, bsdtar nor python3 is installed";
}

// Whatever byte of a shard is cut or flipped: the samples are what they were, or there is an error.
TEST(Tar, NoSampleIsChangedInSilence) {
  const test::Members members{{"a.txt", "alpha"}, {"a.cls", "1"}, {"b.txt", "beta"}, {"b.cls", "2"}};
  const std::string whole = test::archive(members);
  const auto read = [](const std::string& bytes) {
    ShardReader reader(memory_source("s.tar", bytes), Wanted{});
    std::string text;
    RawSample sample;
    while (true) {
      const auto found = reader.next(sample);
      if (!found) return std::string("error");
      if (!*found) return text;
      text += sample.key;
      for (const Field& field : sample.fields) text += base::str(" ", field.extension, "=", field.bytes);
      text += "\n";
    }
  };
  const std::string samples = read(whole);
  EXPECT_EQ(samples, "a txt=alpha cls=1\nb txt=beta cls=2\n");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string found = read(whole.substr(0, size));
    ASSERT_TRUE(found == "error" || found == samples) << "cut at " << size;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    if (at < 4096 && at % 1024 >= 512) continue;  // a payload: its images and arrays have checks of their own
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      const std::string found = read(damaged);
      ASSERT_TRUE(found == "error" || found == samples) << "byte " << at << ", bit " << bit;
    }
  }
}

TEST(Tar, SparseMembersAreRefusedByName) {
  for (const char* format : {test::kTarSparseGnu, test::kTarSparsePax}) {
    const auto result = read_tar(test::unpacked(format));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), Code::kUnimplemented);
    EXPECT_THAT(result.error().what(), HasSubstr("sparse"));
    EXPECT_THAT(result.error().what(), HasSubstr("s.bin"));
  }
}

// Everything before the end marker's second block is complete is an error; later cuts lose only padding.
TEST(Tar, EveryTruncationIsAnError) {
  const std::string& whole = small_archive();
  const std::size_t marker_end = [&] {
    std::string bytes;
    const auto all = read_tar(whole);
    for (const auto& [name, payload] : all->files) bytes += tar_member(name, payload);
    return bytes.size() + 1024;
  }();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    for (const bool skip : {false, true}) {
      const auto result = read_tar(whole.substr(0, size), skip);
      ASSERT_EQ(result.has_value(), size >= marker_end) << "cut at " << size;
      if (result) continue;
      EXPECT_EQ(result.error().code(), Code::kDataLoss);
      EXPECT_THAT(result.error().what(), HasSubstr("shard.tar: "));
    }
  }
  EXPECT_THAT(read_tar(whole.substr(0, 515)).error().what(),
              HasSubstr("inside member a.txt (header at byte 0)"));
  EXPECT_THAT(read_tar(whole.substr(0, 1024)).error().what(),
              HasSubstr("cut off at byte 1024, after member a.txt"));
  EXPECT_THAT(read_tar(std::string()).error().what(), HasSubstr("empty"));
}

TEST(Tar, EveryFlippedHeaderByteIsAnError) {
  const std::string& whole = small_archive();
  for (const std::size_t header : {std::size_t{0}, std::size_t{1024}}) {
    for (std::size_t at = header; at < header + 512; ++at) {
      // The checksum's own trailing NUL and space carry nothing.
      if (at - header >= 154 && at - header < 156) continue;
      for (const int bit : {0, 3, 7}) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
        const auto result = read_tar(damaged);
        ASSERT_FALSE(result) << "byte " << at << " bit " << bit;
        EXPECT_THAT(result.error().what(), HasSubstr("at byte " + std::to_string(header)));
      }
    }
  }
}

TEST(Tar, WhatFollowsTheEndIsNotLostInSilence) {
  const auto joined = read_tar(small_archive() + small_archive());
  ASSERT_FALSE(joined);
  EXPECT_THAT(joined.error().what(), HasSubstr("data follows the end marker"));
  EXPECT_TRUE(read_tar(small_archive() + std::string(100'000, '\0')));
  std::string lone = tar_member("a.txt", "x") + std::string(512, '\0') + tar_member("b.txt", "y");
  EXPECT_THAT(read_tar(lone + tar_end(lone.size())).error().what(), HasSubstr("data follows"));
  EXPECT_THAT(read_tar("this is some text, not an archive" + std::string(1000, '.')).error().what(),
              HasSubstr("not a tar archive"));
}

TEST(Tar, MalformedPaxRecordsAreErrors) {
  for (const char* records : {"9 path=a", "99 path=a\n", "path=a\n", "4 =\n", "0 a=b\n", "12 size=abcd\n"}) {
    std::string bytes = tar_member("x", records);
    bytes[156] = 'x';  // makes the member an extended header: the checksum follows
    unsigned sum = 0;
    for (std::size_t i = 0; i < 512; ++i)
      sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(bytes[i]);
    char octal[8];
    std::snprintf(octal, sizeof octal, "%06o", sum);
    bytes.replace(148, 7, octal, 7);
    bytes += tar_member("a.txt", "payload");
    const auto result = read_tar(bytes + tar_end(bytes.size()));
    ASSERT_FALSE(result) << records;
    EXPECT_THAT(result.error().what(), HasSubstr("PAX header"));
  }
}

std::string zstd(const std::string& bytes) {
  std::string packed(ZSTD_compressBound(bytes.size()), '\0');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  packed.resize(ZSTD_compress2(context, packed.data(), packed.size(), bytes.data(), bytes.size()));
  ZSTD_freeCCtx(context);
  return packed;
}

TEST(Tar, PackedShardsAreUnpackedAndCheckedToTheirEnd) {
  const std::string gzip = test::from_base64(test::kTarWebdataset);
  EXPECT_EQ(read_tar(gzip_source(memory_source("s.tar.gz", gzip)))->files.size(), 9u);
  for (std::size_t size = 0; size < gzip.size(); ++size)
    EXPECT_FALSE(read_tar(gzip_source(memory_source("s.tar.gz", gzip.substr(0, size))))) << size;
  const std::string frame = zstd(small_archive());
  EXPECT_EQ(read_tar(zstd_source(memory_source("s.tar.zst", frame)))->files.size(), 4u);
  for (std::size_t size = 0; size < frame.size(); ++size)
    EXPECT_FALSE(read_tar(zstd_source(memory_source("s.tar.zst", frame.substr(0, size))))) << size;
}

TEST(Tar, FilesAreRecognisedByTheirFirstBytes) {
  const test::Folder folder;
  for (const auto& [name, bytes] :
       {std::pair("plain", small_archive()), std::pair("zstd", zstd(small_archive()))}) {
    auto source = open_source(folder.write(name, bytes));
    ASSERT_TRUE(source);
    EXPECT_EQ(read_tar(std::move(*source))->files.size(), 4u);
  }
  EXPECT_EQ(read_tar(*open_source(folder.write("gzip", test::from_base64(test::kTarGnu))))->files.size(), 2u);
  EXPECT_THAT(open_source(folder.path()).error().what(), HasSubstr("is a folder"));
  EXPECT_THAT(open_file_source("gs://bucket/x.tar").error().what(), HasSubstr("expected a local file"));
  EXPECT_EQ(open_source(folder.path("none")).error().code(), Code::kNotFound);
}

// Four bytes of magic, the length, and the content that is passed over.
std::string skippable_frame(char kind) {
  return std::string{static_cast<char>('\x50' + kind)} + std::string("\x2a\x4d\x18\4\0\0\0four", 11);
}

TEST(Tar, SkippableFramesOfZstdAreSkipped) {
  const test::Folder folder;
  for (const char kind : {0, 15}) {
    const std::string bytes = skippable_frame(kind) + zstd(small_archive()) + skippable_frame(kind);
    auto source = open_source(folder.write("pzstd", bytes));
    ASSERT_TRUE(source);
    EXPECT_EQ(read_tar(std::move(*source))->files.size(), 4u);
  }
}

TEST(Tar, LongWindowsOfZstdAreRead) {
  std::string packed = small_archive() + std::string(1 << 20, '\0');
  const std::string bytes = packed;
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 31);
  ZSTD_outBuffer out{packed.data(), packed.size(), 0};
  // In two steps, because a frame of known size has no need of the window.
  ZSTD_inBuffer in{bytes.data(), 512, 0};
  ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush);
  in.size = bytes.size();
  ASSERT_EQ(ZSTD_compressStream2(context, &out, &in, ZSTD_e_end), 0u);
  ZSTD_freeCCtx(context);
  packed.resize(out.pos);
  const auto read = read_tar(zstd_source(memory_source("long.tar.zst", packed)));
  ASSERT_TRUE(read) << read.error().what();
  EXPECT_EQ(read->files.size(), 4u);
}

TEST(Tar, WhatIsNoArchiveIsNamed) {
  const test::Folder folder;
  const auto refusal = [&](const std::string& bytes) {
    const auto source = open_source(folder.write("x.tar", bytes));
    return source ? std::string("opened") : std::string(source.error().what());
  };
  EXPECT_THAT(refusal("BZh91AY&SY and so on"), HasSubstr("packed with bzip2"));
  EXPECT_THAT(refusal(std::string("\3757zXZ\0 and so on", 16)), HasSubstr("packed with xz"));
  EXPECT_THAT(refusal("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"),
              HasSubstr("git lfs pull"));
}

TEST(Tar, PartsOfAFileAreReadAsAskedFor) {
  const test::Folder folder;
  const std::string url = folder.write("plain", small_archive());
  EXPECT_EQ(stat_source(url)->size, small_archive().size());
  SourceOptions options;
  options.begin = 1024;
  const auto rest = read_tar(*open_source(url, options));
  ASSERT_EQ(rest->files.size(), 3u);
  EXPECT_EQ(rest->files[0].first, "a.cls");
  options.end = 2048;
  const auto one = read_tar(*open_source(url, options));
  EXPECT_THAT(one.error().what(), HasSubstr("cut off at byte 1024, after member a.cls"));
  options.end = small_archive().size() + 1;
  EXPECT_THAT(open_source(url, options).error().what(), HasSubstr("cannot read bytes 1024 to"));
  options = {};
  options.end = 100;
  EXPECT_THAT(open_source(folder.write("zstd", zstd(small_archive())), options).error().what(),
              HasSubstr("it is packed (zstd)"));
}

TEST(Group, NamesSplitAsWebdatasetsBasePlusExt) {
  const auto split = [](std::string_view name) -> std::string {
    const auto result = split_name(name);
    return result ? base::str(result->key, "|", result->extension) : "left out";
  };
  EXPECT_EQ(split("/a/22.0/1.1.png"), "/a/22.0/1|1.png");
  EXPECT_EQ(split("a.jpg"), "a|jpg");
  EXPECT_EQ(split("noext"), "left out");
  EXPECT_EQ(split(".hid.x"), "left out");
  EXPECT_EQ(split("dir/.hid"), "dir/|hid");
  EXPECT_EQ(split("dir.d/.hid"), "left out");
  EXPECT_EQ(split("./a.b"), "./a|b");
  EXPECT_EQ(split("./.hid"), "left out");
  EXPECT_EQ(split("a/b.c/d"), "left out");
  EXPECT_EQ(split("a//.x"), "a//|x");
  EXPECT_EQ(split("x.JPG"), "x|JPG");
  EXPECT_EQ(split("a."), "a|");
  EXPECT_EQ(split("d.e/f.g.h"), "d.e/f|g.h");
  EXPECT_EQ(split("__index__/a.json"), "left out");
  EXPECT_EQ(split("__a/b.json"), "__a/b|json");
  EXPECT_EQ(split("__x.y__"), "left out");
}

std::vector<std::string> groups(const test::Members& members, std::string* error = nullptr) {
  ShardReader reader(memory_source("shard.tar", test::archive(members)), Wanted{});
  std::vector<std::string> result;
  RawSample sample;
  while (true) {
    const auto found = reader.next(sample);
    if (!found && error != nullptr) *error = found.error().what();
    if (!found || !*found) return result;
    std::string text = sample.key + ":";
    for (const Field& field : sample.fields) text += " " + field.extension + "=" + field.bytes;
    result.push_back(text);
  }
}

TEST(Group, ConsecutiveMembersMakeASample) {
  EXPECT_THAT(
      groups(
          {{"a.txt", "1"}, {"a.CLS", "2"}, {"skip", "x"}, {"b.txt", "3"}, {"a.txt", "4"}, {"./a.txt", ""}}),
      ElementsAre("a: txt=1 cls=2", "b: txt=3", "a: txt=4", "./a: txt="));
  EXPECT_THAT(groups({}), ElementsAre());
}

TEST(Group, ARepeatedExtensionIsAnError) {
  std::string error;
  EXPECT_THAT(groups({{"a.txt", "1"}, {"b.txt", "2"}, {"b.TXT", "3"}}, &error), ElementsAre("a: txt=1"));
  EXPECT_THAT(
      error,
      HasSubstr("shard.tar: member b.TXT (header at byte 2048) has the same key and extension as b.txt"));
}

}  // namespace
}  // namespace sluice::data
