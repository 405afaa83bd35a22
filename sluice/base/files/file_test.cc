#include "sluice/base/files/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "sluice/base/files/folder_lock.h"

namespace sluice::base {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FileTest : public testing::Test {
 protected:
  TemporaryDirectory directory_ = value_or_throw(TemporaryDirectory::create());
};

TEST_F(FileTest, WritesAndReads) {
  const std::string path = directory_.path("a.bin"), bytes("\0x\n", 3);
  ASSERT_TRUE(write_file_atomically(path, bytes));
  EXPECT_EQ(*read_file(path), bytes);
  EXPECT_EQ(*file_size(path), 3u);
  ASSERT_TRUE(write_file_atomically(path, ""));
  EXPECT_EQ(*read_file(path), "");
  EXPECT_THAT(*list_directory(directory_.path()), ElementsAre("a.bin"));
}

TEST_F(FileTest, ReadsFilesWithoutASize) { EXPECT_THAT(*read_file("/proc/self/status"), HasSubstr("Name:")); }

TEST_F(FileTest, MissingFileIsNamed) {
  auto missing = read_file(directory_.path("nothing"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), Code::kNotFound);
  EXPECT_THAT(missing.error().what(), HasSubstr(directory_.path("nothing")));
  EXPECT_EQ(file_size(directory_.path("nothing")).error().code(), Code::kNotFound);
  EXPECT_EQ(read_file(directory_.path()).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(write_file_atomically(directory_.path("no/such"), "x").error().code(), Code::kNotFound);
  EXPECT_EQ(write_file_atomically(directory_.path(), "x").error().code(), Code::kInvalidArgument);
}

TEST_F(FileTest, UncommittedFileLeavesTheOldOne) {
  const std::string path = directory_.path("model");
  ASSERT_TRUE(write_file_atomically(path, "old"));
  {
    auto file = value_or_throw(AtomicFile::create(path));
    ASSERT_TRUE(file.write("new"));
    EXPECT_EQ(list_directory(directory_.path())->size(), 2u);
  }
  EXPECT_EQ(*read_file(path), "old");
  EXPECT_THAT(*list_directory(directory_.path()), ElementsAre("model"));
}

TEST_F(FileTest, CommitReplaces) {
  const std::string path = directory_.path("model");
  ASSERT_TRUE(write_file_atomically(path, "old"));
  auto file = value_or_throw(AtomicFile::create(path));
  ASSERT_TRUE(file.write("----body"));
  ASSERT_TRUE(file.write_at(0, "head", 4));
  EXPECT_EQ(file.size(), 8u);
  AtomicFile moved = std::move(file);
  ASSERT_TRUE(moved.commit());
  EXPECT_FALSE(moved.commit());
  EXPECT_FALSE(moved.write("late"));
  EXPECT_EQ(*read_file(path), "headbody");
}

TEST_F(FileTest, FullDiskIsAClearError) {
  auto failed = fail_errno(ENOSPC, "write", "/x/checkpoint");
  EXPECT_EQ(failed.value().code(), Code::kResourceExhausted);
  EXPECT_THAT(failed.value().what(),
              HasSubstr("cannot write /x/checkpoint: No space left on device (the disk is full"));
  EXPECT_THAT(read_file(directory_.path("nothing")).error().what(), testing::StartsWith("cannot open /"));
}

// Ends the process: 0 when a write beyond the limit on file sizes failed as it should and left nothing
// behind.
[[noreturn]] void write_beyond_the_limit(const std::string& folder) {
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit limit;
  limit.rlim_cur = limit.rlim_max = 1000;
  setrlimit(RLIMIT_FSIZE, &limit);
  auto status = write_file_atomically(join_path(folder, "big"), std::string(100000, 'x'));
  const bool right =
      !status && status.error().code() == Code::kResourceExhausted && list_directory(folder)->empty();
  std::_Exit(right ? 0 : 1);
}

TEST_F(FileTest, FailedWriteLeavesNothing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a child, since the limit stays with the process
  EXPECT_EXIT(write_beyond_the_limit(directory_.path()), testing::ExitedWithCode(0), "");
}

TEST_F(FileTest, AFileIsSynchronised) {
  const std::string path = directory_.path("file");
  EXPECT_THAT(sync_file(path).error().what(), HasSubstr(path));
  ASSERT_TRUE(write_file_atomically(path, "text"));
  EXPECT_TRUE(sync_file(path));
}

TEST_F(FileTest, Directories) {
  ASSERT_TRUE(make_directories(directory_.path("x/y")));
  ASSERT_TRUE(make_directories(directory_.path("x/y")));
  EXPECT_TRUE(is_directory(directory_.path("x/y")));
  ASSERT_TRUE(write_file_atomically(directory_.path("f"), ""));
  EXPECT_FALSE(make_directories(directory_.path("f")));
  EXPECT_FALSE(make_directories(directory_.path("f/g")));
  EXPECT_FALSE(list_directory(directory_.path("none")));
  EXPECT_THAT(*list_directory(directory_.path()), ElementsAre("f", "x"));
  ASSERT_TRUE(remove_file(directory_.path("f")));
  ASSERT_TRUE(remove_file(directory_.path("f")));
}

TEST_F(FileTest, TemporaryDirectoryGoesAway) {
  std::string path;
  {
    auto directory = value_or_throw(TemporaryDirectory::create("x"));
    path = directory.path();
    ASSERT_TRUE(write_file_atomically(directory.path("f"), "1"));
  }
  EXPECT_FALSE(path_exists(path));
}

TEST_F(FileTest, AFolderHasOneLock) {
  auto lock = FolderLock::take(directory_.path());
  ASSERT_TRUE(lock && *lock);
  EXPECT_FALSE(*FolderLock::take(directory_.path()));
  FolderLock moved = std::move(**lock);
  lock = std::optional<FolderLock>();
  EXPECT_FALSE(*FolderLock::take(directory_.path()));
  { const FolderLock ends = std::move(moved); }
  EXPECT_TRUE(*FolderLock::take(directory_.path()));
  EXPECT_EQ(FolderLock::take(directory_.path("none")).error().code(), Code::kNotFound);
}

TEST(Path, Pieces) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("a", "/b"), "/b");
  EXPECT_EQ(parent_path("/a/b"), "/a");
  EXPECT_EQ(parent_path("b"), ".");
  setenv("HOME", "/home/user", 1);
  EXPECT_EQ(expand_home("~/x"), "/home/user/x");
  EXPECT_EQ(expand_home("~"), "/home/user");
  EXPECT_EQ(expand_home("~other/x"), "~other/x");
}

}  // namespace
}  // namespace sluice::base
