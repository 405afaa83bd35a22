// Processes that live, stop, leave and fail; threads stand for them.
#include "sluice/replica/pulse.h"

#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sluice/replica/loss.h"

namespace sluice::replica {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST(LostAfter, IsWhatTheEnvironmentSays) {
  ::unsetenv("SLUICE_LOST_AFTER");
  EXPECT_EQ(lost_after(), milliseconds(20'000));
  for (const auto& [text, expected] :
       {std::pair("60", 60'000), {"0.5", 500}, {"0", 0}, {"-1", 20'000}, {"soon", 20'000}}) {
    ::setenv("SLUICE_LOST_AFTER", text, 1);
    EXPECT_EQ(lost_after(), milliseconds(expected)) << text;
  }
  ::unsetenv("SLUICE_LOST_AFTER");
}

// What stands for the store. A process that is frozen beats no more: its calls wait.
struct Place {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values;
  std::map<int, bool> frozen;
  bool gone = false;

  std::unique_lock<std::mutex> enter(int process) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !frozen[process]; });
    return lock;
  }
  Pulse::Board board_of(int process) {
    const auto check = [this]() -> base::Status {
      if (gone) return base::fail(Code::kUnavailable, "lost process 0");
      return {};
    };
    return {[=, this](const std::string& key, const std::string& value) -> base::Status {
              const auto lock = enter(process);
              SLUICE_OK(check());
              values[key] = value;
              return {};
            },
            [=, this](const std::string& key) -> base::Result<std::optional<std::string>> {
              const auto lock = enter(process);
              SLUICE_OK(check());
              const auto found = values.find(key);
              if (found == values.end()) return std::nullopt;
              return found->second;
            },
            [=, this](const std::string& key, const std::string& value) -> base::Result<std::string> {
              const auto lock = enter(process);
              SLUICE_OK(check());
              return values.emplace(key, value).first->second;
            }};
  }
  void change(const std::function<void()>& how) {
    {
      std::lock_guard lock(mutex);
      how();
    }
    changed.notify_all();
  }
};

// Long beside a beat, so that a busy machine does not make a living process look dead.
constexpr Pulse::Times kTimes{.beat = milliseconds(2), .patience = milliseconds(2000)};

struct Crew {
  explicit Crew(int count) {
    for (int p = 0; p < count; ++p)
      pulses.push_back(std::make_unique<Pulse>(p, count, place.board_of(p), kTimes));
  }
  // Waits until process p knows that the run has ended.
  std::string ending_of(size_t p) const {
    while (pulses[p]->status()) std::this_thread::sleep_for(milliseconds(1));
    return pulses[p]->status().error().what();
  }
  // Waits until each has beaten so often since.
  void wait_for_beats(const std::vector<int>& processes, int beats) {
    for (int p : processes) {
      const auto now = [&] {
        std::lock_guard lock(place.mutex);
        const std::string text = place.values[Pulse::beat_key(p)];
        return text == "" ? 0 : std::stoi(text);
      };
      for (const int until = now() + beats; now() < until;) std::this_thread::sleep_for(milliseconds(1));
    }
  }
  Place place;
  std::vector<std::unique_ptr<Pulse>> pulses;
};

TEST(Pulse, OneThatStandsStillIsLostForAll) {
  Crew crew(4);
  crew.wait_for_beats({0, 1, 2, 3}, 3);
  for (const auto& pulse : crew.pulses) EXPECT_TRUE(pulse->status());
  crew.place.change([&] { crew.place.frozen[2] = true; });
  for (size_t p : {0, 1, 3})
    EXPECT_THAT(crew.ending_of(p), HasSubstr("lost process 2 of 4 (no sign of life for 2 s)"));
  EXPECT_EQ(crew.pulses[0]->status().error().code(), Code::kUnavailable);
  // Once it goes on, it learns that the others gave it up.
  crew.place.change([&] { crew.place.frozen[2] = false; });
  EXPECT_THAT(crew.ending_of(2), HasSubstr("lost process 2 of 4"));
}

// The one after it is watched on, now by the one before.
TEST(Pulse, OneThatLeavesIsNotLost) {
  Crew crew(3);
  crew.wait_for_beats({0, 1, 2}, 3);
  crew.pulses[1].reset();
  crew.wait_for_beats({0, 2}, static_cast<int>(kTimes.patience / kTimes.beat) + 10);
  EXPECT_TRUE(crew.pulses[0]->status());
  EXPECT_TRUE(crew.pulses[2]->status());
  crew.place.change([&] { crew.place.frozen[2] = true; });
  EXPECT_THAT(crew.ending_of(0), HasSubstr("lost process 2 of 3"));
  crew.place.change([&] { crew.place.frozen[2] = false; });
}

TEST(Pulse, WhatAProcessSaysThatFailsReachesAll) {
  Crew crew(3);
  const std::string reason = failed_text(1, "the disk is full");
  (void)crew.place.board_of(1).put_first(Pulse::kEnded, reason);
  for (size_t p : {0, 1, 2}) EXPECT_EQ(crew.ending_of(p), reason);
  EXPECT_EQ(crew.pulses[0]->status().error().code(), Code::kAborted);
}

TEST(Pulse, APlaceThatIsGoneEndsTheRun) {
  Crew crew(2);
  crew.place.change([&] { crew.place.gone = true; });
  for (size_t p : {0, 1}) EXPECT_EQ(crew.ending_of(p), "lost process 0");
}

TEST(Pulse, OneAloneHasNobodyToLose) {
  Crew crew(1);
  crew.wait_for_beats({0}, 10);
  EXPECT_TRUE(crew.pulses[0]->status());
}

}  // namespace
}  // namespace sluice::replica
