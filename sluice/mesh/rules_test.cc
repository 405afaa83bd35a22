#include "sluice/mesh/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/mesh/test_refusal.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> shown(const ParameterLayouts& found) {
  std::vector<std::string> texts;
  for (const Layout& layout : found.layouts) texts.push_back(layout.str());
  return texts;
}

const std::vector<NamedShape>& decoder() {
  static const auto* all = new std::vector<NamedShape>{{"wte.weight", {50257, 768}},
                                                       {"h.0.q_proj.weight", {768, 768}},
                                                       {"h.0.up.weight", {768, 3072}},
                                                       {"h.0.ln.weight", {768}},
                                                       {"h.0.small.weight", {256, 256}}};
  return *all;
}

TEST(ParameterLayouts, TheLargestDimensionThatDivides) {
  const ParameterLayouts found = parameter_layouts(Mesh({{"fsdp", 8}}), decoder());
  EXPECT_THAT(shown(found), ElementsAre("[-, fsdp]", "[fsdp, -]", "[-, fsdp]", "[-]", "[-, -]"));
  EXPECT_EQ(found.layouts[1].dims()[0].priority, 1);
  EXPECT_THAT(found.whole, IsEmpty());
}

TEST(ParameterLayouts, WhatNothingDividesStaysWholeAndIsNamed) {
  const ParameterLayouts found = parameter_layouts(Mesh({{"fsdp", 8}}), {{"odd.weight", {50257, 5}}});
  EXPECT_THAT(shown(found), ElementsAre("[-, -]"));
  EXPECT_THAT(found.whole, ElementsAre("odd.weight: fsdp=8 divides no free dimension of [50257, 5]"));
  EXPECT_THAT(parameter_layouts(Mesh({{"data", 8}}), {{"odd.weight", {50257, 5}}}).whole, IsEmpty());
}

TEST(ParameterLayouts, RulesComeBeforeFsdp) {
  const Mesh mesh({{"fsdp", 4}, {"tensor", 2}});
  const std::vector<ShardRule> rules = {
      {"*.q_proj.weight", "tensor", 0}, {"*.up.weight", "tensor", -1}, {"wte.*"}};
  const ParameterLayouts found = parameter_layouts(mesh, decoder(), rules);
  EXPECT_THAT(shown(found), ElementsAre("[-, -]", "[tensor, fsdp]", "[fsdp, tensor]", "[-]", "[-, -]"));
  EXPECT_EQ(found.layouts[1].attribute(), "#sdy.sharding<@mesh, [{\"tensor\"}p1, {\"fsdp\"}p2]>");
  // Without an axis `tensor`, the rules change nothing but what stays whole.
  EXPECT_THAT(shown(parameter_layouts(Mesh({{"fsdp", 4}}), decoder(), {{"*.q_proj.weight", "tensor", 1}})),
              ElementsAre("[-, fsdp]", "[fsdp, -]", "[-, fsdp]", "[-]", "[-, -]"));
}

TEST(ParameterLayouts, Refusals) {
  const Mesh mesh({{"fsdp", 4}, {"tensor", 7}});
  const auto with = [&](std::vector<ShardRule> rules) {
    return test::refusal([&] { (void)parameter_layouts(mesh, decoder(), rules); });
  };
  EXPECT_THAT(with({{"h.0.q_prj.weight", "tensor", 0}}),
              HasSubstr("matches none of the 5 parameters: the nearest name is h.0.q_proj.weight"));
  EXPECT_THAT(with({{"*.q_proj.*", "fsdp", 0}, {"h.0.q*", "fsdp", 1}}),
              HasSubstr("the rules \"*.q_proj.*\" and \"h.0.q*\" both match h.0.q_proj.weight"));
  EXPECT_THAT(with({{"*.ln.weight", "tensor", 1}}), HasSubstr("dimension 1 of h.0.ln.weight, which has 1"));
  EXPECT_THAT(with({{"*.q_proj.*", "tensor", 0}}),
              HasSubstr("does not fit h.0.q_proj.weight: dimension 0 of"));
  EXPECT_THAT(with({{"*.q_proj.*", "tensr", 0}}), HasSubstr("did you mean tensor?"));
}

}  // namespace
}  // namespace sluice
