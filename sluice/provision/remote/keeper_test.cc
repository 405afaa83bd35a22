#include "sluice/provision/remote/keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <deque>
#include <vector>

#include "sluice/base/text/join.h"

namespace sluice::provision {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SliceViews, OfEveryStateOfANode) {
  const auto kind = [](const std::string& node, const std::string& health = "HEALTHY",
                       const std::string& queued = "") {
    SliceStates states;
    states.node = node;
    states.health = health;
    states.queued = queued;
    return view_slice(states, 0, 0).kind;
  };
  EXPECT_EQ(kind("READY"), SliceView::kUp);
  EXPECT_EQ(kind("READY", "HEALTHY", "ACTIVE"), SliceView::kUp);
  EXPECT_EQ(kind("READY", "HEALTHY", "SUSPENDING"), SliceView::kDown);
  EXPECT_EQ(kind("READY", "UNHEALTHY_MAINTENANCE"), SliceView::kDown);
  EXPECT_EQ(kind("READY", "TIMEOUT"), SliceView::kUnsteady);
  for (const char* state : {"PREEMPTED", "TERMINATED", "STOPPED", "STOPPING", "DELETING", "HIDING", "HIDDEN"})
    EXPECT_EQ(kind(state), SliceView::kDown) << state;
  for (const char* state : {"REPAIRING", "RESTARTING", "REIMAGING", "UNKNOWN"})
    EXPECT_EQ(kind(state), SliceView::kUnsteady) << state;
  for (const char* state : {"CREATING", "STARTING", "UNHIDING"})
    EXPECT_EQ(kind(state), SliceView::kComing) << state;
  for (const char* state : {"ACCEPTED", "PROVISIONING", "WAITING_FOR_RESOURCES", "CREATING"})
    EXPECT_EQ(kind("", "", state), SliceView::kComing) << state;
  for (const char* state : {"SUSPENDED", "SUSPENDING", "FAILED", "ACTIVE"})
    EXPECT_EQ(kind("", "", state), SliceView::kDown) << state;
  EXPECT_EQ(kind(""), SliceView::kGone);
}

TEST(SliceViews, OfSeveralTheLostOneIsNamed) {
  SliceStates states{"PREEMPTED", "", "ACTIVE", 0, true, "slice 1 of 2, train-1"};
  EXPECT_EQ(view_slice(states, 0, 0).state, "PREEMPTED (slice 1 of 2, train-1)");
  states.node = "READY";
  states.health = "HEALTHY";
  EXPECT_EQ(view_slice(states, 0, 0).state, "READY");
}

TEST(SliceViews, MaintenanceIsNoticedInTime) {
  SliceStates states{"READY", "HEALTHY", "", 1000, false};
  EXPECT_EQ(view_slice(states, 600, 300).notice, "");
  EXPECT_EQ(view_slice(states, 700, 300).notice, "maintenance begins in 300 s");
  EXPECT_EQ(view_slice(states, 2000, 300).notice, "maintenance begins in 0 s");
  states.maintenance_waits = true;
  EXPECT_EQ(view_slice(states, 700, 300).notice, "");
}

// A run that needs `work` seconds, and a slice to which things happen at given times.
class Scene : public KeptRun {
 public:
  struct Event {
    double time;
    SliceView view;
  };
  std::deque<Event> events;  // what the slice becomes, and when
  std::deque<int> statuses;  // of runs that end by themselves after `run_seconds`; then 0 after `work`
  double work = 1000, run_seconds = 5;  // seconds
  std::deque<Error*> create_errors;
  std::vector<std::string> log;
  double done = 0;   // work whose result is saved
  double price = 1;  // $ a second
  int signal_at_restart = -1;
  bool stubborn = false;  // does not end at SIGTERM
  std::vector<int> used;  // the slices of the next run

  base::Result<SliceView> look() override {
    while (!events.empty() && events.front().time <= time_) {
      view_ = events.front().view;
      events.pop_front();
    }
    return view_;
  }
  base::Status remove_slice() override {
    log.push_back("remove");
    view_ = {};
    return {};
  }
  base::Status create_slice() override {
    if (!create_errors.empty()) {
      const Error error = *create_errors.front();
      create_errors.pop_front();
      log.push_back("no capacity");
      return tl::unexpected<Error>(error);
    }
    log.push_back("create");
    time_ += 100;
    view_ = {SliceView::kUp, "READY", ""};
    return {};
  }
  void use_slices(const std::vector<int>& numbers) override { used = numbers; }
  base::Status start_run(int restart) override {
    log.push_back(base::str("run ", restart, used.empty() ? "" : " on ", base::join(used, ",")));
    started_ = time_;
    ended_.reset();
    if (restart == signal_at_restart) signal_ = SIGINT;
    return {};
  }
  std::optional<int> run_status() override {
    if (ended_) return ended_;
    const bool has_rest = !used.empty() && view_.usable == used;
    if (!has_rest && (view_.kind == SliceView::kDown || view_.kind == SliceView::kGone)) return std::nullopt;
    if (!statuses.empty()) {
      if (time_ - started_ < run_seconds) return std::nullopt;
      ended_ = statuses.front();
      statuses.pop_front();
    } else if (done + time_ - started_ >= work) {
      ended_ = 0;
    }
    return ended_;
  }
  void stop_run() override {
    log.push_back("stop");
    if (stubborn) return;
    if (view_.kind == SliceView::kUp) done += time_ - started_;
    ended_ = 143;
  }
  void kill_run() override { log.push_back("kill"); }
  std::string delete_command() override { return "sluice tpu delete x"; }
  double dollars() override { return price * time_; }
  int signal() override { return signal_; }
  double now() override { return time_; }
  void sleep(double seconds) override {
    time_ += seconds;
    if (time_ > 1e6) throw std::runtime_error("it does not end");
  }
  void say(const std::string& text) override { said += text + "\n"; }

  std::string said;
  double time_ = 0;
  int signal_ = 0;

 private:
  SliceView view_{SliceView::kUp, "READY", ""};
  double started_ = 0;
  std::optional<int> ended_;
};

const SliceView kPreempted{SliceView::kDown, "PREEMPTED", ""};

TEST(Keeper, AnUndisturbedRun) {
  Scene scene;
  EXPECT_EQ(Keeper(scene, {}).to_end(), 0);
  EXPECT_THAT(scene.log, ElementsAre("run 0"));
  EXPECT_THAT(scene.said,
              HasSubstr("the slice stays, and costs money until it is deleted: sluice tpu delete x"));
}

// Two of three slices are left, then one, which is too few.
TEST(Keeper, GoesOnWithTheSlicesThatAreLeft) {
  Scene scene;
  scene.events = {{100, {SliceView::kDown, "PREEMPTED (slice 1 of 3, x-1)", "", 3, {0, 2}}},
                  {300, {SliceView::kDown, "PREEMPTED (slice 1 of 3, x-1)", "", 3, {2}}}};
  KeepLimits limits;
  limits.min_slices = 2;
  EXPECT_EQ(Keeper(scene, limits).to_end(), 0);
  EXPECT_THAT(scene.log, ElementsAre("run 0", "stop", "run 1 on 0,2", "stop", "remove", "create", "run 2"));
  EXPECT_THAT(scene.said,
              HasSubstr("the slice is PREEMPTED (slice 1 of 3, x-1): going on with 2 of 3 slices (0, "
                        "2), as --min-slices 2 allows"));
  EXPECT_THAT(scene.said,
              HasSubstr("deleting and re-creating it and the others of its 3 slices, which are made "
                        "together"));
}

// A run that fails on them starts again on them; they are replaced when it always fails.
TEST(Keeper, FailuresOnTheSlicesThatAreLeft) {
  Scene scene;
  scene.events = {{100, {SliceView::kDown, "PREEMPTED (slice 1 of 2, x-1)", "", 2, {0}}}};
  KeepLimits limits;
  limits.min_slices = 1;
  scene.work = 150;
  scene.run_seconds = 200;
  scene.statuses = {1};
  scene.run_seconds = 105;
  EXPECT_EQ(Keeper(scene, limits).to_end(), 0);
  EXPECT_THAT(scene.log, ElementsAre("run 0", "stop", "run 1 on 0", "run 2 on 0"));
}

TEST(Keeper, WithoutAMinimumALostSliceIsMadeAgain) {
  Scene scene;
  scene.events = {{100, {SliceView::kDown, "PREEMPTED (slice 1 of 2, x-1)", "", 2, {0}}}};
  EXPECT_EQ(Keeper(scene, {}).to_end(), 0);
  EXPECT_THAT(scene.log, ElementsAre("run 0", "stop", "remove", "create", "run 1"));
  EXPECT_THAT(scene.said, HasSubstr("the slice is PREEMPTED (slice 1 of 2, x-1): ending the run"));
}

TEST(Keeper, RestartsAfterQuickFailuresWait) {
  Scene scene;
  scene.statuses = {7, 7, 7, 7};
  EXPECT_EQ(Keeper(scene, {}).to_end(), 7);
  EXPECT_GE(scene.now(), 4 * 5 + 2 + 4 + 8);
  EXPECT_THAT(scene.said, HasSubstr("waiting 8 s before the restart"));
}

TEST(Keeper, MakesTheSliceThatIsNotThere) {
  Scene scene;
  scene.events = {{0, {SliceView::kGone, "gone", ""}}};
  EXPECT_EQ(Keeper(scene, {}).to_end(), 0);
  EXPECT_THAT(scene.log, ElementsAre("create", "run 0"));
}

TEST(Keeper, ALossIsFollowedByAnotherSlice) {
  for (const SliceView& loss : {kPreempted, SliceView{SliceView::kDown, "SUSPENDED (queued resource)", ""},
                                SliceView{SliceView::kUnsteady, "REPAIRING", ""}}) {
    Scene scene;
    scene.events = {{300, loss}};
    EXPECT_EQ(Keeper(scene, {}).to_end(), 0) << loss.state;
    EXPECT_THAT(scene.log, ElementsAre("run 0", "stop", "remove", "create", "run 1")) << loss.state;
    EXPECT_THAT(scene.said, HasSubstr("the slice is " + loss.state + ": ending the run"));
  }
  Scene vanished;
  vanished.events = {{300, {SliceView::kGone, "gone", ""}}};
  EXPECT_EQ(Keeper(vanished, {}).to_end(), 0);
  EXPECT_THAT(vanished.log, ElementsAre("run 0", "stop", "create", "run 1"));
}

TEST(Keeper, AnUnsteadyMomentIsWaitedOut) {
  Scene scene;
  scene.events = {{300, {SliceView::kUnsteady, "UNKNOWN", ""}},
                  {500, {SliceView::kUp, "READY", ""}},
                  {600, {SliceView::kUnsteady, "UNKNOWN", ""}},
                  {800, {SliceView::kUp, "READY", ""}}};
  EXPECT_EQ(Keeper(scene, {}).to_end(), 0);
  EXPECT_THAT(scene.log, ElementsAre("run 0"));
}

TEST(Keeper, MaintenanceSavesFirst) {
  Scene scene;
  scene.events = {{400, {SliceView::kUp, "READY", "maintenance begins in 300 s"}}};
  EXPECT_EQ(Keeper(scene, {}).to_end(), 0);
  EXPECT_THAT(scene.log, ElementsAre("run 0", "stop", "remove", "create", "run 1"));
  EXPECT_GE(scene.done, 399);
}

TEST(Keeper, ARunThatDoesNotEndIsKilled) {
  Scene scene;
  scene.stubborn = true;
  scene.events = {{300, kPreempted}};
  EXPECT_EQ(Keeper(scene, {}).to_end(), 0);
  EXPECT_THAT(scene.log, ElementsAre("run 0", "stop", "kill", "remove", "create", "run 1"));
}

TEST(Keeper, NoCapacityIsWaitedFor) {
  Scene scene;
  Error none(Code::kResourceExhausted, "no more capacity"), quota(Code::kPermissionDenied, "no right");
  scene.events = {{0, {SliceView::kGone, "gone", ""}}};
  scene.create_errors = {&none, &none};
  EXPECT_EQ(Keeper(scene, {}).to_end(), 0);
  EXPECT_THAT(scene.log, ElementsAre("no capacity", "no capacity", "create", "run 0"));
  Scene refused;
  refused.events = {{0, {SliceView::kGone, "gone", ""}}};
  refused.create_errors = {&quota};
  EXPECT_EQ(Keeper(refused, {}).to_end(), 1);
  EXPECT_THAT(refused.said, HasSubstr("no right"));
}

TEST(Keeper, LimitsHold) {
  Scene often;
  often.run_seconds = 100;
  often.statuses = {3, 3, 3, 3};
  KeepLimits limits;
  limits.max_restarts = 2;
  EXPECT_EQ(Keeper(often, limits).to_end(), 3);
  EXPECT_THAT(often.log, ElementsAre("run 0", "run 1", "run 2"));
  EXPECT_THAT(often.said, HasSubstr("as often as --max-restarts allows"));
  Scene dear;
  limits.max_cost = 500;
  EXPECT_EQ(Keeper(dear, limits).to_end(), 1);
  EXPECT_THAT(dear.log, ElementsAre("run 0", "stop", "remove"));
  EXPECT_THAT(dear.said, Not(HasSubstr("the slice stays")));
  EXPECT_GE(dear.done, 499);
}

TEST(Keeper, WhatCannotGetBetterIsNotTriedAgain) {
  for (const int status : {2, 21, 126, 127}) {
    Scene scene;
    scene.statuses = {status};
    EXPECT_EQ(Keeper(scene, {}).to_end(), status);
    EXPECT_THAT(scene.log, ElementsAre("run 0"));
  }
}

TEST(Keeper, ASliceOnWhichNothingGetsGoingIsReplacedOnce) {
  Scene better;
  better.statuses = {1, 1};
  EXPECT_EQ(Keeper(better, {}).to_end(), 0);
  EXPECT_THAT(better.log, ElementsAre("run 0", "run 1", "remove", "create", "run 2"));
  Scene broken;
  broken.statuses = {7, 7, 7, 7, 7, 7};
  EXPECT_EQ(Keeper(broken, {}).to_end(), 7);
  EXPECT_THAT(broken.log, ElementsAre("run 0", "run 1", "remove", "create", "run 2", "run 3"));
  EXPECT_THAT(broken.said, HasSubstr("on two slices"));
}

TEST(Keeper, ASignalEndsTheRunAndLeavesTheSlice) {
  Scene scene;
  scene.signal_at_restart = 0;
  EXPECT_EQ(Keeper(scene, {}).to_end(), 130);
  EXPECT_THAT(scene.log, ElementsAre("run 0", "stop"));
  EXPECT_THAT(scene.said, HasSubstr("the slice stays"));
  Scene waiting;
  waiting.events = {{0, {SliceView::kComing, "WAITING_FOR_RESOURCES (queued resource)", ""}}};
  waiting.signal_ = SIGTERM;
  EXPECT_EQ(Keeper(waiting, {}).to_end(), 143);
  EXPECT_TRUE(waiting.log.empty());
}

}  // namespace
}  // namespace sluice::provision
