#include "sluice/base/files/trusted_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sluice/base/files/file.h"

namespace sluice::base {
namespace {

using ::testing::HasSubstr;

class TrustedFile : public ::testing::Test {
 protected:
  TrustedFile() : folder_(value_or_throw(TemporaryDirectory::create())), file_(folder_.path("file")) {
    value_or_throw(write_file_atomically(file_, "bytes"));
    ::chmod(file_.c_str(), 0600);
  }
  void expect_refused(const char* text) const {
    for (const std::string& said : {std::string(read_trusted_file(file_).error().what()),
                                    std::string(check_trusted(file_).error().what())})
      EXPECT_THAT(said, HasSubstr(text));
  }

  TemporaryDirectory folder_;
  std::string file_;
};

TEST_F(TrustedFile, OnesOwn) {
  EXPECT_EQ(*read_trusted_file(file_), "bytes");
  EXPECT_TRUE(check_trusted(file_));
  ::chmod(file_.c_str(), 0644);  // that others read it does no harm
  EXPECT_TRUE(read_trusted_file(file_));
  EXPECT_EQ(read_trusted_file(folder_.path("none")).error().code(), Code::kNotFound);
}

TEST_F(TrustedFile, OneThatOthersMayWrite) {
  ::chmod(file_.c_str(), 0602);
  expect_refused("may be written by others");
  if (::geteuid() != 0) return;  // who has no other group to give it to
  ASSERT_EQ(::chown(file_.c_str(), 0, 65534), 0);
  ::chmod(file_.c_str(), 0620);
  expect_refused("may be written by others");
}

TEST_F(TrustedFile, OneInAFolderThatOthersMayWrite) {
  for (const mode_t mode : {0702, 01777}) {
    ::chmod(folder_.path().c_str(), mode);
    expect_refused("may be written by others");
  }
  ::chmod(folder_.path().c_str(), 0700);
}

TEST_F(TrustedFile, OneOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::chown(file_.c_str(), 65534, 65534), 0);
  expect_refused("belongs to the user 65534");
  ASSERT_EQ(::chown(file_.c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(folder_.path().c_str(), 65534, 65534), 0);
  expect_refused("belongs to the user 65534");
}

TEST_F(TrustedFile, ALinkIsNoFile) {
  const std::string link = folder_.path("link");
  ASSERT_EQ(::symlink(file_.c_str(), link.c_str()), 0);
  EXPECT_THAT(read_trusted_file(link).error().what(), HasSubstr("is a link"));
  EXPECT_TRUE(check_trusted(link));  // where it leads counts
}

}  // namespace
}  // namespace sluice::base
