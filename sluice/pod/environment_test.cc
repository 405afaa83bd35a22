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
  const auto variables = as_map(worker_environment(job, 1, 2, 8476));
  const std::map<std::string, std::string> expected = {
      {"SLUICE_RUN_ID", "run-1"},
      {"SLUICE_PROCESS_ID", "1"},
      {"SLUICE_PROCESS_COUNT", "3"},
      {"SLUICE_COORDINATOR_ADDRESS", "10.0.0.1:8476"},
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
      {"TPU_WORKER_ID", "1"},
      {"TPU_WORKER_HOSTNAMES", "10.0.0.1,10.0.0.2,10.0.0.2"}};
  EXPECT_EQ(variables, expected);
}

TEST(Environment, OnOneMachine) {
  const auto variables = as_map(worker_environment(job_on(local_workers(4)), 3, 0, 40000));
  EXPECT_EQ(variables.at("LOCAL_RANK"), "3");
  EXPECT_EQ(variables.at("LOCAL_WORLD_SIZE"), "4");
  EXPECT_EQ(variables.at("GROUP_RANK"), "0");
  EXPECT_EQ(variables.at("SLUICE_COORDINATOR_ADDRESS"), "127.0.0.1:40000");
  EXPECT_EQ(variables.count("TPU_WORKER_ID"), 0u);
  EXPECT_EQ(variables.count("TPU_WORKER_HOSTNAMES"), 0u);
}

TEST(Environment, TheUsersComeLast) {
  Job job = job_on(local_workers(1));
  job.environment = {{"MASTER_PORT", "1"}, {"A", ""}};
  const auto variables = as_map(worker_environment(job, 0, 0, 2));
  EXPECT_EQ(variables.at("MASTER_PORT"), "1");
  EXPECT_EQ(variables.at("A"), "");
}

TEST(Environment, AnIpv6Coordinator) {
  const auto variables = as_map(worker_environment(job_on(*remote_workers("fd00::1,fd00::2")), 0, 0, 8476));
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
