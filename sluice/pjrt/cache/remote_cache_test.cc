#include "sluice/pjrt/cache/remote_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <map>

#include "sluice/base/files/file.h"
#include "sluice/pjrt/cache/cache_identity.h"
#include "sluice/pjrt/cache/compile_cache.h"

namespace sluice::pjrt {
namespace {

using ::testing::HasSubstr;

// A bucket, and two hosts with a home folder each that have its URL in SLUICE_CACHE_DIR.
class RemoteCacheTest : public ::testing::Test {
 protected:
  RemoteCacheTest() {
    set_remote_cache({[this](const std::string& url, const std::string& path) -> base::Status {
                        ++fetches_;
                        if (!reachable_) return base::fail(Code::kUnavailable, "no network");
                        const auto found = objects_.find(url);
                        if (found == objects_.end()) return base::fail(Code::kNotFound, url);
                        return base::write_file_atomically(path, found->second);
                      },
                      [this](const std::string& path, const std::string& url, bool replace) -> base::Status {
                        SLUICE_TRY(std::string bytes, base::read_file(path));
                        if (replace) objects_.erase(url);
                        objects_.try_emplace(url, std::move(bytes));
                        return {};
                      }});
    ::unsetenv("XDG_CACHE_HOME");
    ::setenv("SLUICE_CACHE_DIR", "gs://bucket/programs/", 1);
  }
  ~RemoteCacheTest() override {
    ::unsetenv("SLUICE_CACHE_DIR");
    set_remote_cache({});
  }
  CompileCache host(const char* name) {
    ::setenv("HOME", folder_.path(name).c_str(), 1);
    return {default_cache_directory(), kDefaultCacheLimit};
  }

  base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
  std::map<std::string, std::string> objects_;
  int fetches_ = 0;
  bool reachable_ = true;
};

TEST_F(RemoteCacheTest, AnotherHostHasWhatOneHasCompiled) {
  const CompileCache one = host("one");
  EXPECT_THAT(one.directory(), HasSubstr("/one/.cache/sluice/of-"));
  EXPECT_FALSE(one.find("k"));
  base::value_or_throw(one.store("k", "payload"));
  EXPECT_EQ(objects_.count("gs://bucket/programs/k.program"), 1U);
  const CompileCache two = host("two");
  EXPECT_EQ(two.find("k"), "payload");
  const int before = fetches_;
  EXPECT_EQ(two.find("k"), "payload");  // now from its own disk
  EXPECT_EQ(fetches_, before);
  struct stat status {};
  ASSERT_EQ(::stat(two.directory().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
}

TEST_F(RemoteCacheTest, WhatIsDamagedThereIsReplaced) {
  base::value_or_throw(host("one").store("k", "payload"));
  std::string& bytes = objects_.begin()->second;
  const std::string whole = bytes;
  bytes[bytes.size() - 1] ^= 1;
  const CompileCache two = host("two");
  EXPECT_FALSE(two.find("k"));
  base::value_or_throw(two.store("k", "payload"));
  EXPECT_EQ(objects_.begin()->second, whole);
  EXPECT_EQ(host("three").find("k"), "payload");
}

// A plugin may refuse to load what has the right checksum.
TEST_F(RemoteCacheTest, WhatDoesNotLoadIsReplaced) {
  base::value_or_throw(host("one").store("k", "of an older plugin"));
  const CompileCache two = host("two");
  EXPECT_TRUE(two.find("k"));
  two.remove("k");
  base::value_or_throw(two.store("k", "payload"));
  EXPECT_EQ(host("three").find("k"), "payload");
  // But a host that only compiles the same at the same time replaces nothing.
  base::value_or_throw(host("four").store("k", "compiled elsewhere"));
  EXPECT_EQ(host("five").find("k"), "payload");
}

TEST_F(RemoteCacheTest, WithoutANetworkItIsAFolder) {
  reachable_ = false;
  const CompileCache one = host("one");
  EXPECT_FALSE(one.find("k"));
  base::value_or_throw(one.store("k", "payload"));
  EXPECT_EQ(one.find("k"), "payload");
  EXPECT_FALSE(one.find("another"));
  EXPECT_EQ(fetches_, 1);  // the first answer may have taken minutes
}

TEST_F(RemoteCacheTest, AFolderHasNoPlaceElsewhere) {
  ::setenv("SLUICE_CACHE_DIR", folder_.path("here").c_str(), 1);
  const CompileCache cache = host("one");
  EXPECT_EQ(cache.directory(), folder_.path("here"));
  EXPECT_FALSE(cache.find("k"));
  EXPECT_FALSE(base::path_exists(folder_.path("here")));
  base::value_or_throw(cache.store("k", "payload"));
  EXPECT_EQ(fetches_, 0);
  EXPECT_TRUE(objects_.empty());
}

TEST(DevicePlace, IsWhatAProgramDependsOn) {
  EXPECT_EQ(device_place(5, "TPU v3",
                         {{"coords", "[1, 0, 0]"}, {"core_on_chip", "1"}, {"local_id", "3"}, {"host", "a"}}),
            "5 TPU v3 coords=[1, 0, 0] core_on_chip=1");
  EXPECT_EQ(device_place(0, "cpu", {}), "0 cpu");
}

}  // namespace
}  // namespace sluice::pjrt
