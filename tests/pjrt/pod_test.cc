// The emulated pod in several processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/pjrt/processes.h"

namespace emulated_pod::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void expect_all_well(const std::vector<Outcome>& outcomes) {
  for (size_t p = 0; p < outcomes.size(); ++p)
    EXPECT_EQ(outcomes[p].status, 0) << "process " << p << ": " << outcomes[p].output;
}

// All but one fail with this text.
void expect_failure(const std::vector<Outcome>& outcomes, const std::string& text, size_t except = 99) {
  for (size_t p = 0; p < outcomes.size(); ++p) {
    if (p == except) continue;
    EXPECT_EQ(outcomes[p].status, 1) << "process " << p;
    EXPECT_THAT(outcomes[p].output, HasSubstr(text)) << "process " << p;
  }
}

TEST(Pod, CollectivesOfTwoProcesses) { expect_all_well(run_pod("collectives", 2, 2)); }
TEST(Pod, CollectivesOfFourProcesses) { expect_all_well(run_pod("collectives", 4, 8)); }
TEST(Pod, SubsetsAndOtherOrders) { expect_all_well(run_pod("subsets", 3, 2)); }

TEST(Pod, OneProgramLaidOutOverAllDevices) { expect_all_well(run_pod("partitions", 2, 2)); }

// What each process of several slices is told.
std::map<int, Environment> in_slices(int slices, int processes) {
  const int own = processes / slices;
  std::string hosts = "host0";
  for (int p = 1; p < own; ++p) hosts += ",host" + std::to_string(p);
  std::map<int, Environment> all;
  for (int p = 0; p < processes; ++p)
    all[p] = {{"TPU_WORKER_HOSTNAMES", hosts},
              {"TPU_WORKER_ID", std::to_string(p % own)},
              {"MEGASCALE_NUM_SLICES", std::to_string(slices)},
              {"MEGASCALE_SLICE_ID", std::to_string(p / own)},
              {"MEGASCALE_COORDINATOR_ADDRESS", "host0:8080"}};
  return all;
}

TEST(Pod, SeveralSlices) {
  for (const char* scenario : {"collectives", "subsets", "partitions"})
    expect_all_well(run_pod(scenario, 4, 2, {}, in_slices(2, 4)));
  const auto outcomes = run_pod("join", 4, 2, {}, in_slices(2, 4));
  expect_all_well(outcomes);
  EXPECT_THAT(outcomes[1].output, HasSubstr("process 1: 2 of 8 devices, the first is 2\n"));
  EXPECT_THAT(outcomes[3].output, HasSubstr("process 3: 2 of 8 devices, the first is 100002\n"));
}

TEST(Pod, SlicesThatCannotBe) {
  auto variables = in_slices(2, 2);
  variables[1]["MEGASCALE_SLICE_ID"] = "2";
  const auto outcomes = run_pod("join", 2, 1, {{"EMULATED_POD_TIMEOUT", "5"}}, variables);
  EXPECT_THAT(outcomes[1].output, HasSubstr("MEGASCALE_SLICE_ID below MEGASCALE_NUM_SLICES"));
}

TEST(Pod, LaunchesOnResultsThatAreNotThereYet) {
  const auto outcomes = run_pod("chain", 2, 2);
  expect_all_well(outcomes);
  std::printf("%s", outcomes[0].output.c_str());
}

TEST(Pod, LaunchesOfThirtyTwoReplicas) {
  const auto outcomes = run_pod("chain", 4, 8);
  expect_all_well(outcomes);
  std::printf("%s", outcomes[0].output.c_str());
}

TEST(Pod, ArgumentsAreTakenOver) { expect_all_well(run_pod("donation", 2, 2)); }

TEST(Pod, TheSameFolderTwice) {
  const auto outcomes = run_pod("join", 2, 3);
  expect_all_well(outcomes);
  EXPECT_EQ(outcomes[1].output,
            "process 1: 3 of 6 devices, the first is 3\nprocess 1: 3 of 6 devices, the first is 3\n");
}

TEST(Pod, AnotherProgram) {
  const auto outcomes = run_pod("other-program", 3, 1);
  expect_failure(outcomes, "INTERNAL: the workers launch different programs: worker ");
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.output, HasSubstr("worker 1 launches @evaluate (program "));
    EXPECT_THAT(outcome.output, HasSubstr(" launches @train (program "));
  }
}

TEST(Pod, AProcessThatDies) {
  const auto outcomes = run_pod("die", 3, 1);
  EXPECT_EQ(outcomes[1].status, 9);
  expect_failure(outcomes, "UNAVAILABLE: the launch of @train", 1);
  EXPECT_THAT(outcomes[0].output, HasSubstr("worker 1 has died"));
}

TEST(Pod, TheFirstProcessDies) {
  const auto outcomes = run_pod("first-dies", 3, 1);
  EXPECT_EQ(outcomes[0].status, 9);
  expect_failure(outcomes, "worker 0 is gone, and with it the pod", 0);
}

TEST(Pod, AProcessThatLeaves) {
  const auto outcomes = run_pod("leave", 2, 1);
  EXPECT_EQ(outcomes[1].status, 0) << outcomes[1].output;
  expect_failure(outcomes, "worker 1 has left the pod", 1);
}

TEST(Pod, TheFirstProcessLeavesEarly) { expect_all_well(run_pod("alone", 2, 2)); }

TEST(Pod, TheFirstProcessEndsWithItsClientOpen) {
  // It leaves its threads behind, which is what the thread sanitizer looks for.
  const char* options = std::getenv("TSAN_OPTIONS");
  const std::string tsan = std::string(options == nullptr ? "" : options) + ":report_thread_leaks=0";
  const auto outcomes = run_pod("end-open", 2, 1, {{"TSAN_OPTIONS", tsan}});
  EXPECT_EQ(outcomes[0].status, 0) << outcomes[0].output;
  expect_failure(outcomes, "the launch of @train", 0);
  EXPECT_THAT(outcomes[1].output, HasSubstr("worker 0 has ended"));
}

TEST(Pod, AProcessThatComesLate) {
  expect_all_well(run_pod("late", 2, 1, {{"SLUICE_POD_LATE", "launched"}}));
}

TEST(Pod, AProcessThatComesTooLate) {
  const auto outcomes =
      run_pod("late", 2, 1, {{"SLUICE_POD_LATE", "gave up"}, {"EMULATED_POD_TIMEOUT", "2"}});
  expect_failure(outcomes, "DEADLINE_EXCEEDED: worker 0 launched @mean");
  expect_failure(outcomes, "worker 1 did not within 2 s");
}

TEST(Pod, WhoIsMissingAtTheStart) {
  // Two processes of a pod of three.
  const auto outcomes =
      run_pod("join", 2, 1, {{"EMULATED_POD_TIMEOUT", "1"}, {"TPU_WORKER_HOSTNAMES", "a,b,c"}});
  expect_failure(outcomes, "the pod of 3 workers did not meet within 1 s: worker 2 did not come");
}

TEST(Pod, NobodyIsWorkerZero) {
  const auto outcomes = run_pod("join", 1, 1, {{"EMULATED_POD_TIMEOUT", "1"}},
                                {{0, {{"TPU_WORKER_ID", "1"}, {"TPU_WORKER_HOSTNAMES", "a,b"}}}});
  expect_failure(outcomes, "DEADLINE_EXCEEDED: ");
  expect_failure(outcomes, "worker 1 of 2 waited 1 s for worker 0, which did not come");
}

TEST(Pod, TwoProcessesWithOneIndex) {
  const auto outcomes =
      run_pod("join", 3, 1, {{"EMULATED_POD_TIMEOUT", "2"}}, {{2, {{"TPU_WORKER_ID", "1"}}}});
  EXPECT_THAT(outcomes[1].output + outcomes[2].output,
              AllOf(HasSubstr("worker 1 is there already"), HasSubstr("worker 2 did not come")));
  expect_failure({outcomes[0]}, "worker 2 did not come");
}

TEST(Pod, OneProcessForEachChip) {
  std::map<int, Environment> of_process;
  for (int p = 0; p < 2; ++p) {
    of_process[p] = {{"CLOUD_TPU_TASK_ID", std::to_string(p)},
                     {"TPU_VISIBLE_CHIPS", std::to_string(p)},
                     {"TPU_PROCESS_PORT", std::to_string(8476 + p)}};
  }
  const Environment all = {{"TPU_PROCESS_BOUNDS", "2,1,1"},
                           {"TPU_CHIPS_PER_PROCESS_BOUNDS", "1,1,1"},
                           {"TPU_PROCESS_ADDRESSES", "localhost:8476,localhost:8477"},
                           {"TPU_WORKER_HOSTNAMES", ""},
                           {"TPU_WORKER_ID", ""},
                           {"EMULATED_POD_CORES_PER_CHIP", "2"}};
  const auto outcomes = run_pod("join", 2, 8, all, of_process);
  expect_all_well(outcomes);
  EXPECT_THAT(outcomes[1].output, HasSubstr("process 1: 2 of 4 devices, the first is 2"));
}

TEST(Pod, AnotherNumberOfProcesses) {
  const auto outcomes = run_pod("join", 2, 1, {}, {{1, {{"EMULATED_POD_PROCESSES", "4"}}}});
  expect_failure(outcomes, "a process came as worker 1 of 4, while worker 0 expects 2 workers");
}

}  // namespace
}  // namespace emulated_pod::testing
