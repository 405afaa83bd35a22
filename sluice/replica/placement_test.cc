#include "sluice/replica/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace sluice::replica {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

base::Result<std::optional<Placement>> find(const Variables& variables) {
  return find_placement([&](const char* name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    return at == variables.end() || at->second.empty() ? std::nullopt : std::optional(at->second);
  });
}

void expect(const Variables& variables, int id, int processes, const std::string& coordinator,
            const std::string& source) {
  const auto found = find(variables);
  ASSERT_TRUE(found) << found.error().what();
  ASSERT_TRUE(*found);
  EXPECT_EQ((*found)->process_id, id);
  EXPECT_EQ((*found)->processes, processes);
  EXPECT_EQ((*found)->coordinator, coordinator);
  EXPECT_EQ((*found)->source, source);
}

// `variables` without `missing` is an error that names it.
void expect_missing(Variables variables, const std::string& missing) {
  variables.erase(missing);
  const auto found = find(variables);
  ASSERT_FALSE(found) << missing;
  EXPECT_EQ(found.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(found.error().what(), AllOf(HasSubstr(missing), HasSubstr("is not set"))) << missing;
}

void expect_wrong(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  const auto found = find(variables);
  ASSERT_FALSE(found) << name << "=" << value;
  EXPECT_THAT(found.error().what(), HasSubstr(value));
}

const Variables kSluice = {{"SLUICE_PROCESS_ID", "2"},
                           {"SLUICE_PROCESS_COUNT", "4"},
                           {"SLUICE_COORDINATOR_ADDRESS", "10.0.0.1:8476"}};
const Variables kSlurm = {{"SLURM_JOB_ID", "4099"},
                          {"SLURM_PROCID", "3"},
                          {"SLURM_NTASKS", "8"},
                          {"SLURM_STEP_NUM_TASKS", "4"},
                          {"SLURM_STEP_ID", "0"},
                          {"SLURM_STEP_NODELIST", "node[03-04],node9"},
                          {"SLURM_JOB_NODELIST", "node[01-09]"}};
const Variables kTpu = {{"TPU_WORKER_ID", "1"}, {"TPU_WORKER_HOSTNAMES", "10.0.0.5,10.0.0.6"}};
const Variables kTorchrun = {
    {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "head"}, {"MASTER_PORT", "29500"}};

TEST(Placement, ASingleProcess) {
  EXPECT_FALSE(find({})->has_value());
  EXPECT_FALSE(find({{"RANK", ""}, {"SLUICE_PROCESS_ID", ""}})->has_value());
  EXPECT_FALSE(find({{"MASTER_ADDR", "head"}})->has_value());
}

TEST(Placement, SluiceRun) {
  expect(kSluice, 2, 4, "10.0.0.1:8476", "sluice run");
  for (const auto& [name, value] : kSluice) expect_missing(kSluice, name);
  expect_wrong(kSluice, "SLUICE_PROCESS_ID", "4");
  expect_wrong(kSluice, "SLUICE_PROCESS_ID", "-1");
  expect_wrong(kSluice, "SLUICE_PROCESS_ID", "two");
  expect_wrong(kSluice, "SLUICE_PROCESS_COUNT", "0");
  for (const char* address : {"10.0.0.1", ":8476", "host:", "host:0", "host:65536", "host:84x"})
    expect_wrong(kSluice, "SLUICE_COORDINATOR_ADDRESS", address);
}

TEST(Placement, Slurm) {
  expect(kSlurm, 3, 4, "node03:" + std::to_string(61000 + (4099 * 16) % 4096), "Slurm");
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_STEP_NUM_TASKS"}) {
    Variables job = kSlurm;
    job.erase(name);
    const auto found = find(job);
    ASSERT_TRUE(found && *found);
    if (std::string(name) == "SLURM_STEP_NODELIST") {
      EXPECT_THAT((*found)->coordinator, testing::StartsWith("node01:"));
    } else {
      EXPECT_EQ((*found)->processes, 8);
    }
  }
  Variables other_step = kSlurm;
  other_step["SLURM_STEP_ID"] = "1";
  EXPECT_NE((*find(other_step))->coordinator, (*find(kSlurm))->coordinator);
  expect_wrong(kSlurm, "SLURM_STEP_NODELIST", "node[03");
  expect_wrong(kSlurm, "SLURM_PROCID", "4");
  Variables none = kSlurm;
  none.erase("SLURM_STEP_NODELIST");
  expect_missing(none, "SLURM_JOB_NODELIST");
}

TEST(Placement, SlurmWithoutSrun) {
  Variables script = kSlurm;
  for (const char* name : {"SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST"})
    script.erase(name);
  script["SLURM_PROCID"] = "0";
  const auto found = find(script);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().what(), AllOf(HasSubstr("8 tasks"), HasSubstr("srun PROGRAM")));
  script["SLURM_NTASKS"] = "1";
  EXPECT_FALSE(find(script)->has_value());
  // A shell inside salloc.
  script["SLURM_NTASKS"] = "8";
  script.erase("SLURM_PROCID");
  EXPECT_FALSE(find(script)->has_value());
}

TEST(Placement, CloudTpu) {
  expect(kTpu, 1, 2, "10.0.0.5:8476", "Cloud TPU");
  for (const auto& [name, value] : kTpu) expect_missing(kTpu, name);
  expect_wrong(kTpu, "TPU_WORKER_ID", "2");
  expect_wrong(kTpu, "TPU_WORKER_HOSTNAMES", "a,,b");
  expect({{"TPU_WORKER_ID", "0"}, {"TPU_WORKER_HOSTNAMES", "a:8470,b:8470"}}, 0, 2, "a:8476", "Cloud TPU");
  expect({{"TPU_WORKER_ID", "0"}, {"TPU_WORKER_HOSTNAMES", "localhost"}}, 0, 1, "localhost:8476",
         "Cloud TPU");
}

// What notebooks find, with the values of the services.
TEST(Placement, CloudTpuOfKaggleAndColab) {
  const std::string names =
      "WARNING: could not determine TPU worker hostnames, please set env var `TPU_WORKER_HOSTNAMES` "
      "manually, otherwise libtpu.so will not properly initialize.";
  const std::string number =
      "WARNING: could not determine TPU worker number, please set env var `TPU_WORKER_ID` manually, "
      "otherwise libtpu.so will not properly initialize.";
  for (const Variables& variables : std::vector<Variables>{
           {{"TPU_WORKER_HOSTNAMES", names}},
           {{"TPU_WORKER_HOSTNAMES", names}, {"TPU_WORKER_ID", "0"}},
           {{"TPU_WORKER_HOSTNAMES", names}, {"TPU_WORKER_ID", number}},
           {{"TPU_WORKER_HOSTNAMES", "localhost"}, {"TPU_WORKER_ID", number}},
           {{"TPU_WORKER_HOSTNAMES", names}, {"TPU_PROCESS_ADDRESSES", "local"}},
           {{"TPU_WORKER_HOSTNAMES", names}, {"TPU_WORKER_ID", "0"}, {"TPU_PROCESS_ADDRESSES", "local"}},
           {{"TPU_PROCESS_ADDRESSES", "local"}}}) {
    const auto found = find(variables);
    ASSERT_TRUE(found) << found.error().what();
    EXPECT_FALSE(*found);
  }
  const auto alone = find({{"TPU_WORKER_HOSTNAMES", names},
                           {"TPU_WORKER_ID", "0"},
                           {"TPU_PROCESS_ADDRESSES", "local"},
                           {"CLOUD_TPU_TASK_ID", "0"}});
  ASSERT_TRUE(alone && *alone);
  EXPECT_EQ((*alone)->processes, 1);
  expect({{"TPU_WORKER_ID", "0"}, {"TPU_WORKER_HOSTNAMES", "a"}, {"TPU_PROCESS_ADDRESSES", "local"}}, 0, 1,
         "a:8476", "Cloud TPU");
  // One of several is never taken for a single process.
  expect_wrong(kTpu, "TPU_WORKER_HOSTNAMES", "10.0.0.5 10.0.0.6");
  EXPECT_FALSE(find({{"TPU_WORKER_HOSTNAMES", names}, {"TPU_WORKER_ID", "1"}}));
}

const Variables kTpuChips = {{"CLOUD_TPU_TASK_ID", "5"},
                             {"TPU_PROCESS_ADDRESSES",
                              "10.0.0.5:8476,10.0.0.5:8477,10.0.0.5:8478,10.0.0.5:8479,"
                              "10.0.0.6:8476,10.0.0.6:8477,10.0.0.6:8478,10.0.0.6:8479"}};

TEST(Placement, CloudTpuWithOneProcessPerChip) {
  expect(kTpuChips, 5, 8, "10.0.0.5:8474", "Cloud TPU");
  EXPECT_EQ((*find(kTpuChips))->hosts[5], "10.0.0.6");
  for (const auto& [name, value] : kTpuChips) expect_missing(kTpuChips, name);
  // The host's own variables may be there too.
  Variables all = kTpuChips;
  all.insert(kTpu.begin(), kTpu.end());
  all.insert({{"TPU_PROCESS_BOUNDS", "2,4,1"}, {"TPU_PROCESS_PORT", "8477"}});
  expect(all, 5, 8, "10.0.0.5:8474", "Cloud TPU");
  expect_wrong(kTpuChips, "CLOUD_TPU_TASK_ID", "8");
  expect_wrong(kTpuChips, "CLOUD_TPU_TASK_ID", "five");
  for (const char* bounds : {"2,2,1", "2,four,1", "0,8,1", "1000000,1000000,8"})
    expect_wrong(all, "TPU_PROCESS_BOUNDS", bounds);
  expect_wrong(all, "TPU_PROCESS_PORT", "8478");
  for (const char* addresses : {"a:8476,,b:8476", "a:8476,b"})
    expect_wrong({{"CLOUD_TPU_TASK_ID", "0"}}, "TPU_PROCESS_ADDRESSES", addresses);
  const auto twice = find({{"CLOUD_TPU_TASK_ID", "0"}, {"TPU_PROCESS_ADDRESSES", "a:8476,b:8476,a:8476"}});
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().what(), HasSubstr("has a:8476 twice"));
  EXPECT_EQ((*find({{"CLOUD_TPU_TASK_ID", "0"}, {"TPU_PROCESS_ADDRESSES", "local"}}))->processes, 1);
  // The place of the meeting is no process's own, and an IPv6 address keeps its brackets.
  expect({{"CLOUD_TPU_TASK_ID", "0"}, {"TPU_PROCESS_ADDRESSES", "a:8478,a:8477,a:8476,a:8475"}}, 0, 4,
         "a:8474", "Cloud TPU");
  expect({{"CLOUD_TPU_TASK_ID", "1"}, {"TPU_PROCESS_ADDRESSES", "[fd00::1]:8476,[fd00::2]:8476"}}, 1, 2,
         "[fd00::1]:8474", "Cloud TPU");
}

// With and without brackets, as GKE and others write them. What has a port must have them.
TEST(Placement, AddressesOfIpv6) {
  expect({{"SLUICE_PROCESS_ID", "0"},
          {"SLUICE_PROCESS_COUNT", "2"},
          {"SLUICE_COORDINATOR_ADDRESS", "[::1]:8476"}},
         0, 2, "[::1]:8476", "sluice run");
  expect_wrong(kSluice, "SLUICE_COORDINATOR_ADDRESS", "fd00::1:8476");
  expect_wrong(kSluice, "SLUICE_COORDINATOR_ADDRESS", "[fd00::1]");
  for (const char* hosts : {"fd00::1,fd00::2", "[fd00::1],[fd00::2]", "[fd00::1]:8471,[fd00::2]:8471"}) {
    const Variables tpu = {{"TPU_WORKER_ID", "1"}, {"TPU_WORKER_HOSTNAMES", hosts}};
    expect(tpu, 1, 2, "[fd00::1]:8476", "Cloud TPU");
    EXPECT_EQ((*find(tpu))->hosts, (std::vector<std::string>{"fd00::1", "fd00::2"})) << hosts;
  }
  expect_wrong(kTpu, "TPU_WORKER_HOSTNAMES", "10.0.0.5:8471:1");
  for (const char* host : {"fd00::1", "[fd00::1]"}) {
    Variables torchrun = kTorchrun;
    torchrun["MASTER_ADDR"] = host;
    expect(torchrun, 1, 2, "[fd00::1]:29500", "torchrun");
  }
  expect_wrong(kTorchrun, "MASTER_ADDR", "head:29500");
}

// Messages about a process that does not come name its host.
TEST(Placement, HostsOfTheProcesses) {
  using Hosts = std::vector<std::string>;
  Variables run = kSluice;
  EXPECT_EQ((*find(run))->hosts, Hosts());
  run["SLUICE_PROCESS_HOSTS"] = "a,a,b,b";
  EXPECT_EQ((*find(run))->hosts, (Hosts{"a", "a", "b", "b"}));
  run["SLUICE_PROCESS_HOSTS"] = "a,b";  // not of this run
  EXPECT_EQ((*find(run))->hosts, Hosts());
  EXPECT_EQ((*find(kTpu))->hosts, (Hosts{"10.0.0.5", "10.0.0.6"}));
  EXPECT_EQ((*find(kSlurm))->hosts, Hosts());  // four tasks on three nodes
  Variables step = kSlurm;
  step["SLURM_STEP_NUM_TASKS"] = "3", step["SLURM_PROCID"] = "2";
  EXPECT_EQ((*find(step))->hosts, (Hosts{"node03", "node04", "node9"}));
}

TEST(Placement, Torchrun) {
  expect(kTorchrun, 1, 2, "head:29500", "torchrun");
  for (const auto& [name, value] : kTorchrun) expect_missing(kTorchrun, name);
  expect_wrong(kTorchrun, "MASTER_PORT", "65536");
  Variables agent = kTorchrun;
  agent["TORCHELASTIC_USE_AGENT_STORE"] = "True";  // torchrun's agent listens on MASTER_PORT itself
  expect(agent, 1, 2, "head:29501", "torchrun");
}

TEST(Placement, TheNearestLauncherCounts) {
  Variables all = kTorchrun;
  all.insert(kTpu.begin(), kTpu.end());
  EXPECT_EQ((*find(all))->source, "Cloud TPU");
  all.insert(kSlurm.begin(), kSlurm.end());
  EXPECT_EQ((*find(all))->source, "Slurm");
  all.insert(kSluice.begin(), kSluice.end());
  EXPECT_EQ((*find(all))->source, "sluice run");
}

TEST(Placement, TheNumberOnAHost) {
  const auto index = [](int process, const std::vector<std::string>& hosts, const Variables& variables) {
    return local_index({process, 4, "", "", hosts}, [&](const char* name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
  };
  EXPECT_EQ(index(2, {"a", "b", "a", "b"}, {{"LOCAL_RANK", "7"}}), 1);
  EXPECT_EQ(index(1, {"a", "b", "a", "b"}, {}), 0);
  EXPECT_EQ(index(3, {}, {{"LOCAL_RANK", "3"}}), 3);
  EXPECT_EQ(index(3, {}, {{"SLURM_LOCALID", "2"}}), 2);
  EXPECT_EQ(index(3, {}, {{"LOCAL_RANK", "x"}}), 0);
  EXPECT_EQ(index(3, {}, {}), 0);
}

}  // namespace
}  // namespace sluice::replica
