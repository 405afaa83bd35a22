#include "sluice/base/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>
#include <vector>

namespace sluice::base {
namespace {

TEST(ThreadPool, RunsAllTasks) {
  std::atomic<int> done{0};
  ThreadPool pool("test", 3);
  for (int i = 0; i < 100; ++i) pool.submit([&] { ++done; });
  pool.wait();
  EXPECT_EQ(done.load(), 100);
  EXPECT_EQ(pool.size(), 3u);
}

TEST(ThreadPool, DestructorFinishesTheQueue) {
  std::atomic<int> done{0};
  {
    ThreadPool pool("test", 1);
    for (int i = 0; i < 50; ++i) pool.submit([&] { ++done; });
  }
  EXPECT_EQ(done.load(), 50);
}

TEST(ThreadPool, NamesItsThreads) {
  char name[16] = {};
  ThreadPool pool("decode", 1);
  pool.submit([&] { pthread_getname_np(pthread_self(), name, sizeof name); });
  pool.wait();
  EXPECT_STREQ(name, "decode-0");
}

TEST(ParallelFor, VisitsEachIndexOnce) {
  ThreadPool pool("test", 4);
  std::vector<std::atomic<int>> visits(1000);
  parallel_for(pool, visits.size(), [&](size_t i) { ++visits[i]; });
  for (auto& count : visits) EXPECT_EQ(count.load(), 1);
  parallel_for(pool, 0, [](size_t) { FAIL(); });
}

TEST(Thread, OnlyTheCallersPriorityFalls) {
  const int before = getpriority(PRIO_PROCESS, 0);
  int after = 0;
  std::thread([&after] {
    lower_thread_priority();
    after = getpriority(PRIO_PROCESS, 0);
  }).join();
  EXPECT_GE(after, 10);
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), before);
}

TEST(Thread, AtLeastOneProcessor) { EXPECT_GE(available_processors(), 1u); }

}  // namespace
}  // namespace sluice::base
