// Collectives through shared memory: between threads that stand for processes, and between real ones that
// die.
#include "sluice/replica/transport/shared_transport.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>
#include <vector>

#include "sluice/replica/loss.h"

namespace sluice::replica {
namespace {

using collectives::HostSpan;
using collectives::Reduction;
using stablehlo::DType;
using ::testing::HasSubstr;

constexpr std::chrono::minutes kLong{10};

// Of processes that know nothing of each other but the transport.
const RunState kAlone{[] { return base::Status(); }, ending};

std::vector<std::shared_ptr<collectives::Transport>> connect(int processes,
                                                             std::chrono::milliseconds timeout = kLong) {
  std::vector<std::shared_ptr<collectives::Transport>> all;
  auto first = base::value_or_throw(SharedSegment::create(processes));
  const std::string name = first->name();
  all.push_back(make_shared_transport(std::move(first), 0, processes, timeout, kAlone));
  for (int p = 1; p < processes; ++p)
    all.push_back(make_shared_transport(base::value_or_throw(SharedSegment::open(name, processes)), p,
                                        processes, timeout, kAlone));
  SharedSegment::remove(name);
  return all;
}

void in_threads(int processes, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int p = 0; p < processes; ++p) threads.emplace_back(body, p);
  for (auto& thread : threads) thread.join();
}

template <typename T>
T value(int process, size_t span, size_t k) {
  return static_cast<T>((process + 2) * 3 + static_cast<int>((span * 5 + k) % 11));
}

// Spans of many sizes: empty, small, around the size of a piece, larger than it.
template <typename T>
void reduce_and_compare(collectives::Transport& mine, int index, int processes, DType dtype,
                        Reduction reduction) {
  const std::vector<size_t> sizes = {0, 1, 100, 60'000, 131'072, 131'073, 0, 300'000, 7};
  std::vector<std::vector<T>> data;
  std::vector<HostSpan> spans;
  for (size_t s = 0; s < sizes.size(); ++s) {
    data.emplace_back(sizes[s]);
    for (size_t k = 0; k < sizes[s]; ++k) data[s][k] = value<T>(index, s, k);
  }
  for (auto& span : data) spans.push_back({span.data(), span.size()});
  const auto status = mine.all_reduce(spans, dtype, reduction);
  ASSERT_TRUE(status) << status.error().what();
  for (size_t s = 0; s < sizes.size(); ++s) {
    for (size_t k = 0; k < sizes[s]; ++k) {
      T expected = value<T>(0, s, k);
      for (int p = 1; p < processes; ++p) {
        const T next = value<T>(p, s, k);
        expected = reduction == Reduction::kSum   ? static_cast<T>(expected + next)
                   : reduction == Reduction::kMax ? std::max(expected, next)
                                                  : std::min(expected, next);
      }
      ASSERT_EQ(data[s][k], expected) << "span " << s << ", element " << k;
    }
  }
}

TEST(SharedTransport, Reduces) {
  for (int processes : {1, 2, 3, 5}) {
    auto all = connect(processes);
    in_threads(processes, [&](int p) {
      collectives::Transport& mine = *all[static_cast<size_t>(p)];
      for (Reduction reduction : {Reduction::kSum, Reduction::kMax, Reduction::kMin}) {
        reduce_and_compare<float>(mine, p, processes, DType::kF32, reduction);
        reduce_and_compare<double>(mine, p, processes, DType::kF64, reduction);
        reduce_and_compare<int8_t>(mine, p, processes, DType::kS8, reduction);
        reduce_and_compare<int64_t>(mine, p, processes, DType::kS64, reduction);
      }
    });
  }
}

TEST(SharedTransport, GathersAndExchanges) {
  constexpr int kProcesses = 4;
  auto all = connect(kProcesses);
  in_threads(kProcesses, [&](int p) {
    collectives::Transport& mine = *all[static_cast<size_t>(p)];
    for (size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, size_t{1'500'000}}) {
      std::string whole(bytes * kProcesses, 'x');
      std::fill_n(whole.begin() + static_cast<std::ptrdiff_t>(bytes) * p, bytes, static_cast<char>('a' + p));
      const auto status = mine.all_gather(whole.data(), bytes);
      ASSERT_TRUE(status) << status.error().what();
      for (size_t i = 0; i < whole.size(); ++i) ASSERT_EQ(whole[i], static_cast<char>('a' + i / bytes)) << i;
    }
    for (int round = 0; round < 200; ++round) {
      const auto parts = mine.exchange(base::str("process ", p, " round ", 1000 + round));
      ASSERT_TRUE(parts) << parts.error().what();
      for (int q = 0; q < kProcesses; ++q)
        ASSERT_EQ((*parts)[static_cast<size_t>(q)], base::str("process ", q, " round ", 1000 + round));
    }
  });
}

TEST(SharedTransport, OneThatStopsSaysWhy) {
  auto all = connect(3);
  in_threads(3, [&](int p) {
    collectives::Transport& mine = *all[static_cast<size_t>(p)];
    if (p == 1) return mine.abort("replica 3 did not come");
    const auto parts = mine.exchange("x");
    ASSERT_FALSE(parts);
    EXPECT_THAT(parts.error().what(), HasSubstr("another process ended: process 1: replica 3 did not come"));
    EXPECT_FALSE(mine.exchange("x"));
  });
}

TEST(SharedTransport, OneThatDoesNotComeIsNotWaitedForForever) {
  auto all = connect(2, std::chrono::milliseconds(100));
  const auto parts = all[0]->exchange("x");
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().code(), Code::kDeadlineExceeded);
}

TEST(SharedTransport, WhoWaitsGivesUpWhenTheRunHasEnded) {
  auto segment = base::value_or_throw(SharedSegment::create(2));
  const auto other = make_shared_transport(base::value_or_throw(SharedSegment::open(segment->name(), 2)), 1,
                                           2, kLong, kAlone);
  const RunState ended{[]() -> base::Status { return base::fail(Code::kUnavailable, "lost process 1"); },
                       ending};
  const auto mine = make_shared_transport(std::move(segment), 0, 2, kLong, ended);
  const auto parts = mine->exchange("x");
  ASSERT_FALSE(parts);
  EXPECT_STREQ(parts.error().what(), "lost process 1");
  EXPECT_FALSE(mine->exchange("x"));
}

// A process that gave up because of another is not taken for the cause.
TEST(SharedTransport, TheFirstReasonIsGiven) {
  auto segment = base::value_or_throw(SharedSegment::create(2));
  const RunState ended{[] { return base::Status(); },
                       [](const std::string& reason) {
                         EXPECT_THAT(reason, HasSubstr("lost process 1 of 2"));
                         return ending("lost process 2");
                       }};
  auto gone = make_shared_transport(base::value_or_throw(SharedSegment::open(segment->name(), 2)), 1, 2,
                                    kLong, kAlone);
  gone.reset();
  const auto mine = make_shared_transport(std::move(segment), 0, 2, kLong, ended);
  const auto parts = mine->exchange("x");
  ASSERT_FALSE(parts);
  EXPECT_STREQ(parts.error().what(), "lost process 2");
}

TEST(SharedTransport, AKilledProcessIsNamed) {
  auto segment = base::value_or_throw(SharedSegment::create(2));
  // What the child says by: so many collectives are done.
  auto* rounds = static_cast<std::atomic<int>*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t child = ::fork();
  if (child == 0) {
    auto mine = make_shared_transport(base::value_or_throw(SharedSegment::open(segment->name(), 2)), 1, 2,
                                      kLong, kAlone);
    *rounds = 1;
    while (mine->exchange("child!")) ++*rounds;
    ::_exit(1);
  }
  while (*rounds == 0) std::this_thread::yield();
  auto mine = make_shared_transport(std::move(segment), 0, 2, kLong, kAlone);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(mine->exchange("parent"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  base::Status status;
  while (status) {
    const auto parts = mine->exchange("parent");
    if (!parts) status = tl::unexpected<Error>(parts.error());
  }
  EXPECT_EQ(status.error().code(), Code::kUnavailable);
  EXPECT_THAT(status.error().what(), HasSubstr("lost process 1 of 2"));
  ::munmap(rounds, 4096);
}

TEST(SharedTransport, WhatIsNotThereOrAnotherSizeIsRefused) {
  EXPECT_EQ(SharedSegment::open("/sluice-not-there", 2).error().code(), Code::kNotFound);
  const auto segment = base::value_or_throw(SharedSegment::create(2));
  const auto opened = SharedSegment::open(segment->name(), 3);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().what(), HasSubstr("is not one of 3 processes"));
  SharedSegment::remove(segment->name());
  EXPECT_FALSE(SharedSegment::open(segment->name(), 2));
}

// Process 0 says the name, and what stands under it may be another user's or none.
TEST(SharedSegment, NamesThatAreNoneAreRefused) {
  for (const std::string& name : {std::string(), std::string("sluice-1"), std::string("/other"),
                                  std::string("/sluice-/../x"), "/sluice-" + std::string(10'000, 'x')}) {
    const auto opened = SharedSegment::open(name, 2);
    ASSERT_FALSE(opened) << name.size();
    EXPECT_EQ(opened.error().code(), Code::kInvalidArgument);
  }
  const auto segment = base::value_or_throw(SharedSegment::create(2));
  EXPECT_TRUE(SharedSegment::open(segment->name(), 2));
  EXPECT_FALSE(SharedSegment::open(segment->name(), 3));
}

TEST(Loss, WhatAnotherProcessSaysCanBeShown) {
  const std::string reason = ending("lost process 1 (\x1b]0;title\a)" + std::string(100'000, 'x')).what();
  EXPECT_EQ(reason.find('\x1b'), std::string::npos);
  EXPECT_LT(reason.size(), 5'000u);
  EXPECT_THAT(reason, ::testing::StartsWith("lost process 1 (\\x1b]0;title"));
}

}  // namespace
}  // namespace sluice::replica
