// Turns to compile among hosts that share a bucket.
#include "sluice/pjrt/cache/remote_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/pjrt/cache/compile_cache.h"

namespace sluice::pjrt {
namespace {

// Waits without an end, and looks often. Locks are not written again, and keep their holders.
constexpr WaitTimes kFast{.longest = 1e9, .pause = 0.01, .remote_pause = 0.01, .beat = 1e9, .silence = 1e9};

// A bucket whose objects have generations, and hosts with a home folder each.
class RemoteLockTest : public ::testing::Test {
 protected:
  struct Object {
    std::string content;
    int generation;
  };

  RemoteLockTest() {
    how_.fetch = [this](const std::string& url, const std::string& path) -> base::Status {
      const std::lock_guard lock(mutex_);
      const auto found = objects_.find(url);
      if (found == objects_.end()) return base::fail(Code::kNotFound, url);
      return base::write_file_atomically(path, found->second.content);
    };
    how_.store = [this](const std::string& path, const std::string& url, bool) -> base::Status {
      SLUICE_TRY(std::string bytes, base::read_file(path));
      const std::lock_guard lock(mutex_);
      objects_[url] = {std::move(bytes), ++last_};
      return {};
    };
    how_.write = [this](const std::string& url, const std::string& text,
                        const std::string& generation) -> base::Result<std::string> {
      const std::lock_guard lock(mutex_);
      ++writes_;
      if (!writable_) return base::fail(Code::kPermissionDenied, "not yours");
      const auto found = objects_.find(url);
      const std::string now = found == objects_.end() ? "0" : std::to_string(found->second.generation);
      if (now != generation) return base::fail(Code::kFailedPrecondition, "it is ", now);
      objects_[url] = {text, ++last_};
      return std::to_string(last_);
    };
    how_.generation = [this](const std::string& url) -> base::Result<std::string> {
      const std::lock_guard lock(mutex_);
      const auto found = objects_.find(url);
      if (found == objects_.end()) return base::fail(Code::kNotFound, url);
      ++looks_;
      return std::to_string(found->second.generation);
    };
    how_.remove = [this](const std::string& url, const std::string& generation) -> base::Status {
      const std::lock_guard lock(mutex_);
      const auto found = objects_.find(url);
      if (found != objects_.end() && std::to_string(found->second.generation) == generation)
        objects_.erase(found);
      return {};
    };
    set_remote_cache(how_);
    ::unsetenv("XDG_CACHE_HOME");
    ::setenv("SLUICE_CACHE_DIR", "gs://bucket/programs", 1);
  }
  ~RemoteLockTest() override {
    ::unsetenv("SLUICE_CACHE_DIR");
    set_remote_cache({});
  }
  CompileCache host(const std::string& name) {
    ::setenv("HOME", folder_.path(name).c_str(), 1);
    return {default_cache_directory(), kDefaultCacheLimit};
  }
  size_t objects() {
    const std::lock_guard lock(mutex_);
    return objects_.size();
  }
  int generation() {
    const std::lock_guard lock(mutex_);
    return objects_.at(kLock).generation;
  }
  static void wait_for(const std::function<bool()>& condition) {
    while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  static constexpr const char* kLock = "gs://bucket/programs/k.program.lock";
  base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
  RemoteCache how_;
  std::mutex mutex_;
  std::map<std::string, Object> objects_;
  int last_ = 0;
  std::atomic<int> looks_{0}, writes_{0};  // at a lock that is there; of locks
  bool writable_ = true;
};

TEST_F(RemoteLockTest, OneHostCompilesForAll) {
  std::vector<CompileCache> hosts;
  for (const char* name : {"a", "b", "c", "d"}) hosts.push_back(host(name));
  std::atomic<int> compiled{0}, read{0};
  std::vector<std::thread> threads;
  for (const CompileCache& cache : hosts) {
    for (int process = 0; process < 2; ++process) {
      threads.emplace_back([&] {
        auto found = cache.find("k");
        if (!found) {
          const CompileClaim claim = cache.claim("k", "step", kFast);
          found = cache.find_after(claim, "k");
          if (!found) {
            ++compiled;
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            ASSERT_TRUE(cache.store("k", "program"));
            return;
          }
        }
        EXPECT_EQ(found, "program");
        ++read;
      });
    }
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(compiled, 1);
  EXPECT_EQ(read, 7);
  EXPECT_EQ(objects(), 1U);  // and no lock
}

TEST_F(RemoteLockTest, WhoCannotCompileEndsTheWait) {
  const CompileCache one = host("one"), two = host("two");
  auto holder = std::make_unique<CompileClaim>(one.claim("k", "step", kFast));
  ASSERT_EQ(holder->state(), LockState::kHeld);
  std::thread waiting([&] {
    const CompileClaim claim = two.claim("k", "step", kFast);
    EXPECT_EQ(claim.state(), LockState::kReleased);
    EXPECT_TRUE(claim.waited());
    EXPECT_FALSE(two.find_after(claim, "k"));
  });
  wait_for([this] { return looks_ > 1; });
  holder.reset();
  waiting.join();
  EXPECT_EQ(objects(), 0U);
}

TEST_F(RemoteLockTest, AHolderThatDies) {
  const CompileCache two = host("two"), three = host("three");
  objects_[kLock] = {"of a host that is gone", ++last_};
  WaitTimes times = kFast;
  times.silence = 0.1;
  const CompileClaim claim = two.claim("k", "step", times);
  EXPECT_EQ(claim.state(), LockState::kHeld);
  EXPECT_TRUE(claim.waited());
  EXPECT_FALSE(two.find_after(claim, "k"));
  // The others wait for the new holder.
  times.longest = 0.05;
  times.silence = 1e9;
  EXPECT_EQ(three.claim("k", "step", times).state(), LockState::kGivenUp);
}

TEST_F(RemoteLockTest, AHolderThatLivesWritesItsLock) {
  WaitTimes times = kFast;
  times.beat = 0.01;
  const CompileCache one = host("one");
  {
    const CompileClaim claim = one.claim("k", "step", times);
    ASSERT_EQ(claim.state(), LockState::kHeld);
    const int first = generation();
    wait_for([&] { return generation() > first + 2; });
  }
  EXPECT_EQ(objects(), 0U);
}

TEST_F(RemoteLockTest, ALockThatAnotherHostHasTakenIsLeftToIt) {
  WaitTimes times = kFast;
  times.beat = 0.01;
  const CompileCache one = host("one");
  {
    const CompileClaim claim = one.claim("k", "step", times);
    {
      const std::lock_guard lock(mutex_);
      objects_[kLock] = {"of another host", last_ += 100};
    }
    const int before = writes_;
    wait_for([&] { return writes_ > before; });
  }
  EXPECT_EQ(objects_.at(kLock).content, "of another host");
}

TEST_F(RemoteLockTest, ABucketThatCannotBeWrittenHasNoLocks) {
  writable_ = false;
  const CompileCache one = host("one"), two = host("two");
  const CompileClaim claim = one.claim("k", "step", kFast);
  EXPECT_EQ(claim.state(), LockState::kHeld);  // among the processes of this host
  EXPECT_FALSE(claim.waited());
  EXPECT_EQ(two.claim("k", "step", kFast).state(), LockState::kHeld);
  EXPECT_EQ(writes_, 1);
}

}  // namespace
}  // namespace sluice::pjrt
