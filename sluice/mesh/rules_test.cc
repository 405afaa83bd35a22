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

// The names of a model in a wrapper, and rules that were written for the model without it, or the other way
// round.
TEST(ParameterLayouts, PrefixesDoNotMatter) {
  const Mesh mesh({{"tensor", 2}});
  const std::vector<NamedShape> wrapped = {{"module.model.layers.0.q_proj.weight", {512, 256}},
                                           {"module.lm_head.weight", {512, 256}}};
  for (const char* pattern : {"module.model.layers.*.q_proj.weight", "layers.0.q_proj.weight",
                              "model.layers.0.q_proj.weight", "transformer.layers.*.q_proj.weight"})
    EXPECT_THAT(shown(parameter_layouts(mesh, wrapped, {{pattern, "tensor", 0}})),
                ElementsAre("[tensor, -]", "[-, -]"))
        << pattern;
  // A rule that matches names as they are is not for other names: this one is for the body alone.
  const std::vector<NamedShape> plain = {{"model.norm.weight", {512, 256}}, {"lm_head.weight", {512, 256}}};
  EXPECT_THAT(shown(parameter_layouts(mesh, plain, {{"model.*", "tensor", 1}})),
              ElementsAre("[-, tensor]", "[-, -]"));
  const auto refused = [&](const char* pattern) {
    return test::refusal([&] { (void)parameter_layouts(mesh, wrapped, {{pattern, "tensor", 0}}); });
  };
  EXPECT_THAT(refused("model.*"), HasSubstr("matches none of the 2 parameters"));
  EXPECT_THAT(refused("layers.0.q_prj.weight"),
              HasSubstr("the nearest name is module.model.layers.0.q_proj.weight"));
}

TEST(ParameterLayouts, RulesOfTheModelComeAfterTheCallers) {
  const Mesh mesh({{"fsdp", 4}, {"tensor", 2}});
  const std::vector<ShardRule> of_model = {{"*.q_proj.weight", "tensor", 0, 12},
                                           {"*.up.weight", "tensor", 1},
                                           {"*.small.weight", "tensor", 0},
                                           {"*.weight", "tensor", 1},
                                           {"*.nothing", "tensor", 0}};
  // The first rule that matches counts; what is small stays whole.
  EXPECT_THAT(shown(parameter_layouts(mesh, decoder(), {}, of_model)),
              ElementsAre("[-, tensor]", "[tensor, fsdp]", "[fsdp, tensor]", "[-]", "[-, -]"));
  EXPECT_THAT(
      shown(parameter_layouts(mesh, decoder(),
                              {{"*.q_proj.weight", "tensor", 1}, {"*.small.weight", "tensor", 1}}, of_model)),
      ElementsAre("[-, tensor]", "[fsdp, tensor]", "[fsdp, tensor]", "[-]", "[-, tensor]"));
}

// 50,257 = 29 × 1,733 rows: no axis divides them. fsdp takes the width, and tensor nothing.
TEST(ParameterLayouts, WhatDoesNotFitTheModelsRulesIsSaidWithItsCost) {
  const std::vector<NamedShape> parameters = {{"wte.weight", {50257, 768}},
                                              {"h.0.q.weight", {1600, 1600}},
                                              {"h.1.q.weight", {1600, 1600}},
                                              {"h.2.q.weight", {1600, 1600}}};
  const std::vector<ShardRule> of_model = {{"wte.weight", "tensor", 0}, {"*.q.weight", "tensor", 0, 25}};
  const ParameterLayouts found =
      parameter_layouts(Mesh({{"fsdp", 2}, {"tensor", 4}}), parameters, {}, of_model);
  EXPECT_THAT(shown(found), ElementsAre("[-, fsdp]", "[-, fsdp]", "[-, fsdp]", "[-, fsdp]"));
  // 50,257 × 768 / 2, and a quarter of it; 3 × 1,600² / 2.
  EXPECT_THAT(
      found.unfit,
      ElementsAre("wte.weight: tensor=4 does not divide the 50257 elements along dimension 0 of [50257, "
                  "768]: each device holds 19298688 numbers instead of 4824672, and computes their products "
                  "whole",
                  "h.0.q.weight and 2 more: tensor=4 does not divide the 25 heads along dimension 0 of "
                  "[1600, 1600]: each device holds 3840000 numbers instead of 960000, and computes their "
                  "products whole"));
  EXPECT_THAT(found.whole, IsEmpty());
  // Without a tensor axis, a rule for it keeps fsdp away from the dimension unless there is no other.
  EXPECT_THAT(shown(parameter_layouts(Mesh({{"fsdp", 8}}), {{"wte.weight", {4096, 768}}}, {}, of_model)),
              ElementsAre("[-, fsdp]"));
  EXPECT_THAT(shown(parameter_layouts(Mesh({{"fsdp", 8}}), {{"wte.weight", {4096, 765}}}, {}, of_model)),
              ElementsAre("[fsdp, -]"));
}

TEST(ParameterLayouts, PaddedDimensions) {
  const Mesh mesh({{"fsdp", 2}, {"tensor", 4}});
  const std::vector<NamedShape> parameters = {
      {"wte.weight", {50257, 768}}, {"head.weight", {50304, 768}}, {"h.0.q.weight", {1600, 1600}}};
  const std::vector<ShardRule> padded = {{"*e*.weight", "tensor", 0, 0, /*padded=*/true},
                                         {"*.q.weight", "tensor", 0, 25, /*padded=*/true}};
  // Heads are not padded: they would compute with zeros.
  const ParameterLayouts found = parameter_layouts(mesh, parameters, {}, {padded[1], padded[0]});
  EXPECT_THAT(shown(found), ElementsAre("[tensor padded, fsdp]", "[tensor, fsdp]", "[-, fsdp]"));
  EXPECT_THAT(found.unfit, ElementsAre(HasSubstr("h.0.q.weight: tensor=4 does not divide the 25 heads")));
  // The caller's rules, and one for fsdp.
  EXPECT_THAT(shown(parameter_layouts(mesh, {parameters[0]}, {padded[0]})),
              ElementsAre("[tensor padded, fsdp]"));
  EXPECT_THAT(shown(parameter_layouts(mesh, {parameters[0]}, {{"wte.*", "fsdp", 0, 0, /*padded=*/true}})),
              ElementsAre("[fsdp padded, -]"));
  EXPECT_THAT(shown(parameter_layouts(Mesh({{"fsdp", 8}}), {parameters[0]}, {}, {padded[0]})),
              ElementsAre("[-, fsdp]"));
}

TEST(TensorApart, NamesTheFirstGroupThatSpansHosts) {
  const Mesh mesh({{"fsdp", 2}, {"tensor", 4}});
  EXPECT_EQ(tensor_apart(mesh, {0, 0, 0, 0, 1, 1, 1, 1}, "hosts"), "");
  EXPECT_EQ(tensor_apart(Mesh({{"fsdp", 8}}), {0, 1, 2, 3, 4, 5, 6, 7}, "hosts"), "");
  EXPECT_THAT(tensor_apart(mesh, {0, 0, 0, 0, 0, 0, 1, 1}, "hosts"),
              HasSubstr("tensor=4 of the mesh fsdp=2,tensor=4 spans hosts: devices 4 and 6 exchange"));
  EXPECT_THAT(tensor_apart(mesh, {0, 1, 0, 1, 0, 1, 0, 1}, "slices"), HasSubstr("devices 0 and 1"));
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
              HasSubstr("does not fit h.0.q_proj.weight: tensor=7 does not divide the 768 elements along "
                        "dimension 0 of [768, 768]"));
  // 7 divides 3,584 columns, but not 8 heads of 448.
  EXPECT_THAT(test::refusal([&] {
                (void)parameter_layouts(mesh, {{"q.weight", {3584, 768}}}, {{"q.weight", "tensor", 0, 8}});
              }),
              HasSubstr("tensor=7 does not divide the 8 heads along dimension 0 of [3584, 768]"));
  EXPECT_THAT(with({{"wte.*"}, {"wte.*"}}),
              HasSubstr("the rules \"wte.*\" and \"wte.*\" both match wte.weight"));
  EXPECT_THAT(with({{"*.q_proj.*", "tensr", 0}}), HasSubstr("did you mean tensor?"));
}

}  // namespace
}  // namespace sluice
