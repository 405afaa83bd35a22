#include "sluice/base/text/strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/text/join.h"

namespace sluice::base {
namespace {

using testing::ElementsAre;

TEST(Strings, StrJoinsPieces) {
  EXPECT_EQ(str(1, " of ", 2.5, '!'), "1 of 2.5!");
  EXPECT_EQ(str(), "");
}

TEST(Strings, Join) {
  EXPECT_EQ(join(std::vector<int>{1, 2, 3}, ", "), "1, 2, 3");
  EXPECT_EQ(join(std::vector<int>{}, ", "), "");
}

TEST(Strings, SplitKeepsEmptyPieces) {
  EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split("abc", ','), ElementsAre("abc"));
}

TEST(Strings, Trim) {
  EXPECT_EQ(trim(" \t a b\n"), "a b");
  EXPECT_EQ(trim("  "), "");
}

TEST(Strings, Ends) {
  EXPECT_TRUE(starts_with("gs://bucket", "gs://"));
  EXPECT_FALSE(starts_with("gs", "gs://"));
  EXPECT_TRUE(ends_with("shard.tar", ".tar"));
  EXPECT_FALSE(ends_with("tar", ".tar"));
}

TEST(Strings, NearestFindsATypo) {
  const std::vector<std::string> known = {"--batch-size", "--learning-rate", "--epochs"};
  EXPECT_EQ(nearest("--batchsize", known), "--batch-size");
  EXPECT_EQ(nearest("--epoch", known), "--epochs");
  EXPECT_EQ(nearest("--Epochs", known), "--epochs");
  EXPECT_EQ(nearest("cdua", {"cpu", "tpu", "cuda"}), "cuda");  // two letters swapped
}

TEST(Strings, NearestFindsNothingFar) {
  EXPECT_EQ(nearest("resnet18", {"mlp", "transformer"}), "");
  EXPECT_EQ(nearest("x", {}), "");
}

}  // namespace
}  // namespace sluice::base
