// The text of every case against the file of its name under tests/golden/stablehlo.
//
// SLUICE_UPDATE_GOLDEN=1 rewrites the files; look at the difference before committing it.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "case.h"
#include "sluice/stablehlo/testing/golden.h"

namespace sluice::stablehlo::testing {
namespace {

class Golden : public ::testing::TestWithParam<Case> {};

TEST_P(Golden, TextIsAsRecorded) {
  expect_golden(std::filesystem::path(SLUICE_GOLDEN_DIR) / (GetParam().name + std::string(".mlir")),
                program_of(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(GoldenFiles, EveryFileHasItsCase) {
  std::set<std::string> names;
  for (const Case& c : all_cases()) EXPECT_TRUE(names.insert(c.name).second) << c.name << " is used twice";
  for (const auto& entry : std::filesystem::directory_iterator(SLUICE_GOLDEN_DIR)) {
    EXPECT_TRUE(names.contains(entry.path().stem())) << entry.path() << " belongs to no case";
  }
}

// Names and attributes of later versions than 1.0, which an older plugin may not know.
TEST(GoldenFiles, NothingIsYoungerThanVersionOne) {
  for (const Case& c : all_cases()) {
    const std::string text = program_of(c);
    for (const char* young : {"operand_batching_dims", "input_batching_dims", "\"stablehlo.tan\"",
                              "algorithm = ", "result_accuracy", "channel_handle", "composite"}) {
      if (std::string(young) == "algorithm = " && text.find("rng_algorithm = ") != std::string::npos)
        continue;
      EXPECT_EQ(text.find(young), std::string::npos) << c.name << " uses " << young;
    }
  }
}

}  // namespace
}  // namespace sluice::stablehlo::testing
