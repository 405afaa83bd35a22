#include "sluice/data/shards/cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sluice/data/test_support.h"

namespace sluice::data {
namespace {

const std::string kBytes(1000, 'x');

// Keeps an object of kBytes.
base::Status keep(const Cache& cache, const std::string& url) {
  SLUICE_TRY(const auto writer, cache.begin(url, "1", kBytes.size()));
  SLUICE_OK(writer->append(kBytes));
  return writer->commit();
}

bool has(const Cache& cache, const std::string& url) {
  return cache.find(url, "1", kBytes.size()) != nullptr;
}

// What was used last gets a time of its own, as the clock of the file system may be coarse.
void used_at(const test::Folder& folder, const Cache& cache, const std::string& url, time_t seconds) {
  const auto file = cache.find(url, "1", kBytes.size());
  ASSERT_NE(file, nullptr);
  const timespec times[2] = {{seconds, 0}, {seconds, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, file->path().c_str(), times, 0), 0) << folder.path();
}

std::size_t files_in(const test::Folder& folder) {
  return base::list_directory(folder.path())->size() - 1;  // without the lock
}

TEST(Cache, KeepsByUrlAndVersion) {
  const test::Folder folder;
  const Cache cache(folder.path(), 1 << 20);
  EXPECT_FALSE(has(cache, "gs://a/x.tar"));
  ASSERT_TRUE(keep(cache, "gs://a/x.tar"));
  EXPECT_TRUE(has(cache, "gs://a/x.tar"));
  EXPECT_FALSE(has(cache, "gs://b/x.tar")) << "the name alone does not count";
  EXPECT_EQ(cache.find("gs://a/x.tar", "2", kBytes.size()), nullptr);
  EXPECT_EQ(cache.find("gs://a/x.tar", "1", 999), nullptr);
  std::string bytes(kBytes.size(), '\0');
  const auto file = cache.find("gs://a/x.tar", "1", kBytes.size());
  ASSERT_EQ(::read(file->descriptor(), bytes.data(), bytes.size()), 1000);
  EXPECT_EQ(bytes, kBytes);
}

// Another user who may write to the folder could put links and files there.
TEST(Cache, AFolderOfOthersIsNotUsed) {
  const test::Folder folder;
  const Cache cache(folder.path("cache"), 1 << 20);
  ASSERT_TRUE(keep(cache, "x"));
  struct stat facts {};
  ASSERT_EQ(::stat(folder.path("cache").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700U);
  for (const mode_t mode : {0777, 01777}) {
    ASSERT_EQ(::chmod(folder.path("cache").c_str(), mode), 0);
    EXPECT_FALSE(has(cache, "x"));
    EXPECT_EQ(*cache.parts("x", "1", kBytes.size(), false), nullptr);
    const auto refused = keep(cache, "y");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().what(), ::testing::HasSubstr("chmod go-w"));
    EXPECT_FALSE(cache.parts("y", "1", kBytes.size(), true));
  }
  ASSERT_EQ(::chmod(folder.path("cache").c_str(), 0755), 0);
  EXPECT_TRUE(has(cache, "x"));
}

TEST(Cache, LinksAreNotFollowed) {
  const test::Folder folder;
  const Cache cache(folder.path("cache"), 1 << 20);
  ASSERT_TRUE(keep(cache, "x"));
  const std::string kept = cache.find("x", "1", kBytes.size())->path(), victim = folder.path("victim");
  // What is read is not a link and no second name of another file.
  ASSERT_EQ(::rename(kept.c_str(), victim.c_str()), 0);
  ASSERT_EQ(::symlink(victim.c_str(), kept.c_str()), 0);
  EXPECT_FALSE(has(cache, "x"));
  ASSERT_EQ(::unlink(kept.c_str()), 0);
  ASSERT_EQ(::link(victim.c_str(), kept.c_str()), 0);
  EXPECT_FALSE(has(cache, "x"));
  // What is made replaces a link, and leaves alone what it leads to.
  ASSERT_EQ(::unlink(kept.c_str()), 0);
  const std::string parts = kept.substr(0, kept.rfind('.')) + ".parts";
  ASSERT_EQ(::symlink(victim.c_str(), parts.c_str()), 0);
  const auto before = base::read_file(victim);
  EXPECT_NE(*cache.parts("x", "1", kBytes.size(), true), nullptr);
  EXPECT_EQ(base::read_file(victim).value(), before.value());
  // A link in the place of the lock is an error, and leads to no new file.
  ASSERT_EQ(::unlink(folder.path("cache/.lock").c_str()), 0);
  ASSERT_EQ(::symlink(folder.path("planted").c_str(), folder.path("cache/.lock").c_str()), 0);
  EXPECT_FALSE(keep(cache, "z"));
  EXPECT_FALSE(base::path_exists(folder.path("planted")));
}

TEST(Cache, WhatIsNotFinishedDoesNotRemain) {
  const test::Folder folder;
  const Cache cache(folder.path(), 1 << 20);
  {
    const auto writer = cache.begin("x", "1", kBytes.size());
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->append(kBytes.substr(1)));
    EXPECT_FALSE((*writer)->commit());
    EXPECT_FALSE((*writer)->append("ab")) << "more than was announced";
  }
  EXPECT_FALSE(has(cache, "x"));
  EXPECT_EQ(files_in(folder), 0u);
}

TEST(Cache, TheOldestGoesFirst) {
  const test::Folder folder;
  const Cache cache(folder.path(), 3500);  // three objects with their checksums
  for (const char* url : {"a", "b", "c"}) ASSERT_TRUE(keep(cache, url));
  used_at(folder, cache, "b", 1000);
  used_at(folder, cache, "c", 2000);
  used_at(folder, cache, "a", 3000);
  ASSERT_TRUE(keep(cache, "d"));
  EXPECT_TRUE(has(cache, "a"));
  EXPECT_FALSE(has(cache, "b"));
  EXPECT_TRUE(has(cache, "c"));
  EXPECT_TRUE(has(cache, "d"));
}

TEST(Cache, WhatIsInUseStays) {
  const test::Folder folder;
  const Cache cache(folder.path(), 2016);  // two objects with their checksums
  ASSERT_TRUE(keep(cache, "a"));
  const auto reading = cache.find("a", "1", kBytes.size());
  const auto writing = cache.begin("b", "1", kBytes.size());
  ASSERT_TRUE(writing);
  const auto none = keep(cache, "c");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::kResourceExhausted);
  EXPECT_TRUE(has(cache, "a"));
  ASSERT_TRUE((*writing)->append(kBytes));
  EXPECT_TRUE((*writing)->commit());
  EXPECT_TRUE(has(cache, "b"));
  EXPECT_FALSE(cache.begin("large", "1", 2009));
}

// A process that is killed while it writes leaves nothing that is taken for whole, and its part goes away.
TEST(Cache, KilledWhileWriting) {
  const test::Folder folder;
  const Cache cache(folder.path(), 2016);  // two objects with their checksums
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto writer = cache.begin("x", "1", kBytes.size());
    if (writer && (*writer)->append(kBytes.substr(0, 600)) && ::write(ready[1], "!", 1) == 1) ::pause();
    ::_exit(1);
  }
  char sign = 0;
  ASSERT_EQ(::read(ready[0], &sign, 1), 1);
  EXPECT_FALSE(has(cache, "x"));
  EXPECT_EQ(files_in(folder), 1u);
  // While it lives its part is not touched, and counts.
  ASSERT_TRUE(keep(cache, "y"));
  EXPECT_FALSE(cache.begin("large", "1", 1001));
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(has(cache, "x"));
  ASSERT_TRUE(keep(cache, "x"));
  EXPECT_TRUE(has(cache, "x"));
  EXPECT_TRUE(has(cache, "y"));
  EXPECT_EQ(files_in(folder), 2u);
  ::close(ready[0]);
  ::close(ready[1]);
}

// A limit on the size of files stands for a disk that is full.
TEST(Cache, AFullDisk) {
  const test::Folder folder;
  const Cache cache(folder.path(), 1 << 20);
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto limit = [&](rlim_t bytes) {
    const rlimit small{bytes, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  };
  auto writer = cache.begin("x", "1", kBytes.size());
  ASSERT_TRUE(writer);
  limit(500);
  EXPECT_FALSE((*writer)->append(kBytes));
  const auto none = cache.begin("y", "1", kBytes.size());
  limit(before.rlim_cur);
  EXPECT_FALSE(none);
  writer->reset();
  EXPECT_EQ(files_in(folder), 0u);
}

// Filling a cache, and replacing what is in it, looks at each file a few times, however many there are.
TEST(Cache, FillingLooksAtEachFileFewTimes) {
  for (const std::int64_t count : {50, 500}) {
    const test::Folder folder;
    const Cache cache(folder.path(), static_cast<std::uint64_t>(count) * 1008);
    const std::int64_t before = Cache::listed();
    for (std::int64_t i = 0; i < count; ++i) ASSERT_TRUE(keep(cache, std::to_string(i)));
    EXPECT_EQ(files_in(folder), static_cast<std::size_t>(count));
    EXPECT_LE(Cache::listed() - before, 2 * count) << "while it is filled";
    for (std::int64_t i = 0; i < count; ++i) ASSERT_TRUE(keep(cache, "new-" + std::to_string(i)));
    EXPECT_LE(Cache::listed() - before, 15 * count) << "while a tenth at a time is replaced";
    EXPECT_LE(files_in(folder), static_cast<std::size_t>(count));
    EXPECT_GE(files_in(folder), static_cast<std::size_t>(count - count / 10 - 1));
    EXPECT_TRUE(has(cache, "new-" + std::to_string(count - 1)));
  }
}

// A ledger that says too much, or is damaged, is corrected by a listing.
TEST(Cache, ALedgerIsCorrected) {
  const test::Folder folder;
  const Cache cache(folder.path(), 3024);  // three objects with their checksums
  for (const char* url : {"a", "b", "c"}) ASSERT_TRUE(keep(cache, url));
  cache.remove("a", "1");
  ASSERT_TRUE(keep(cache, "d")) << "the files have room, although the ledger counts one that is gone";
  EXPECT_TRUE(has(cache, "b"));
  EXPECT_TRUE(has(cache, "c"));
  EXPECT_TRUE(has(cache, "d"));
  for (const std::string& damaged : {std::string(24, '\0'), std::string("x"), std::string()}) {
    folder.write(".lock", damaged);
    ASSERT_TRUE(keep(cache, "e" + damaged.substr(0, 1)));
    EXPECT_LE(files_in(folder), 3u);
  }
}

}  // namespace
}  // namespace sluice::data
