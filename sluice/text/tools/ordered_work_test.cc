#include "sluice/text/tools/ordered_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

namespace sluice::text {
namespace {

struct Number {
  int value = 0;
  std::size_t bytes = 1;
  std::size_t size() const { return bytes; }
};

// The numbers up to `end`, each of so many bytes.
std::function<base::Result<bool>(Number&)> numbers(std::atomic<int>& made, int end, std::size_t bytes) {
  return [&made, end, bytes](Number& number) -> base::Result<bool> {
    if (made == end) return false;
    number = {made++, bytes};
    return true;
  };
}

base::Result<int> doubled(Number& number) {
  std::this_thread::sleep_for(std::chrono::microseconds(number.value * 7 % 40));
  return 2 * number.value;
}

TEST(OrderedWork, GivesResultsInTheOrderOfTheTasks) {
  std::atomic<int> made = 0;
  std::vector<int> results;
  base::value_or_throw(
      ordered_work<Number, int>(3, numbers(made, 500, 1), doubled, [&](int result) -> base::Status {
        results.push_back(result);
        return {};
      }));
  ASSERT_EQ(results.size(), 500u);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(results[static_cast<std::size_t>(i)], 2 * i);
}

TEST(OrderedWork, LongTasksWaitForEachOther) {
  for (const auto& [bytes, ahead] : {std::pair{kBytesAhead * 2, 1}, std::pair{kBytesAhead / 2, 2}}) {
    std::atomic<int> made = 0;
    int consumed = 0, max_ahead = 0;
    base::value_or_throw(
        ordered_work<Number, int>(4, numbers(made, 60, bytes), doubled, [&](int) -> base::Status {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          max_ahead = std::max(max_ahead, made - consumed);
          ++consumed;
          return {};
        }));
    EXPECT_EQ(consumed, 60);
    EXPECT_LE(max_ahead, ahead);
  }
}

TEST(OrderedWork, TheFirstErrorEndsIt) {
  for (const std::size_t bytes : {std::size_t{1}, kBytesAhead}) {
    const auto outcome = [&](int produce, int work, int consume) {
      std::atomic<int> made = 0;
      int consumed = 0;
      const auto fail = [](const char* what) { return base::fail(Code::kInternal, what); };
      const auto status = ordered_work<Number, int>(
          2,
          [&](Number& number) -> base::Result<bool> {
            if (made == produce) return fail("produce");
            return numbers(made, 100, bytes)(number);
          },
          [&](Number& number) -> base::Result<int> {
            if (number.value == work) return fail("work");
            return number.value;
          },
          [&](int value) -> base::Status {
            if (value == consume) return fail("consume");
            ++consumed;
            return {};
          });
      return std::pair{status ? std::string() : status.error().what(), consumed};
    };
    EXPECT_EQ(outcome(7, -1, -1), std::pair(std::string("produce"), 7));
    EXPECT_EQ(outcome(-1, 8, -1), std::pair(std::string("work"), 8));
    EXPECT_EQ(outcome(-1, -1, 9), std::pair(std::string("consume"), 9));
    EXPECT_EQ(outcome(-1, -1, -1), std::pair(std::string(), 100));
  }
}

}  // namespace
}  // namespace sluice::text
