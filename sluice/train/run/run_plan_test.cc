#include "sluice/train/run/run_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/error.h"

namespace sluice::train {
namespace {

using testing::HasSubstr;

std::string refused_rows(const TrainOptions& options, const char* mesh) {
  try {
    check_rows(options, Mesh::parse(mesh));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(RunPlan, AMeshDividesTheRowsOfBatches) {
  TrainOptions options;
  options.batch_size = 30;
  EXPECT_EQ(refused_rows(options, ""), "");
  EXPECT_EQ(refused_rows(options, "tensor=4"), "");
  EXPECT_EQ(refused_rows(options, "data=2,fsdp=3,tensor=4"), "");
  EXPECT_EQ(
      refused_rows(options, "data=2,fsdp=4"),
      "--batch-size 30 is not a multiple of data=2 × fsdp=4 = 8 of the mesh data=2,fsdp=4: choose 24 or "
      "32");
  EXPECT_THAT(refused_rows(options, "fsdp=64"), HasSubstr("of the mesh fsdp=64: choose 64"));
  options.test_batch_size = 7;
  EXPECT_THAT(refused_rows(options, "fsdp=2"), HasSubstr("--test-batch-size 7 is not a multiple of data=1"));
  options.test_batch_size = 0;
  options.global_batch_size = 40;
  options.accumulate = 2;
  EXPECT_EQ(refused_rows(options, "fsdp=4"), "");
  EXPECT_THAT(refused_rows(options, "fsdp=8"), HasSubstr("--global-batch-size / --accumulate = 20 is not"));
  options.global_batch_size = 0;
  options.shapes = {{8, 512}, {12, 256}};
  EXPECT_EQ(refused_rows(options, "fsdp=4"), "");
  EXPECT_THAT(refused_rows(options, "fsdp=8"), HasSubstr("--shapes with rows 12 is not a multiple"));
}

TEST(RunPlan, AMeshDividesTheLengthsOfRows) {
  TrainOptions options;
  options.batch_size = 2;
  options.task = Task::kClm;
  options.length = 130;
  EXPECT_EQ(refused_rows(options, "fsdp=2,sequence=2"), "");
  EXPECT_EQ(refused_rows(options, "sequence=4"),
            "--length 130 is not a multiple of sequence=4 of the mesh sequence=4: choose 128 or 132");
  options.length = 3;
  EXPECT_THAT(refused_rows(options, "sequence=4"), HasSubstr("choose 4"));
  options.length = 0;
  options.shapes = {{2, 512}, {4, 257}};
  EXPECT_THAT(refused_rows(options, "sequence=2"), HasSubstr("--shapes with rows of tokens 257 is not"));
  options.shapes.clear();
  options.task = Task::kImages;
  options.model = "resnet18";
  EXPECT_THAT(refused_rows(options, "sequence=2"), HasSubstr("resnet18 has no sequences"));
  options.model = "transformer";
  EXPECT_EQ(refused_rows(options, "sequence=2"), "");
}

TEST(RunPlan, LayersAreComputedAgainWhereFsdpIsAboveOne) {
  TrainOptions options;
  const auto again = [&](const char* mesh) { return recomputes(options, Mesh::parse(mesh)); };
  options.model = "transformer";
  EXPECT_FALSE(again(""));
  EXPECT_FALSE(again("data=4,tensor=2"));
  EXPECT_TRUE(again("data=2,fsdp=2"));
  options.recompute = false;
  EXPECT_FALSE(again("fsdp=2"));
  options.recompute = true;
  EXPECT_TRUE(again(""));
  options.recompute.reset();
  options.model = "resnet50";  // has no such layers
  EXPECT_FALSE(again("fsdp=2"));
  options.task = Task::kClm;
  EXPECT_TRUE(again("fsdp=2"));
}

}  // namespace
}  // namespace sluice::train
