#include "sluice/pjrt/cache/compile_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <thread>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/pjrt/testing/programs.h"

namespace sluice::pjrt {
namespace {

using testing::add_program;
using testing::cpu_client;
using ::testing::ElementsAre;
using testing::f32;
using ::testing::SizeIs;
using testing::values;

class CacheTest : public ::testing::Test {
 protected:
  std::vector<std::string> files() { return base::value_or_throw(base::list_directory(directory_.path())); }
  // As if the entry had been used that many seconds ago.
  static void make_old(const std::string& path, time_t seconds) {
    const timespec then{::time(nullptr) - seconds, 0}, both[2] = {then, then};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), both, 0), 0);
  }
  static std::string key(const std::string& text) { return CompileCache::key({text}); }

  base::TemporaryDirectory directory_ = base::value_or_throw(base::TemporaryDirectory::create());
};

TEST_F(CacheTest, KeysTellPartsApart) {
  // From `sha256sum` over the length as eight little-endian bytes, then the part.
  EXPECT_EQ(CompileCache::key({"abc"}), "ce91dc5eec0139adf091900d225971d6ad246a845bad791b5693a9d0d55dd391");
  EXPECT_NE(CompileCache::key({"ab", "c"}), CompileCache::key({"a", "bc"}));
  EXPECT_NE(CompileCache::key({"ab"}), CompileCache::key({"ab", ""}));
}

TEST_F(CacheTest, FindsWhatWasStored) {
  const CompileCache cache(directory_.path("new/folder"), kDefaultCacheLimit);
  EXPECT_FALSE(cache.find(key("a")));
  const std::string payload("program\0bytes", 13);
  ASSERT_TRUE(cache.store(key("a"), payload));
  EXPECT_EQ(cache.find(key("a")), payload);
  EXPECT_FALSE(cache.find(key("b")));
  ASSERT_TRUE(cache.store(key("a"), "other"));
  EXPECT_EQ(cache.find(key("a")), "other");
  cache.remove(key("a"));
  EXPECT_FALSE(cache.find(key("a")));
}

TEST_F(CacheTest, DamagedAndForeignEntriesAreIgnored) {
  const CompileCache cache(directory_.path(), kDefaultCacheLimit);
  ASSERT_TRUE(cache.store(key("a"), "a program"));
  const std::string path = cache.path(key("a")), good = *base::read_file(path);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    std::ofstream(path, std::ios::binary) << bad;
    EXPECT_FALSE(cache.find(key("a"))) << "byte " << i;
  }
  for (const std::string& bad :
       {std::string(), good.substr(0, 10), good.substr(0, good.size() - 1), good + "x"}) {
    ASSERT_TRUE(base::write_file_atomically(path, bad));
    EXPECT_FALSE(cache.find(key("a"))) << bad.size() << " bytes";
  }
  // An entry of another key under this name.
  ASSERT_TRUE(cache.store(key("b"), "another program"));
  ASSERT_EQ(::rename(cache.path(key("b")).c_str(), path.c_str()), 0);
  EXPECT_FALSE(cache.find(key("a")));
  ASSERT_TRUE(cache.store(key("a"), "a program"));
  EXPECT_EQ(cache.find(key("a")), "a program");
}

TEST_F(CacheTest, EntriesThatOthersMayHaveWrittenAreNotRun) {
  const std::string folder = directory_.path("cache");
  const CompileCache cache(folder, 1 << 20);
  ASSERT_TRUE(cache.store(key("a"), "program"));
  struct stat status {};
  ASSERT_EQ(::stat(folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(::stat(cache.path(key("a")).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_TRUE(cache.find(key("a")));
  for (const std::string& path : {cache.path(key("a")), folder}) {
    ::chmod(path.c_str(), path == folder ? 0777 : 0666);
    EXPECT_FALSE(cache.find(key("a"))) << path;
    ::setenv("SLUICE_CACHE_TRUST", "1", 1);
    EXPECT_TRUE(cache.find(key("a"))) << path;
    ::unsetenv("SLUICE_CACHE_TRUST");
    ::chmod(path.c_str(), path == folder ? 0700 : 0600);
  }
  // A link to an entry is none.
  ASSERT_EQ(::rename(cache.path(key("a")).c_str(), directory_.path("elsewhere").c_str()), 0);
  ASSERT_EQ(::symlink(directory_.path("elsewhere").c_str(), cache.path(key("a")).c_str()), 0);
  EXPECT_FALSE(cache.find(key("a")));
}

TEST_F(CacheTest, RemovesWhatWasNotUsedForLongest) {
  const CompileCache cache(directory_.path(), 4000);
  const std::string payload(1000, 'p');
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(cache.store(key(name), payload));
  make_old(cache.path(key("a")), 300);
  make_old(cache.path(key("b")), 200);
  make_old(cache.path(key("c")), 100);
  EXPECT_TRUE(cache.find(key("a")));  // used just now
  ASSERT_TRUE(cache.store(key("d"), payload));
  EXPECT_FALSE(cache.find(key("b")));
  for (const char* name : {"a", "c", "d"}) EXPECT_TRUE(cache.find(key(name))) << name;
  ASSERT_TRUE(cache.store(key("e"), std::string(5000, 'p')));  // beyond the limit alone
  EXPECT_FALSE(cache.find(key("e")));
  EXPECT_THAT(files(), SizeIs(3));
}

TEST_F(CacheTest, RemovesAbandonedTemporaries) {
  const CompileCache cache(directory_.path(), 3000);
  const std::string old = cache.path(key("x")) + ".tmp-1-2", fresh = cache.path(key("x")) + ".tmp-3-4";
  ASSERT_TRUE(base::write_file_atomically(old, "half"));
  ASSERT_TRUE(base::write_file_atomically(fresh, "half"));
  make_old(old, 7200);
  const std::string lock = cache.path(key("x")) + ".lock";  // of a process that was killed
  ASSERT_TRUE(base::write_file_atomically(lock, ""));
  make_old(lock, 7200);
  ASSERT_TRUE(cache.store(key("a"), "program"));
  EXPECT_FALSE(base::path_exists(old));
  EXPECT_FALSE(base::path_exists(lock));
  EXPECT_TRUE(base::path_exists(fresh));
}

TEST_F(CacheTest, AFolderThatCannotBeWrittenIsAnError) {
  ASSERT_TRUE(base::write_file_atomically(directory_.path("file"), ""));
  EXPECT_FALSE(CompileCache(directory_.path("file/cache"), 1000).store(key("a"), "x"));
}

TEST(CacheDirectory, FollowsTheEnvironment) {
  ::setenv("HOME", "/home/user", 1);
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("SLUICE_CACHE_DIR");
  EXPECT_EQ(default_cache_directory(), "/home/user/.cache/sluice");
  ::setenv("XDG_CACHE_HOME", "/var/cache/user", 1);
  EXPECT_EQ(default_cache_directory(), "/var/cache/user/sluice");
  ::setenv("SLUICE_CACHE_DIR", "~/programs", 1);
  EXPECT_EQ(default_cache_directory(), "/home/user/programs");
  ::setenv("SLUICE_CACHE_DIR", "off", 1);
  EXPECT_EQ(default_cache_directory(), "");
  ::unsetenv("SLUICE_CACHE_DIR");
  ::unsetenv("XDG_CACHE_HOME");
}

// With the real plugin.
class ProgramCacheTest : public CacheTest {
 protected:
  std::shared_ptr<Executable> compile(const std::string& text = add_program(), int devices = 1,
                                      const std::string& folder = "") {
    CompileOptions options;
    options.argument_types.assign(2, f32({4}));
    client_ = cpu_client(devices, folder.empty() ? directory_.path() : folder);
    return base::value_or_throw(client_->compile(text, options));
  }
  void expect_adds(const Executable& program) {
    const float x[] = {1, 2, 3, 4};
    Buffer a = base::value_or_throw(client_->put(x, f32({4}), *client_->devices()[0]));
    const std::vector<std::vector<Buffer*>> arguments = {{&a, &a}};
    EXPECT_THAT(values<float>(base::value_or_throw(program.execute(arguments)).outputs[0][0]),
                ElementsAre(2, 4, 6, 8));
  }

  std::shared_ptr<Client> client_;
};

TEST_F(ProgramCacheTest, SecondCompileIsAHit) {
  EXPECT_FALSE(compile()->from_cache());
  EXPECT_THAT(files(), SizeIs(1));
  const auto hit = compile();
  EXPECT_TRUE(hit->from_cache());
  EXPECT_EQ(hit->output_type(0), f32({4}));
  expect_adds(*hit);
  EXPECT_FALSE(compile(add_program() + "\n")->from_cache());  // another text
  EXPECT_FALSE(compile(add_program(), 2)->from_cache());      // another number of devices
}

TEST_F(ProgramCacheTest, FlagsOfXlaArePartOfTheKey) {
  compile();
  ::setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false", 1);  // read by the plugin only when it is loaded
  EXPECT_FALSE(compile()->from_cache());
  ::unsetenv("XLA_FLAGS");
  EXPECT_TRUE(compile()->from_cache());
}

TEST_F(ProgramCacheTest, DamagedEntryIsReplaced) {
  compile();
  const std::string path = directory_.path(files().front());
  std::string bytes = *base::read_file(path);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x10);
  ASSERT_TRUE(base::write_file_atomically(path, bytes));
  const auto compiled = compile();
  EXPECT_FALSE(compiled->from_cache());
  expect_adds(*compiled);
  EXPECT_TRUE(compile()->from_cache());
}

TEST_F(ProgramCacheTest, EntryThatThePluginRefusesIsReplaced) {
  compile();
  const std::string name = files().front(), key = name.substr(0, name.find('.'));
  ASSERT_TRUE(CompileCache(directory_.path(), kDefaultCacheLimit).store(key, "whole, but no program"));
  const auto compiled = compile();
  EXPECT_FALSE(compiled->from_cache());
  expect_adds(*compiled);
  EXPECT_TRUE(compile()->from_cache());
}

TEST_F(ProgramCacheTest, ReplicasWorkFromTheCache) {
  CompileOptions options;
  options.argument_types = {f32({4})};
  options.num_replicas = 2;
  for (const bool expected : {false, true}) {
    const auto client = cpu_client(2, directory_.path());
    const auto sum =
        base::value_or_throw(client->compile(testing::all_reduce_program("[[0, 1]]", "1x2"), options));
    EXPECT_EQ(sum->from_cache(), expected);
    const float x[] = {1, 2, 3, 4}, y[] = {5, 5, 5, 5};
    Buffer a = base::value_or_throw(client->put(x, f32({4}), *client->devices()[0]));
    Buffer b = base::value_or_throw(client->put(y, f32({4}), *client->devices()[1]));
    const std::vector<std::vector<Buffer*>> arguments = {{&a}, {&b}};
    const Launch launch = base::value_or_throw(sum->execute(arguments));
    for (size_t r = 0; r < 2; ++r) EXPECT_THAT(values<float>(launch.outputs[0][r]), ElementsAre(6, 7, 8, 9));
  }
}

TEST_F(ProgramCacheTest, AUselessFolderDoesNotStopTheWork) {
  ASSERT_TRUE(base::write_file_atomically(directory_.path("file"), ""));
  client_ = cpu_client(1, directory_.path("file/cache"));
  CompileOptions options;
  options.argument_types.assign(2, f32({4}));
  expect_adds(*base::value_or_throw(client_->compile(add_program(), options)));
}

// A process that compiles without an end.
TEST_F(ProgramCacheTest, WaitsAsLongAsTheEnvironmentSays) {
  compile();
  const std::string name = files().front(), key = name.substr(0, name.find('.'));
  const CompileCache cache(directory_.path(), kDefaultCacheLimit);
  cache.remove(key);
  const CompileClaim holder = cache.claim(key, "step", {});
  ASSERT_EQ(holder.state(), LockState::kHeld);
  for (const char* seconds : {"0", "0.05"}) {
    ::setenv("SLUICE_CACHE_WAIT", seconds, 1);
    ::testing::internal::CaptureStderr();
    const auto compiled = compile();
    const std::string printed = ::testing::internal::GetCapturedStderr();
    EXPECT_FALSE(compiled->from_cache());
    expect_adds(*compiled);
    EXPECT_EQ(printed.find("waits for no other one") != std::string::npos, std::string(seconds) != "0")
        << printed;
    cache.remove(key);
  }
  ::unsetenv("SLUICE_CACHE_WAIT");
}

TEST_F(ProgramCacheTest, ManyThreads) {
  const auto client = cpu_client(1, directory_.path());
  CompileOptions options;
  options.argument_types.assign(2, f32({4}));
  std::vector<std::thread> threads;
  std::atomic<int> compiled{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 3; ++i) {
        const auto add = client->compile(add_program() + std::string(i, '\n'), options);
        ASSERT_TRUE(add);
        compiled += (*add)->from_cache() ? 0 : 1;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(compiled, 3);
  EXPECT_THAT(files(), SizeIs(3));
  EXPECT_TRUE(compile()->from_cache());
}

// Run by ManyProcesses in processes of their own, with the folder in the environment.
TEST_F(ProgramCacheTest, DISABLED_OneOfMany) {
  const auto folder = base::environment("SLUICE_TEST_CACHE");
  ASSERT_TRUE(folder);
  CompileOptions options;
  options.argument_types.assign(2, f32({4}));
  client_ = cpu_client(1, *folder);
  for (int i = 0; i < 4; ++i) {
    const auto add = base::value_or_throw(client_->compile(add_program() + std::string(i, '\n'), options));
    expect_adds(*add);
    if (!add->from_cache()) std::ofstream(*folder + "-compiled", std::ios::app) << '.' << std::flush;
  }
}

TEST_F(ProgramCacheTest, ManyProcesses) {
  const std::string folder = directory_.path("cache");
  ::setenv("SLUICE_TEST_CACHE", folder.c_str(), 1);
  std::string program = "/proc/self/exe", filter = "--gtest_filter=ProgramCacheTest.DISABLED_OneOfMany",
              disabled = "--gtest_also_run_disabled_tests";
  char* arguments[] = {program.data(), filter.data(), disabled.data(), nullptr};
  std::vector<pid_t> children(4);
  for (pid_t& child : children) {
    ASSERT_EQ(::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ), 0);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  ::unsetenv("SLUICE_TEST_CACHE");
  EXPECT_THAT(base::value_or_throw(base::list_directory(folder)), SizeIs(4));
  // One process compiled each program.
  EXPECT_EQ(base::value_or_throw(base::read_file(folder + "-compiled")), "....");
  const auto hit = compile(add_program(), 1, folder);
  EXPECT_TRUE(hit->from_cache());
  expect_adds(*hit);
}

}  // namespace
}  // namespace sluice::pjrt
