#include "sluice/mesh/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/error.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Mesh& two_by_four() {
  static const auto* mesh = new Mesh({{"data", 2}, {"fsdp", 4}});
  return *mesh;
}

TEST(Layout, Texts) {
  const Layout batch({{{"data", "fsdp"}}, {}});
  EXPECT_EQ(batch.str(), "[data+fsdp, -]");
  EXPECT_EQ(batch.attribute(), "#sdy.sharding<@mesh, [{\"data\", \"fsdp\"}, {}]>");
  EXPECT_EQ(Layout::along(2, 0, {"fsdp"}, 1).attribute(), "#sdy.sharding<@mesh, [{\"fsdp\"}p1, {}]>");
  EXPECT_EQ(Layout().attribute(), "#sdy.sharding<@mesh, []>");
  EXPECT_EQ(Layout::replicated(3).attribute(), "#sdy.sharding<@mesh, [{}, {}, {}]>");
  EXPECT_EQ(batch_layout(2), batch);
}

// 8 rows over data × fsdp: one row for each device, in the devices' order. 12 columns over fsdp: three each.
TEST(Layout, Shards) {
  const Mesh& mesh = two_by_four();
  const Layout rows = batch_layout(2);
  EXPECT_THAT(rows.shard_dims(mesh, {8, 12}), ElementsAre(1, 12));
  for (int64_t device = 0; device < 8; ++device)
    EXPECT_THAT(rows.shard_start(mesh, {8, 12}, device), ElementsAre(device, 0));
  const Layout columns = Layout::along(2, 1, {"fsdp"});
  EXPECT_THAT(columns.shard_dims(mesh, {8, 12}), ElementsAre(8, 3));
  const int64_t start[] = {0, 3, 6, 9, 0, 3, 6, 9};
  for (int64_t device = 0; device < 8; ++device)
    EXPECT_THAT(columns.shard_start(mesh, {8, 12}, device), ElementsAre(0, start[device]));
  // fsdp outside data: device 5 is at data 1, fsdp 1, so it has block 1 × 2 + 1.
  EXPECT_THAT(Layout::along(1, 0, {"fsdp", "data"}).shard_start(mesh, {16}, 5), ElementsAre(6));
  const Layout both({{{"data"}}, {{"fsdp"}}});
  EXPECT_THAT(both.shard_dims(mesh, {8, 12}), ElementsAre(4, 3));
  EXPECT_THAT(both.shard_start(mesh, {8, 12}, 6), ElementsAre(4, 6));
}

TEST(Layout, AxesThatAMeshDoesNotHave) {
  const Mesh one({{"fsdp", 4}});
  EXPECT_TRUE(Layout::along(2, 0, {"tensor"}).is_replicated(one));
  EXPECT_FALSE(batch_layout(2).is_replicated(one));
  EXPECT_EQ(batch_layout(2).on(one), Layout::along(2, 0, {"fsdp"}));
  EXPECT_EQ(Layout::along(2, 0, {"tensor"}, 2).on(one), Layout::replicated(2));
}

TEST(Layout, WhatDoesNotDivide) {
  const Mesh& mesh = two_by_four();
  const Layout rows = Layout::along(2, 0, {"fsdp"});
  EXPECT_EQ(rows.misfit(mesh, {4, 3}), "");
  EXPECT_EQ(rows.misfit(mesh, {50257, 768}),
            "dimension 0 of [50257, 768] has 50257 elements, which the 4 devices along fsdp do not divide");
  EXPECT_THAT(batch_layout(1).misfit(mesh, {12}), HasSubstr("the 8 devices along data and fsdp do not"));
  EXPECT_NE(rows.misfit(mesh, {0, 3}), "");
  EXPECT_EQ(rows.misfit(mesh, {4}), "the layout [fsdp, -] has 2 dimensions, the tensor has 1");
  try {
    (void)rows.shard_dims(mesh, {6, 3});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("lay out another dimension"));
  }
}

// 50,257 rows over 8 devices are blocks of 6,283 rows, as if there were 50,264.
TEST(Layout, PaddedDimensions) {
  const Mesh& mesh = two_by_four();
  const Layout rows({{{"fsdp"}, 0, /*padded=*/true}, {}});
  EXPECT_EQ(rows.str(), "[fsdp padded, -]");
  EXPECT_EQ(rows.attribute(), "#sdy.sharding<@mesh, [{\"fsdp\"}, {}]>");
  EXPECT_NE(rows, Layout::along(2, 0, {"fsdp"}));
  EXPECT_EQ(rows.misfit(mesh, {13, 3}), "");
  EXPECT_THAT(rows.padded_dims(mesh, {13, 3}), ElementsAre(16, 3));
  EXPECT_THAT(rows.padded_dims(mesh, {12, 3}), ElementsAre(12, 3));
  EXPECT_THAT(rows.shard_dims(mesh, {13, 3}), ElementsAre(4, 3));
  const Layout eight({{{"data", "fsdp"}, 0, /*padded=*/true}, {}});
  EXPECT_THAT(eight.padded_dims(mesh, {50257, 3}), ElementsAre(50264, 3));
  EXPECT_THAT(eight.shard_dims(mesh, {50257, 3}), ElementsAre(6283, 3));
  // 5 rows over 4 are blocks of 2: the last block begins after the last row.
  EXPECT_THAT(rows.shard_dims(mesh, {5, 3}), ElementsAre(2, 3));
  EXPECT_THAT(rows.shard_start(mesh, {5, 3}, 7), ElementsAre(6, 0));
  EXPECT_NE(rows.misfit(mesh, {0, 3}), "");
  EXPECT_EQ(rows.on(Mesh({{"data", 2}})), Layout::replicated(2));
}

TEST(Layout, Refusals) {
  EXPECT_ANY_THROW(Layout({{{"fsdp"}}, {{"fsdp"}}}));
  EXPECT_ANY_THROW(Layout({{{"columns"}}}));
  EXPECT_ANY_THROW(Layout({{{"fsdp"}, -1}}));
  EXPECT_ANY_THROW(Layout::along(1, 1, {"fsdp"}));
}

}  // namespace
}  // namespace sluice
