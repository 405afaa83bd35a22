#include <execinfo.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "sluice/device/report/frames.h"

namespace sluice::device {
namespace {

struct Both {
  Frames found, expected;
};

// The frames of the callers, as found here and by glibc. The first frame is in this function, where the two
// calls differ; a sanitizer adds one of its own to glibc's.
__attribute__((noinline)) Both here() {
  Both both{frames_here(), Frames(64)};
  both.expected.resize(static_cast<size_t>(backtrace(both.expected.data(), 64)));
  both.found.erase(both.found.begin());
  both.expected.erase(both.expected.begin(),
                      std::find(both.expected.begin(), both.expected.end(), both.found.front()));
  both.expected.resize(std::min(both.expected.size(), both.found.size()));
  return both;
}

// Keeps its frame: what it adds is done after the call.
__attribute__((noinline)) Both at_depth(int depth) {
  Both both = depth == 0 ? here() : at_depth(depth - 1);
  asm volatile("" ::: "memory");
  return both;
}

void expect_as_glibc(const Both& both) {
  ASSERT_GE(both.found.size(), 3u);
  EXPECT_EQ(both.found, both.expected);
}

TEST(FramesHere, AreThoseOfGlibcAtEachDepthAndCall) {
  std::set<uint64_t> hashes;
  for (int round = 0; round < 3; ++round) {
    for (int depth : {0, 1, 2, 7, 60}) {
      for (int call = 0; call < 2; ++call) {
        const Both both = call == 0 ? at_depth(depth) : at_depth(depth);
        expect_as_glibc(both);
        hashes.insert(hash_of(both.found));
      }
    }
  }
  // Each round finds the same. The two calls look alike from 47 frames and more below them.
  EXPECT_LE(hashes.size(), 10u);
  EXPECT_GE(hashes.size(), 5u);
}

__attribute__((noinline)) Frames from_one_place() { return frames_here(); }

TEST(FramesHere, DifferByTheCaller) {
  std::set<uint64_t> hashes;
  for (int round = 0; round < 3; ++round) {
    hashes.insert(hash_of(from_one_place()));
    hashes.insert(hash_of(from_one_place()));
  }
  EXPECT_EQ(hashes.size(), 2u);
}

TEST(FramesHere, NeedNoOtherWalkFromTheSamePlace) {
#if defined(__x86_64__)
  const size_t before = stack_walks();
  for (int round = 0; round < 100; ++round) from_one_place();
  EXPECT_LE(stack_walks() - before, 1u);
#endif
}

TEST(FramesHere, AreOfEachThread) {
  for (int round = 0; round < 20; ++round) {
    std::thread([] { expect_as_glibc(at_depth(5)); }).join();
    std::thread([] { expect_as_glibc(at_depth(9)); }).join();
  }
}

}  // namespace
}  // namespace sluice::device
