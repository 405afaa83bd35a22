#include "sluice/replica/slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace sluice::replica {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

base::Result<std::optional<Placement>> place_of(const Variables& variables) {
  return find_placement([&](const char* name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    return at == variables.end() || at->second.empty() ? std::nullopt : std::optional(at->second);
  });
}

Variables with(Variables variables, const Variables& others) {
  for (const auto& [name, value] : others) variables[name] = value;
  return variables;
}

std::string error_of(const Variables& variables) {
  const auto found = place_of(variables);
  return found ? "no error" : found.error().what();
}

// Slice 1 of two, of two hosts each.
const Variables kSecond = {{"MEGASCALE_NUM_SLICES", "2"},
                           {"MEGASCALE_SLICE_ID", "1"},
                           {"MEGASCALE_COORDINATOR_ADDRESS", "10.0.0.1:8080"}};
const Variables kHosts = {{"TPU_WORKER_ID", "1"}, {"TPU_WORKER_HOSTNAMES", "10.0.0.3,10.0.0.4"}};

TEST(Slices, CloudTpusVariablesCountOneSlice) {
  const Placement found = **place_of(with(with(kHosts, kSecond), {{"TPU_ACCELERATOR_TYPE", "v5p-16"}}));
  EXPECT_EQ(found.process_id, 3);
  EXPECT_EQ(found.processes, 4);
  EXPECT_EQ(found.coordinator, "10.0.0.1:8476");
  EXPECT_THAT(found.hosts, ElementsAre("", "", "10.0.0.3", "10.0.0.4"));
  EXPECT_EQ(found.slice.index, 1);
  EXPECT_EQ(found.slice.count, 2);
  EXPECT_EQ(found.slice.coordinator, "10.0.0.1:8080");
  EXPECT_EQ(found.slice.type, "v5p-16");
}

TEST(Slices, OneProcessPerChip) {
  const Placement found = **place_of(with(kSecond, {{"CLOUD_TPU_TASK_ID", "2"},
                                                    {"TPU_PROCESS_ADDRESSES", "b:8476,b:8477,b:8478,b:8479"},
                                                    {"TPU_PROCESS_BOUNDS", "2,2,1"}}));
  EXPECT_EQ(found.process_id, 6);
  EXPECT_EQ(found.processes, 8);
  EXPECT_EQ(found.coordinator, "10.0.0.1:8474");
  EXPECT_EQ(local_index(found, [](const char*) { return std::nullopt; }), 2);
}

// Slices of one host need only these variables.
TEST(Slices, OfOneHost) {
  const Placement found = **place_of(kSecond);
  EXPECT_EQ(found.process_id, 1);
  EXPECT_EQ(found.processes, 2);
  EXPECT_EQ(found.coordinator, "10.0.0.1:8476");
  EXPECT_EQ(found.source, "Cloud TPU");
}

TEST(Slices, OtherLaunchersCountAllProcesses) {
  const Variables run = {
      {"SLUICE_PROCESS_ID", "2"}, {"SLUICE_PROCESS_COUNT", "4"}, {"SLUICE_COORDINATOR_ADDRESS", "a:8476"}};
  const Placement found = **place_of(with(with(run, kHosts), kSecond));
  EXPECT_EQ(found.process_id, 2);
  EXPECT_EQ(found.processes, 4);
  EXPECT_EQ(found.coordinator, "a:8476");
  EXPECT_EQ(found.slice.index, 1);
  EXPECT_THAT(error_of(with(with(run, kSecond), {{"SLUICE_PROCESS_ID", "1"}})),
              AllOf(HasSubstr("MEGASCALE_SLICE_ID is 1, but process 1 of 4 (sluice run) belongs to slice 0"),
                    HasSubstr("slice 0 come first")));
  EXPECT_THAT(error_of(with(with(run, kSecond), {{"SLUICE_PROCESS_COUNT", "3"}})),
              HasSubstr("MEGASCALE_NUM_SLICES is 2, and sluice run started 3 processes"));
}

TEST(Slices, OneIsAsNone) {
  const Placement found =
      **place_of(with(kHosts, {{"MEGASCALE_NUM_SLICES", "1"}, {"MEGASCALE_SLICE_ID", "0"}}));
  EXPECT_EQ(found.process_id, 1);
  EXPECT_EQ(found.processes, 2);
  EXPECT_EQ(found.slice.count, 1);
  EXPECT_FALSE(*place_of({{"MEGASCALE_NUM_SLICES", "1"}, {"MEGASCALE_SLICE_ID", "0"}}));
}

TEST(Slices, IncompleteAndContradictingVariables) {
  for (const auto& [name, value] : kSecond)
    EXPECT_THAT(error_of(with(kSecond, {{name, ""}})),
                HasSubstr(base::str(name, " is not set although other MEGASCALE variables are")));
  for (const char* wrong : {"two", "0", "-1", "4097", "2.0", "99999999999"})
    EXPECT_THAT(error_of(with(kSecond, {{"MEGASCALE_NUM_SLICES", wrong}})),
                HasSubstr(base::str("MEGASCALE_NUM_SLICES is \"", wrong, "\": expected a whole number")));
  EXPECT_THAT(error_of(with(kSecond, {{"MEGASCALE_SLICE_ID", "2"}})),
              HasSubstr("MEGASCALE_SLICE_ID is 2, but MEGASCALE_NUM_SLICES is 2"));
  EXPECT_THAT(error_of(with(kSecond, {{"MEGASCALE_COORDINATOR_ADDRESS", "a:b:c:8080x"}})),
              HasSubstr("MEGASCALE_COORDINATOR_ADDRESS is \"a:b:c:8080x\""));
}

Placement second_of_two() {
  return {3, 4, "a:8476", "a test", {"a", "b", "c", "d"}, {1, 2, "a:8080", "v5p-16"}};
}

TEST(Slices, ProcessesAreNamedBySlice) {
  const Placement own = second_of_two();
  EXPECT_EQ(process_text(own, 2), "2 (slice 1, worker 0, c)");
  EXPECT_EQ(processes_text(own, {1, 2, 3}), "worker 1 of slice 0 (b), all 2 workers of slice 1 (c, d)");
  EXPECT_EQ(processes_text({0, 3, "a:1", "a test"}, {1, 2}), "processes 1, 2");
  const Placement large{0, 16, "a:1", "a test", {}, {0, 2, "a:8080", ""}};
  EXPECT_EQ(processes_text(large, {1, 2, 3, 4, 6, 9}), "workers 1 to 4, 6 of slice 0, worker 1 of slice 1");
}

TEST(Slices, ThoseOfOthersAreCompared) {
  const Placement own = second_of_two();
  const auto error_of_line = [&](const SlicePlace& other) {
    const auto checked = check_line(own, 0, line_of(other));
    return checked ? "" : std::string(checked.error().what());
  };
  EXPECT_EQ(error_of_line({0, 2, "a:8080", "v5p-16"}), "");
  EXPECT_EQ(error_of_line({0, 2, "a:8080", ""}), "");  // not every host knows its type
  EXPECT_THAT(error_of_line({0, 2, "a:8080", "v5p-32"}),
              AllOf(HasSubstr("process 3 (slice 1, worker 1, d) has a slice of type v5p-16"),
                    HasSubstr("process 0 (slice 0, worker 0, a) has v5p-32")));
  EXPECT_THAT(error_of_line({0, 3, "a:8080", "v5p-16"}), HasSubstr("MEGASCALE_NUM_SLICES 2"));
  EXPECT_THAT(error_of_line({}), HasSubstr("MEGASCALE_NUM_SLICES 2"));
  EXPECT_THAT(error_of_line({0, 2, "b:8080", "v5p-16"}),
              AllOf(HasSubstr("MEGASCALE_COORDINATOR_ADDRESS a:8080"), HasSubstr("has b:8080")));
  EXPECT_THAT(error_of_line({1, 2, "a:8080", "v5p-16"}), HasSubstr("MEGASCALE_SLICE_ID 1"));
  // A stranger's line.
  for (const std::string& line :
       {std::string("\x1b[2J"), std::string("\t\t\t\t\t"), std::string(4000, 'x')}) {
    const auto checked = check_line(own, 0, line);
    ASSERT_FALSE(checked);
    EXPECT_EQ(std::string(checked.error().what()).find('\x1b'), std::string::npos);
    EXPECT_LT(std::string(checked.error().what()).size(), 1000u);
  }
  EXPECT_TRUE(check_line({0, 2, "a:1", "a test"}, 1, ""));
  EXPECT_FALSE(check_line({0, 2, "a:1", "a test"}, 1, line_of({1, 2, "a:8080", ""})));
}

}  // namespace
}  // namespace sluice::replica
