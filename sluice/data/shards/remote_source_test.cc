#include "sluice/data/shards/remote_source.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include <thread>

#include "sluice/base/log.h"
#include "sluice/cloud/test_support.h"
#include "sluice/data/shards/group.h"
#include "sluice/data/shards/tar.h"
#include "sluice/data/shards/urls.h"
#include "sluice/data/test_bucket.h"
#include "sluice/data/test_files.h"
#include "sluice/data/test_support.h"

namespace sluice::data {
namespace {

using cloud::test::random_bytes;
using cloud::test::Reply;
using cloud::test::Request;
using test::service;
using testing::ElementsAre;
using testing::HasSubstr;

class RemoteSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    base::set_log_level(base::Level::kError);
    service().set_fault(nullptr);
  }
  void TearDown() override {
    service().set_fault(nullptr);
    base::set_log_level(base::Level::kInfo);
  }
};

base::Result<std::string> read_all(base::Result<std::unique_ptr<Source>> source) {
  if (!source) return tl::unexpected<Error>(source.error());
  std::string bytes;
  char piece[1000];
  while (true) {
    SLUICE_TRY(const std::size_t got, (*source)->read(piece, sizeof piece));
    if (got == 0) return bytes;
    bytes.append(piece, got);
  }
}

std::string error_of(const std::string& url, const SourceOptions& options = {}) {
  const auto bytes = read_all(open_source(url, options));
  return bytes ? "no error" : bytes.error().what();
}

TEST_F(RemoteSourceTest, ObjectsAreReadAndUnpacked) {
  const std::string bytes = random_bytes(100'000);
  service().bucket.put("p/x", bytes);
  EXPECT_TRUE(read_all(open_source("gs://b/p/x")) == bytes);
  const std::string tar = test::unpacked(test::kTarGnu);
  service().bucket.put("p/x.tar.gz", test::from_base64(test::kTarGnu));
  EXPECT_TRUE(read_all(open_source("gs://b/p/x.tar.gz")) == tar);
  EXPECT_TRUE(read_all(open_stored_source("gs://b/p/x.tar.gz")) == test::from_base64(test::kTarGnu));
  const auto facts = stat_source("gs://b/p/x");
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->size, 100'000u);
  SourceOptions same;
  same.version = facts->version;
  service().bucket.put("p/x", bytes);  // another generation of the same content
  EXPECT_TRUE(read_all(open_source("gs://b/p/x", same)) == bytes);
  service().bucket.put("p/x", "x" + bytes.substr(1));
  EXPECT_THAT(error_of("gs://b/p/x", same), HasSubstr("gs://b/p/x was replaced while its set is in use"));
  service().bucket.put("p/x", bytes);
  SourceOptions part;
  part.begin = 5;
  part.end = 50'000;
  EXPECT_TRUE(read_all(open_source("gs://b/p/x", part)) == bytes.substr(5, 49'995));
  auto source = open_source("gs://b/p/x");
  EXPECT_EQ((*source)->skip(99'990).value_or(0), 99'990u);
  EXPECT_TRUE(read_all(std::move(source)) == bytes.substr(99'990));
}

TEST_F(RemoteSourceTest, PagesAreRead) {
  const std::string bytes = random_bytes(10'000);
  service().bucket.put("page", bytes);
  const std::string url = service().server.address() + "/storage/v1/b/b/o/page?alt=media";
  EXPECT_TRUE(read_all(open_source(url)) == bytes);
  EXPECT_EQ(stat_source(url)->size, 10'000u);
}

TEST_F(RemoteSourceTest, ErrorsNameTheShard) {
  EXPECT_THAT(error_of("gs://b/missing"), HasSubstr("gs://b/missing: the server answered with status 404"));
  EXPECT_THAT(error_of("gs://b/p/"), HasSubstr("write 'gs://b/p/*.tar'"));
  EXPECT_THAT(error_of("gs://"), HasSubstr("expected gs://BUCKET/NAME"));
  service().bucket.put("bad", random_bytes(3000));
  service().bucket.lie_about_crc("bad", 1);
  EXPECT_THAT(error_of("gs://b/bad"), HasSubstr("do not fit its crc32c"));
}

TEST_F(RemoteSourceTest, GlobsListBuckets) {
  for (const char* name : {"g/t-1.tar", "g/t-0.tar", "g/u/t-2.tar", "g/t-3.txt"})
    service().bucket.put(name, "x");
  EXPECT_THAT(expand_urls("gs://b/g/*.tar").value(), ElementsAre("gs://b/g/t-0.tar", "gs://b/g/t-1.tar"));
  EXPECT_THAT(expand_urls("gs://b/g/{t,u}-0.tar::gs://b/g/**-2.tar").value(),
              ElementsAre("gs://b/g/t-0.tar", "gs://b/g/u-0.tar", "gs://b/g/u/t-2.tar"));
  EXPECT_THAT(expand_urls("gs://b/g/*.zip").error().what(), HasSubstr("no object matches"));
  EXPECT_THAT(expand_urls("gs://b/g/").error().what(), HasSubstr("write 'gs://b/g/*.tar'"));
  EXPECT_THAT(expand_urls("gs://b").error().what(), HasSubstr("write 'gs://b/*.tar'"));
}

// A shard in a bucket through storms and cuts gives the samples of the file.
TEST_F(RemoteSourceTest, ShardsSurviveFaults) {
  test::Members members;
  for (int i = 0; i < 50; ++i) members.emplace_back(base::str("s", i, ".bin"), random_bytes(1000));
  service().bucket.put("s.tar", test::archive(members));
  std::atomic<int> count{0};
  service().set_fault([&](const Request& request) -> std::optional<Reply> {
    if (request.parameter("alt") != "media")
      return count++ % 2 == 0 ? std::optional(Reply{503}) : std::nullopt;
    if (count++ % 4 == 3) return std::nullopt;
    Reply reply = service().bucket(request);
    reply.cut_after = 7'000;
    return reply;
  });
  TarReader reader(std::move(*open_source("gs://b/s.tar")));
  Member member;
  for (const auto& [name, payload] : members) {
    const auto found = reader.next(member);
    ASSERT_TRUE(found) << found.error().what();
    std::string bytes;
    ASSERT_TRUE(reader.read_payload(bytes));
    EXPECT_TRUE(bytes == payload) << name;
  }
  EXPECT_FALSE(reader.next(member).value_or(true));
}

class CachedSourceTest : public RemoteSourceTest {
 protected:
  SourceOptions cached() const {
    SourceOptions options;
    options.cache_folder = folder_.path("cache");
    options.cache_bytes = 1 << 20;
    return options;
  }
  test::Folder folder_;
};

TEST_F(CachedSourceTest, TheSecondTimeNothingIsFetched) {
  const std::string bytes = random_bytes(100'000);
  service().bucket.put("c", bytes);
  EXPECT_TRUE(read_all(open_source("gs://b/c", cached())) == bytes);
  const int before = service().media;
  EXPECT_TRUE(read_all(open_source("gs://b/c", cached())) == bytes);
  SourceOptions part = cached();
  part.begin = 10;
  part.end = 20;
  EXPECT_TRUE(read_all(open_source("gs://b/c", part)) == bytes.substr(10, 10));
  EXPECT_EQ(service().media, before);
  // Another content is another object.
  const std::string other = random_bytes(100'001);
  service().bucket.put("c", other);
  EXPECT_TRUE(read_all(open_source("gs://b/c", cached())) == other);
  EXPECT_GT(service().media, before);
}

TEST_F(CachedSourceTest, WhatWasNotReadToItsEndIsNotKept) {
  service().bucket.put("c", random_bytes(100'000));
  {
    auto source = open_source("gs://b/c", cached());
    char some[10];
    ASSERT_TRUE((*source)->read(some, sizeof some));
  }
  EXPECT_THAT(*base::list_directory(folder_.path("cache")), ElementsAre(".lock"));
  service().bucket.lie_about_crc("c", 1);
  EXPECT_THAT(error_of("gs://b/c", cached()), HasSubstr("do not fit its crc32c"));
  EXPECT_THAT(*base::list_directory(folder_.path("cache")), ElementsAre(".lock"));
}

TEST_F(CachedSourceTest, ADamagedCopyIsFoundAndRemoved) {
  const std::string bytes = random_bytes(700'000);
  service().bucket.put("c", bytes);
  ASSERT_TRUE(read_all(open_source("gs://b/c", cached())));
  const auto names = *base::list_directory(folder_.path("cache"));
  ASSERT_EQ(names.size(), 2u);
  // In the whole, in a part, and in the checksums: the reader goes on with the object, and the next one keeps
  // it again.
  const std::string copy = *base::read_file(folder_.path("cache/" + names[1]));
  SourceOptions part = cached();
  part.begin = 599'000;
  part.end = 699'999;
  for (const std::size_t at : {std::size_t{0}, std::size_t{600'000}, std::size_t{699'999}, copy.size() - 5})
    for (const SourceOptions& options : {cached(), part}) {
      std::string damaged = copy;
      damaged[at] = static_cast<char>(damaged[at] ^ 4);
      folder_.write("cache/" + names[1], damaged);
      const bool whole = options.begin == 0;
      EXPECT_TRUE(read_all(open_source("gs://b/c", options)) ==
                  (whole ? bytes : bytes.substr(599'000, 100'999)));
      if (!whole && at < 524'288) continue;  // a block that was not read
      EXPECT_EQ(base::list_directory(folder_.path("cache"))->size(), 1u) << at;
      EXPECT_TRUE(read_all(open_source("gs://b/c", cached())) == bytes);
      EXPECT_EQ(*base::read_file(folder_.path("cache/" + names[1])), copy);
    }
}

// With an index, streams that share a shard read parts of it.
TEST_F(CachedSourceTest, PartsAreKeptToo) {
  const std::string bytes = random_bytes(1'500'000);
  service().bucket.put("c", bytes);
  const auto read = [&](std::uint64_t begin, std::uint64_t end) {
    SourceOptions part = cached();
    part.cache_bytes = 4 << 20;
    part.begin = begin;
    part.end = end;
    EXPECT_TRUE(read_all(open_source("gs://b/c", part)) == bytes.substr(begin, end - begin)) << begin;
  };
  read(300'000, 800'000);
  int before = service().media;
  read(300'000, 800'000);
  read(270'000, 1'000'000);  // within the blocks that are there
  EXPECT_EQ(service().media, before);
  read(500'000, 1'400'000);
  read(0, 10);
  EXPECT_GT(service().media, before);
  before = service().media;
  read(0, 1'500'000);
  EXPECT_EQ(service().media, before);
  // A damaged block is read again, and kept again.
  const auto names = *base::list_directory(folder_.path("cache"));
  ASSERT_EQ(names.size(), 2u);
  std::string file = *base::read_file(folder_.path("cache/" + names[1]));
  file[400'000] = static_cast<char>(file[400'000] ^ 1);
  folder_.write("cache/" + names[1], file);
  read(300'000, 800'000);
  EXPECT_GT(service().media, before);
  before = service().media;
  read(0, 1'500'000);
  EXPECT_EQ(service().media, before);
}

TEST_F(CachedSourceTest, PartsWithoutRoomAreReadWithoutTheCache) {
  const std::string bytes = random_bytes(1'500'000);
  service().bucket.put("c", bytes);
  SourceOptions part = cached();  // of 1 MiB
  part.begin = 600'000;
  part.end = 1'100'000;
  EXPECT_TRUE(read_all(open_source("gs://b/c", part)) == bytes.substr(600'000, 500'000));
  EXPECT_THAT(*base::list_directory(folder_.path("cache")), ElementsAre(".lock"));
}

// A limit on the size of files stands for a disk that is full.
TEST_F(CachedSourceTest, AFullDiskOnlyCostsTheCache) {
  const std::string bytes = random_bytes(100'000);
  service().bucket.put("c", bytes);
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  auto early = open_source("gs://b/c", cached());
  const rlimit small{50'000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto first = read_all(std::move(early));
  const auto second = read_all(open_source("gs://b/c", cached()));
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(first == bytes);
  EXPECT_TRUE(second == bytes);
  EXPECT_THAT(*base::list_directory(folder_.path("cache")), ElementsAre(".lock"));
}

TEST_F(CachedSourceTest, ManyThreadsShareIt) {
  const std::string bytes = random_bytes(200'000);
  for (int i = 0; i < 4; ++i) service().bucket.put(base::str("many-", i), bytes);
  SourceOptions options = cached();
  options.cache_bytes = 500'000;  // not all at once
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 8; ++k)
        good += read_all(open_source(base::str("gs://b/many-", (i + k) % 4), options)) == bytes ? 1 : 0;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 32);
}

TEST(PipeSource, GivesWhatTheCommandWrites) {
  EXPECT_EQ(read_all(open_source("pipe:printf 'a b'; printf c")).value_or("?"), "a bc");
  EXPECT_EQ(read_all(open_source("pipe:cat")).value_or("?"), "") << "its input is empty";
  const test::Folder folder;
  const std::string large = random_bytes(3'000'000);
  EXPECT_TRUE(read_all(open_source("pipe:cat " + folder.write("f", large))) == large);
  EXPECT_TRUE(read_all(open_source("pipe:cat " + folder.write("g", test::from_base64(test::kTarGnu)))) ==
              test::unpacked(test::kTarGnu));
}

// Also when all of the output came, and however late the status.
TEST(PipeSource, TheStatusAlwaysCounts) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(error_of("pipe:printf whole; exit 3"), HasSubstr("failed with status 3"));
    EXPECT_THAT(error_of("pipe:printf whole; exec >&-; sleep 0.01; exit 4"),
                HasSubstr("failed with status 4"));
  }
  EXPECT_THAT(error_of("pipe:no-such-command-here 2>/dev/null"), HasSubstr("status 127 (not found)"));
  EXPECT_THAT(error_of("pipe:kill -9 $$"), HasSubstr("killed by signal 9"));
  SourceOptions part;
  part.begin = 1;
  EXPECT_THAT(error_of("pipe:true", part), HasSubstr("cannot read a part"));
}

TEST(PipeSource, StoppingEarlyKillsTheCommand) {
  const test::Folder folder;
  auto source = open_source("pipe:echo $$ > " + folder.path("pid") + "; yes | cat");
  char some[10];
  ASSERT_TRUE((*source)->read(some, sizeof some));
  source->reset();
  const int pid = std::stoi(*base::read_file(folder.path("pid")));
  EXPECT_NE(::kill(pid, 0), 0) << "it was waited for: no process of this number is left";
}

TEST(PipeSource, CancellingEndsTheWait) {
  std::atomic<bool> cancelled{false};
  SourceOptions options;
  options.cancelled = &cancelled;
  auto source = open_stored_source("pipe:printf ab; sleep 1000", options);
  char some[2];
  ASSERT_TRUE((*source)->read(some, 2));
  std::thread canceller([&] { cancelled = true; });
  const auto more = (*source)->read(some, 2);
  canceller.join();
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code(), Code::kCancelled);
}

}  // namespace
}  // namespace sluice::data
