#include "sluice/base/files/private_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sluice/base/files/file.h"

namespace sluice::base {
namespace {

using ::testing::HasSubstr;

mode_t mode_of(const std::string& path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0 ? facts.st_mode & 0777 : 0;
}

TEST(PrivateFile, NobodyElseReadsIt) {
  const auto folder = TemporaryDirectory::create();
  const std::string made = folder->path("a/b"), file = made + "/state";
  ASSERT_TRUE(make_private_folder(made));
  EXPECT_EQ(mode_of(made), 0700U);
  ASSERT_TRUE(write_private_file(file, "secret"));
  EXPECT_EQ(mode_of(file), 0600U);
  // One of an earlier version was 0644, and it is replaced, not written to.
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  ASSERT_TRUE(write_private_file(file, "another"));
  EXPECT_EQ(mode_of(file), 0600U);
  EXPECT_EQ(*read_file(file), "another");
  EXPECT_EQ(list_directory(made)->size(), 1U);
}

TEST(PrivateFile, ALinkIsReplacedAndNotFollowed) {
  const auto folder = TemporaryDirectory::create();
  ASSERT_TRUE(write_private_file(folder->path("victim"), "mine"));
  ASSERT_EQ(::symlink(folder->path("victim").c_str(), folder->path("state").c_str()), 0);
  ASSERT_TRUE(write_private_file(folder->path("state"), "new"));
  EXPECT_EQ(*read_file(folder->path("victim")), "mine");
  EXPECT_EQ(*read_file(folder->path("state")), "new");
}

TEST(PrivateFile, WhatAKilledProcessLeftIsPassedOver) {
  const auto folder = TemporaryDirectory::create();
  const std::string path = folder->path("state");
  for (int number = 0; number < 1000; ++number)  // more than this program has written
    ASSERT_EQ(::symlink("nowhere", str(path, ".tmp-", ::getpid(), "-", number).c_str()), 0);
  ASSERT_TRUE(write_private_file(path, "new"));
  EXPECT_EQ(*read_file(path), "new");
}

TEST(PrivateFile, AFolderThatOthersMayWriteIsRefused) {
  const auto folder = TemporaryDirectory::create();
  const std::string open = folder->path("open");
  ASSERT_EQ(::mkdir(open.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(open.c_str(), 01777), 0);
  const auto refused = make_private_folder(open);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kPermissionDenied);
  EXPECT_THAT(refused.error().what(), HasSubstr("chmod go-w " + open));
  ASSERT_EQ(::chmod(open.c_str(), 0755), 0);
  EXPECT_TRUE(make_private_folder(open));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  ASSERT_EQ(::chown(open.c_str(), 12345, 12345), 0);
  EXPECT_THAT(make_private_folder(open).error().what(), HasSubstr("belongs to the user 12345"));
}

}  // namespace
}  // namespace sluice::base
