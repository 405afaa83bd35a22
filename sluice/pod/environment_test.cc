#include "sluice/pod/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

namespace sluice::pod {
namespace {

using ::testing::HasSubstr;

std::map<std::string, std::string> as_map(const Variables& variables) {
  std::map<std::string, std::string> map;
  for (const auto& [name, value] : variables) map[name] = value;
  return map;
}

Job job_on(std::vector<Worker> workers) {
  Job job;
  job.id = "run-1";
  job.workers = std::move(workers);
  job.coordinator = job.workers.front().address;
  return job;
}

TEST(Environment, OnHosts) {
  const Job job = job_on(*remote_workers("10.0.0.1,user@10.0.0.2,10.0.0.2"));
  const auto variables = as_map(worker_environment(job, 1, 2, 8476, "a key"));
  const std::map<std::string, std::string> expected = {
      {"SLUICE_RUN_ID", "run-1"},
      {"SLUICE_PROCESS_ID", "1"},
      {"SLUICE_PROCESS_COUNT", "3"},
      {"SLUICE_COORDINATOR_ADDRESS", "10.0.0.1:8476"},
      {"SLUICE_RUN_KEY", "a key"},
      {"SLUICE_RESTART", "2"},
      {"JAX_COORDINATOR_ADDRESS", "10.0.0.1:8476"},
      {"JAX_NUM_PROCESSES", "3"},
      {"JAX_PROCESS_ID", "1"},
      {"MASTER_ADDR", "10.0.0.1"},
      {"MASTER_PORT", "8476"},
      {"RANK", "1"},
      {"WORLD_SIZE", "3"},
      {"LOCAL_RANK", "0"},
      {"LOCAL_WORLD_SIZE", "1"},
      {"GROUP_RANK", "1"},
      {"SLUICE_PROCESS_HOSTS", "10.0.0.1,10.0.0.2,10.0.0.2"},
      {"TPU_WORKER_ID", "1"},
      {"TPU_WORKER_HOSTNAMES", "10.0.0.1,10.0.0.2,10.0.0.2"}};
  EXPECT_EQ(variables, expected);
}

TEST(Environment, OnOneMachine) {
  const auto variables = as_map(worker_environment(job_on(local_workers(4)), 3, 0, 40000, ""));
  EXPECT_EQ(variables.at("LOCAL_RANK"), "3");
  EXPECT_EQ(variables.at("LOCAL_WORLD_SIZE"), "4");
  EXPECT_EQ(variables.at("GROUP_RANK"), "0");
  EXPECT_EQ(variables.at("SLUICE_COORDINATOR_ADDRESS"), "127.0.0.1:40000");
  EXPECT_EQ(variables.count("TPU_WORKER_ID"), 0u);
  EXPECT_EQ(variables.count("TPU_WORKER_HOSTNAMES"), 0u);
}

// Two slices of two hosts: TPU_* describe the worker's slice.
TEST(Environment, SeveralSlices) {
  Job job = job_on(*remote_workers("a[0-1],b[0-1]"));
  ASSERT_TRUE(divide_into_slices(job, 2));
  job.slice_type = "v5p-16";
  job.environment = {{"WHERE", "{slice}:{worker}"}};
  const auto variables = as_map(worker_environment(job, 3, 0, 8476, ""));
  const std::map<std::string, std::string> expected = {{"SLUICE_PROCESS_ID", "3"},
                                                       {"SLUICE_PROCESS_COUNT", "4"},
                                                       {"SLUICE_COORDINATOR_ADDRESS", "a0:8476"},
                                                       {"SLUICE_PROCESS_HOSTS", "a0,a1,b0,b1"},
                                                       {"TPU_WORKER_ID", "1"},
                                                       {"TPU_WORKER_HOSTNAMES", "b0,b1"},
                                                       {"TPU_ACCELERATOR_TYPE", "v5p-16"},
                                                       {"MEGASCALE_COORDINATOR_ADDRESS", "a0:8080"},
                                                       {"MEGASCALE_NUM_SLICES", "2"},
                                                       {"MEGASCALE_SLICE_ID", "1"},
                                                       {"MEGASCALE_PORT", "8080"},
                                                       {"WHERE", "1:3"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(variables.at(name), value) << name;
  const auto first = as_map(worker_environment(job, 0, 0, 8476, ""));
  EXPECT_EQ(first.at("TPU_WORKER_HOSTNAMES"), "a0,a1");
  EXPECT_EQ(first.at("MEGASCALE_SLICE_ID"), "0");
}

// Two slices of two hosts of 4 chips, with one process per chip.
TEST(Environment, SeveralSlicesWithOneProcessPerChip) {
  Job job = job_on(*remote_workers("a[0-1],b[0-1]", 4));
  ASSERT_TRUE(divide_into_slices(job, 2));
  job.tpu_chips = "2,4,1";
  const auto variables = as_map(worker_environment(job, 13, 0, 8474, ""));
  const std::map<std::string, std::string> expected = {
      {"SLUICE_PROCESS_ID", "13"},
      {"TPU_WORKER_ID", "1"},  // of the host in its slice
      {"TPU_WORKER_HOSTNAMES", "b0,b1"},
      {"TPU_PROCESS_BOUNDS", "2,4,1"},
      {"TPU_PROCESS_ADDRESSES", "b0:8476,b0:8477,b0:8478,b0:8479,b1:8476,b1:8477,b1:8478,b1:8479"},
      {"TPU_PROCESS_PORT", "8477"},
      {"CLOUD_TPU_TASK_ID", "5"},
      {"MEGASCALE_COORDINATOR_ADDRESS", "a0:8080"},
      {"MEGASCALE_SLICE_ID", "1"},
      {"MEGASCALE_PORT", "8081"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(variables.at(name), value) << name;
}

TEST(Environment, HostsThatSlicesCannotShare) {
  Job job = job_on(*remote_workers("a,b,c"));
  EXPECT_THAT(divide_into_slices(job, 2).error().what(),
              HasSubstr("3 hosts cannot be divided among 2 slices"));
  job = job_on(*remote_workers("a,b,a,b"));
  EXPECT_THAT(divide_into_slices(job, 2).error().what(), HasSubstr("host a comes again after others"));
}

// A v3-32 with one process per chip: 4 hosts of 4 chips.
TEST(Environment, OneProcessPerChip) {
  Job job = job_on(*remote_workers("h[0-3]", 4));
  job.tpu_chips = "4,4,1";
  const auto variables = as_map(worker_environment(job, 6, 0, 8474, ""));
  const auto expect = [&](const char* name, const std::string& value) {
    EXPECT_EQ(variables.at(name), value) << name;
  };
  expect("SLUICE_PROCESS_ID", "6");
  expect("SLUICE_PROCESS_COUNT", "16");
  expect("SLUICE_COORDINATOR_ADDRESS", "h0:8474");
  expect("LOCAL_RANK", "2");
  expect("LOCAL_WORLD_SIZE", "4");
  expect("GROUP_RANK", "1");
  expect("TPU_WORKER_ID", "1");  // of the host
  expect("TPU_WORKER_HOSTNAMES", "h0,h1,h2,h3");
  expect("TPU_CHIPS_PER_PROCESS_BOUNDS", "1,1,1");
  expect("TPU_PROCESS_BOUNDS", "4,4,1");
  expect("TPU_PROCESS_ADDRESSES",
         "h0:8476,h0:8477,h0:8478,h0:8479,h1:8476,h1:8477,h1:8478,h1:8479,"
         "h2:8476,h2:8477,h2:8478,h2:8479,h3:8476,h3:8477,h3:8478,h3:8479");
  expect("TPU_PROCESS_PORT", "8478");
  expect("CLOUD_TPU_TASK_ID", "6");
  expect("TPU_VISIBLE_CHIPS", "2");
  expect("TPU_VISIBLE_DEVICES", "2");
  expect("SLUICE_PROCESS_HOSTS", "h0,h0,h0,h0,h1,h1,h1,h1,h2,h2,h2,h2,h3,h3,h3,h3");
}

TEST(Environment, OneProcessPerChipOfOneMachine) {
  Job job = job_on(local_workers(4));
  job.tpu_chips = "2,2,1";
  const auto variables = as_map(worker_environment(job, 3, 0, 40000, ""));
  EXPECT_EQ(variables.at("TPU_PROCESS_ADDRESSES"),
            "127.0.0.1:8476,127.0.0.1:8477,127.0.0.1:8478,127.0.0.1:8479");
  EXPECT_EQ(variables.at("TPU_VISIBLE_CHIPS"), "3");
  EXPECT_EQ(variables.at("CLOUD_TPU_TASK_ID"), "3");
  EXPECT_EQ(variables.count("TPU_WORKER_ID"), 0u);
}

TEST(Environment, ValuesThatDifferByWorker) {
  Job job = job_on(*remote_workers("a,user@b", 2));
  job.environment = {{"A", "{worker} {host}/{local}"}, {"B", "{\"worker\": {worker}}"}, {"C", "{}{host"}};
  const auto variables = as_map(worker_environment(job, 3, 0, 8476, ""));
  EXPECT_EQ(variables.at("A"), "3 b/1");
  EXPECT_EQ(variables.at("B"), "{\"worker\": 3}");
  EXPECT_EQ(variables.at("C"), "{}{host");
}

TEST(Environment, TheTimeToMeet) {
  Job job = job_on(local_workers(1));
  EXPECT_EQ(as_map(worker_environment(job, 0, 0, 2, "")).count("SLUICE_JOIN_TIMEOUT"), 0u);
  job.join_timeout = 20;
  EXPECT_EQ(as_map(worker_environment(job, 0, 0, 2, "")).at("SLUICE_JOIN_TIMEOUT"), "20");
}

TEST(Environment, TheUsersComeLast) {
  Job job = job_on(local_workers(1));
  job.environment = {{"MASTER_PORT", "1"}, {"A", ""}};
  const auto variables = as_map(worker_environment(job, 0, 0, 2, ""));
  EXPECT_EQ(variables.at("MASTER_PORT"), "1");
  EXPECT_EQ(variables.at("A"), "");
}

TEST(Environment, AnIpv6Coordinator) {
  const auto variables =
      as_map(worker_environment(job_on(*remote_workers("fd00::1,fd00::2")), 0, 0, 8476, ""));
  EXPECT_EQ(variables.at("SLUICE_COORDINATOR_ADDRESS"), "[fd00::1]:8476");
  EXPECT_EQ(variables.at("MASTER_ADDR"), "fd00::1");
}

TEST(Environment, ParsesVariables) {
  EXPECT_EQ(*parse_variable("A=b=c d"), std::pair(std::string("A"), std::string("b=c d")));
  EXPECT_EQ(parse_variable("_a9=")->second, "");
  ::setenv("SLUICE_TEST_HERE", "x y", 1);
  EXPECT_EQ(parse_variable("SLUICE_TEST_HERE")->second, "x y");
  ::unsetenv("SLUICE_TEST_HERE");
  EXPECT_THAT(parse_variable("SLUICE_TEST_HERE").error().what(), HasSubstr("not set here"));
  for (const char* text : {"", "=x", "1A=x", "A-B=x", "A B=x", "A;rm=x"})
    EXPECT_FALSE(parse_variable(text)) << text;
}

}  // namespace
}  // namespace sluice::pod
