#include "sluice/base/queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace sluice::base {
namespace {

TEST(Queue, KeepsOrderAndEnds) {
  Queue<int> queue(3);
  EXPECT_TRUE(queue.push(1));
  EXPECT_TRUE(queue.push(2));
  queue.close();
  EXPECT_FALSE(queue.push(3));
  EXPECT_EQ(**queue.pop(), 1);
  EXPECT_EQ(**queue.pop(), 2);
  auto end = queue.pop();
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->has_value());
}

TEST(Queue, ErrorComesAfterTheItems) {
  Queue<std::unique_ptr<int>> queue(2);
  queue.push(std::make_unique<int>(5));
  queue.close(Error(Code::kDataLoss, "shard cut off"));
  queue.close(Error(Code::kInternal, "a later error"));
  EXPECT_EQ(***queue.pop(), 5);
  for (int i = 0; i < 2; ++i) {
    auto end = queue.pop();
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code(), Code::kDataLoss);
  }
}

TEST(Queue, TryPopTellsWaitingFromTheEnd) {
  Queue<int> queue(2);
  bool waiting = false;
  EXPECT_FALSE(queue.try_pop(&waiting)->has_value());
  EXPECT_TRUE(waiting);
  queue.push(1);
  EXPECT_EQ(**queue.try_pop(&waiting), 1);
  EXPECT_FALSE(waiting);
  queue.close();
  EXPECT_FALSE(queue.try_pop(&waiting)->has_value());
  EXPECT_FALSE(waiting);
}

TEST(Queue, PushWaitsForRoom) {
  Queue<int> queue(2);
  std::atomic<int> pushed{0};
  std::thread producer([&] {
    for (int i = 0; i < 100; ++i) {
      queue.push(i);
      ++pushed;
    }
    queue.close();
  });
  int received = 0;
  while (true) {
    auto item = queue.pop();
    if (!item->has_value()) break;
    ++received;
    // Taken, queued and the one in the producer's hands.
    EXPECT_LE(pushed.load(), received + 2);
  }
  producer.join();
  EXPECT_EQ(received, 100);
}

TEST(Queue, CancelFreesTheProducers) {
  Queue<int> queue(1);
  queue.push(0);
  std::thread producer([&] { EXPECT_FALSE(queue.push(1)); });
  queue.cancel();
  producer.join();
  EXPECT_FALSE(queue.pop()->has_value());
}

TEST(Queue, ManyThreadsLoseNothing) {
  Queue<int> queue(4);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> producers, consumers;
  for (int p = 0; p < 3; ++p) {
    producers.emplace_back([&] {
      for (int i = 1; i <= 1000; ++i) queue.push(i);
    });
  }
  for (int c = 0; c < 3; ++c) {
    consumers.emplace_back([&] {
      for (auto item = queue.pop(); item->has_value(); item = queue.pop()) sum += **item;
    });
  }
  for (auto& thread : producers) thread.join();
  queue.close();
  for (auto& thread : consumers) thread.join();
  EXPECT_EQ(sum.load(), 3 * 500500);
}

}  // namespace
}  // namespace sluice::base
