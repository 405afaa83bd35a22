#include "sluice/kernels/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cfenv>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/kernels/test_threads.h"

namespace sluice::kernels {
namespace {

using Task = std::pair<void (*)(void*), void*>;

TEST(ParallelFor, CallsEachIndexOnce) {
  const TestThreads threads;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::atomic<int>> calls(100);
    parallel_for(calls.size(), [&](size_t i) { ++calls[i]; });
    for (const auto& count : calls) ASSERT_EQ(count, 1);
  }
  parallel_for(0, [](size_t) { ADD_FAILURE(); });
}

TEST(ParallelFor, HelpersWorkBesideTheCaller) {
  const TestThreads threads;
  std::atomic<int> there = 0;
  // Ends only when three threads have begun.
  parallel_for(3, [&](size_t) {
    ++there;
    while (there < 3) std::this_thread::yield();
  });
  EXPECT_EQ(there, 3);
}

TEST(ParallelFor, TheCallerDoesWhatNoHelperBegins) {
  int calls = 0;
  parallel_for(10, [&](size_t) { ++calls; });
  EXPECT_EQ(calls, 10);
  const UseThreads refused([](void (*)(void*), void*) { return false; });
  parallel_for(10, [&](size_t) { ++calls; });
  EXPECT_EQ(calls, 20);
}

TEST(ParallelFor, AHelperThatComesTooLateDoesNothing) {
  std::vector<Task> late;
  int calls = 0;
  {
    const UseThreads threads([&](void (*task)(void*), void* data) {
      late.emplace_back(task, data);
      return true;
    });
    parallel_for(10, [&](size_t) { ++calls; });
  }
  EXPECT_EQ(late.size(), static_cast<size_t>(threads_of_a_call() - 1));
  for (const auto& [task, data] : late) task(data);
  EXPECT_EQ(calls, 10);
}

TEST(ParallelFor, LoopsInsideRunAlone) {
  const TestThreads threads;
  std::atomic<int> calls = 0;
  parallel_for(3, [&](size_t) {
    const std::thread::id here = std::this_thread::get_id();
    parallel_for(5, [&](size_t) {
      EXPECT_EQ(std::this_thread::get_id(), here);
      ++calls;
    });
  });
  EXPECT_EQ(calls, 15);
}

TEST(ParallelFor, HelpersRoundAsTheCaller) {
  const TestThreads threads;
  std::fesetround(FE_UPWARD);
  std::atomic<int> there = 0, upward = 0;
  parallel_for(3, [&](size_t) {
    upward += std::fegetround() == FE_UPWARD ? 1 : 0;
    ++there;
    while (there < 3) std::this_thread::yield();
  });
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(upward, 3);
}

TEST(ParallelFor, AnErrorReachesTheCaller) {
  const TestThreads threads;
  EXPECT_TRUE(parallel_for_status(9, [](size_t) { return base::Status(); }));
  const base::Status status = parallel_for_status(9, [](size_t i) -> base::Status {
    if (i == 5) return base::fail(Code::kInternal, "the fifth");
    return {};
  });
  ASSERT_FALSE(status);
  EXPECT_STREQ(status.error().what(), "the fifth");
}

TEST(ParallelTurns, ATurnBeginsWhenTheOneBeforeHasEnded) {
  const TestThreads threads;
  constexpr size_t kTurns = 200, kCount = 5;
  for (int round = 0; round < 50; ++round) {
    std::atomic<size_t> done = 0;
    std::vector<std::atomic<int>> calls(kTurns * kCount);
    parallel_turns(kTurns, kCount, [&](size_t turn, size_t i) {
      EXPECT_GE(done, turn * kCount);
      EXPECT_LT(done, (turn + 1) * kCount);
      ++calls[turn * kCount + i];
      ++done;
    });
    for (const auto& count : calls) ASSERT_EQ(count, 1);
  }
  parallel_turns(0, kCount, [](size_t, size_t) { ADD_FAILURE(); });
  parallel_turns(kTurns, 0, [](size_t, size_t) { ADD_FAILURE(); });
}

TEST(ParallelTurns, AThreadKeepsItsIndex) {
  const TestThreads threads;
  std::vector<std::thread::id> first(3), second(3);
  std::atomic<int> there = 0;
  // Each turn ends only when three threads have begun it.
  parallel_turns(2, 3, [&](size_t turn, size_t i) {
    (turn == 0 ? first : second)[i] = std::this_thread::get_id();
    ++there;
    while (there < 3 * (static_cast<int>(turn) + 1)) std::this_thread::yield();
  });
  EXPECT_EQ(first, second);
}

TEST(ParallelTurns, TheCallerDoesWhatNoHelperBegins) {
  std::vector<Task> late;
  std::vector<size_t> turns;
  const auto body = [&](size_t turn, size_t) { turns.push_back(turn); };
  const std::vector<size_t> in_order = {0, 0, 1, 1, 2, 2};
  parallel_turns(3, 2, body);
  EXPECT_EQ(turns, in_order) << "without helpers";
  turns.clear();
  {
    const UseThreads threads([&](void (*task)(void*), void* data) {
      late.emplace_back(task, data);
      return true;
    });
    parallel_turns(3, 2, body);
  }
  for (const auto& [task, data] : late) task(data);
  EXPECT_EQ(turns, in_order);
}

}  // namespace
}  // namespace sluice::kernels
