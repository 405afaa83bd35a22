// Threads stand for processes: a lock belongs to the file that was opened.
#include "sluice/pjrt/cache/compile_claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/pjrt/cache/compile_cache.h"

namespace sluice::pjrt {
namespace {

using ::testing::IsEmpty;

// Waits without an end, and looks often.
constexpr WaitTimes kPatient{.longest = 1e9, .pause = 0.01};

class CompileClaimTest : public ::testing::Test {
 protected:
  CompileClaim take(const WaitTimes& times = kPatient) { return cache_.claim("k", "step", times); }
  std::string lock() { return cache_.path("k") + ".lock"; }
  // Returns once `thread`, which asks for the claim, must have found another holder.
  static void let_wait() { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }

  base::TemporaryDirectory directory_ = base::value_or_throw(base::TemporaryDirectory::create());
  CompileCache cache_{directory_.path("cache"), kDefaultCacheLimit};
};

TEST_F(CompileClaimTest, OneCompilesAndTheOthersRead) {
  std::atomic<int> compiled{0}, read{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      auto found = cache_.find("k");
      if (!found) {
        const CompileClaim claim = take();
        found = cache_.find_after(claim, "k");
        if (!found) {
          ++compiled;
          let_wait();
          ASSERT_TRUE(cache_.store("k", "program"));
          return;
        }
      }
      EXPECT_EQ(found, "program");
      ++read;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(compiled, 1);
  EXPECT_EQ(read, 7);
  EXPECT_EQ(base::value_or_throw(base::list_directory(cache_.directory())).size(), 1U);  // and no lock
}

TEST_F(CompileClaimTest, AnotherProgramDoesNotWait) {
  const CompileClaim one = take();
  const CompileClaim other = cache_.claim("another", "step", kPatient);
  EXPECT_EQ(one.state(), LockState::kHeld);
  EXPECT_EQ(other.state(), LockState::kHeld);
  EXPECT_FALSE(other.waited());
}

TEST_F(CompileClaimTest, WhoCannotCompileEndsTheWait) {
  auto holder = std::make_unique<CompileClaim>(take());
  std::thread waiting([&] {
    const CompileClaim claim = take();
    EXPECT_EQ(claim.state(), LockState::kReleased);
    EXPECT_TRUE(claim.waited());
    EXPECT_FALSE(cache_.find_after(claim, "k"));
  });
  let_wait();
  holder.reset();  // without an entry
  waiting.join();
  EXPECT_EQ(take().state(), LockState::kHeld);
}

TEST_F(CompileClaimTest, AWaitHasABound) {
  const CompileClaim holder = take();
  const CompileClaim waited = take({.longest = 0.05, .pause = 0.01});
  EXPECT_EQ(waited.state(), LockState::kGivenUp);
  EXPECT_TRUE(waited.waited());
  const CompileClaim never = take({.longest = 0});
  EXPECT_EQ(never.state(), LockState::kGivenUp);
  EXPECT_FALSE(never.waited());
}

// Run by AHolderThatDies in a process of its own, with the folder in the environment.
TEST_F(CompileClaimTest, DISABLED_Hold) {
  const auto folder = base::environment("SLUICE_TEST_CACHE");
  ASSERT_TRUE(folder);
  const CompileClaim claim = CompileCache(*folder, kDefaultCacheLimit).claim("k", "step", kPatient);
  ASSERT_EQ(claim.state(), LockState::kHeld);
  ASSERT_TRUE(base::write_file_atomically(*folder + "-held", ""));
  for (;;) ::pause();
}

TEST_F(CompileClaimTest, AHolderThatDies) {
  ::setenv("SLUICE_TEST_CACHE", cache_.directory().c_str(), 1);
  std::string program = "/proc/self/exe", filter = "--gtest_filter=CompileClaimTest.DISABLED_Hold",
              disabled = "--gtest_also_run_disabled_tests";
  char* arguments[] = {program.data(), filter.data(), disabled.data(), nullptr};
  pid_t child = 0;
  ASSERT_EQ(::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ), 0);
  ::unsetenv("SLUICE_TEST_CACHE");
  while (!base::path_exists(cache_.directory() + "-held") && ::waitpid(child, nullptr, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(base::path_exists(cache_.directory() + "-held"));
  std::atomic<int> held{0}, read{0};
  std::vector<std::thread> waiting;
  for (int t = 0; t < 3; ++t) {
    waiting.emplace_back([&] {
      const CompileClaim claim = take();
      EXPECT_TRUE(claim.waited());
      if (const auto found = cache_.find_after(claim, "k")) {
        ++read;
        return;
      }
      held += claim.state() == LockState::kHeld ? 1 : 0;
      EXPECT_TRUE(cache_.store("k", "program"));
    });
  }
  let_wait();
  EXPECT_EQ(held, 0);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (auto& thread : waiting) thread.join();
  EXPECT_EQ(held, 1);
  EXPECT_EQ(read, 2);
  EXPECT_FALSE(base::path_exists(lock()));
}

TEST_F(CompileClaimTest, AFileLeftBehindIsNoLock) {
  ASSERT_TRUE(cache_.store("another", "program"));
  ASSERT_TRUE(base::write_file_atomically(lock(), ""));
  const CompileClaim claim = take();
  EXPECT_EQ(claim.state(), LockState::kHeld);
  EXPECT_FALSE(claim.waited());
}

TEST_F(CompileClaimTest, WithoutAFileThereIsNoTurn) {
  ASSERT_TRUE(cache_.store("another", "program"));
  ASSERT_TRUE(base::make_directories(lock()));  // cannot be opened for writing, as in a read-only folder
  EXPECT_EQ(take().state(), LockState::kNone);
  // Links lead to files of others.
  ASSERT_EQ(::rmdir(lock().c_str()), 0);
  ASSERT_EQ(::symlink(directory_.path("elsewhere").c_str(), lock().c_str()), 0);
  EXPECT_EQ(take().state(), LockState::kNone);
  EXPECT_FALSE(base::path_exists(directory_.path("elsewhere")));
  ASSERT_EQ(::unlink(lock().c_str()), 0);
  // Entries of a folder that others may write are not run, so nobody waits for them.
  ASSERT_EQ(::chmod(cache_.directory().c_str(), 0777), 0);
  EXPECT_EQ(take().state(), LockState::kNone);
  ASSERT_TRUE(base::write_file_atomically(directory_.path("file"), ""));
  const CompileCache useless(directory_.path("file/cache"), 1000);
  EXPECT_EQ(useless.claim("k", "step", kPatient).state(), LockState::kNone);
}

TEST_F(CompileClaimTest, AReadOnlyFolder) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  ASSERT_TRUE(cache_.store("another", "program"));
  ASSERT_EQ(::chmod(cache_.directory().c_str(), 0500), 0);
  EXPECT_EQ(take().state(), LockState::kNone);
  ::chmod(cache_.directory().c_str(), 0700);
}

// Such an entry was reported by find(), which would do so again.
TEST_F(CompileClaimTest, ADamagedEntryIsNotReadTwice) {
  ASSERT_TRUE(cache_.store("k", "program"));
  ASSERT_TRUE(base::write_file_atomically(cache_.path("k"), "damaged"));
  ASSERT_FALSE(cache_.find("k"));
  const CompileClaim claim = take();
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(cache_.find_after(claim, "k"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
  ASSERT_TRUE(cache_.store("k", "program"));
  EXPECT_EQ(cache_.find_after(claim, "k"), "program");
}

}  // namespace
}  // namespace sluice::pjrt
