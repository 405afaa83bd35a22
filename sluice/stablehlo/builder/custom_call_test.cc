#include "sluice/stablehlo/test_support.h"

namespace sluice::stablehlo::testing {
namespace {

using ::testing::HasSubstr;

TEST(CustomCall, Text) {
  Builder b;
  const Value operands[] = {b.parameter(f32({2})), b.parameter(s32())};
  const Values out =
      b.custom_call("sluice_all_reduce", operands, {f32({2}), s32()},
                    {{"op", "sum"}, {"site", int64_t{3}}, {"groups", Dims{0, 1}}}, {.in_place = 2});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].type(), f32({2}));
  EXPECT_EQ(out[1].type(), s32());
  const Values one = b.custom_call("say \"x\"", {operands, 1}, {f32({2})},
                                   {{"exact", true}, {"none", Dims{}}, {"half", 0.5}}, {.in_place = 1});
  const Values fresh = b.custom_call("make", {}, {f32({4, 2})}, {});
  EXPECT_EQ(fresh[0].type(), f32({4, 2}));
  const std::string text = b.finish(one, {});
  EXPECT_THAT(
      text,
      HasSubstr(
          "    %0, %1 = \"stablehlo.custom_call\"(%arg0, %arg1) {call_target_name = \"sluice_all_reduce\", "
          "api_version = 4 : i32, has_side_effect = true, backend_config = {op = \"sum\", site = 3 : i64, "
          "groups = array<i64: 0, 1>}, output_operand_aliases = "
          "[#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, "
          "operand_tuple_indices = []>, #stablehlo.output_operand_alias<output_tuple_indices = [1], "
          "operand_index = 1, operand_tuple_indices = []>]} : (tensor<2xf32>, tensor<i32>) -> "
          "(tensor<2xf32>, tensor<i32>)\n"));
  EXPECT_THAT(text, HasSubstr("call_target_name = \"say \\22x\\22\""));
  EXPECT_THAT(text, HasSubstr("{exact = true, none = array<i64>, half = 5.00000000000000000e-01 : f64}, "
                              "output_operand_aliases = [#stablehlo.output_operand_alias<"
                              "output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]"));
  EXPECT_THAT(text,
              HasSubstr("\"stablehlo.custom_call\"() {call_target_name = \"make\", api_version = 4 : i32, "
                        "has_side_effect = true, backend_config = {}} : () -> tensor<4x2xf32>\n"));
}

TEST(CustomCall, SomeResultsInPlace) {
  Builder b;
  const Value x = b.parameter(f32({2}));
  const Values out = b.custom_call("sort", {&x, 1}, {f32({2}), s32({2})}, {}, {.in_place = 1});
  EXPECT_THAT(b.finish(out, {}),
              HasSubstr("output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = "
                        "[0], operand_index = 0, operand_tuple_indices = []>]} : (tensor<2xf32>) -> "
                        "(tensor<2xf32>, tensor<2xi32>)"));
}

TEST(CustomCall, LayoutsOfAPureCall) {
  Builder b;
  const Value x = b.parameter(f32({2, 3, 4, 5}));
  const CallOptions options{.pure = true, .operand_layouts = {{1, 3, 2, 0}}, .result_layouts = {{0}}};
  const Values out = b.custom_call("sums", {&x, 1}, {f32({3})}, {}, options);
  EXPECT_THAT(b.finish(out, {}),
              HasSubstr("api_version = 4 : i32, has_side_effect = false, backend_config = {}, "
                        "operand_layouts = [dense<[1, 3, 2, 0]> : tensor<4xindex>], "
                        "result_layouts = [dense<[0]> : tensor<1xindex>]}"));
  Builder other;
  const Value y = other.parameter(f32({2, 3}));
  EXPECT_THAT(rejection([&] {
                (void)other.custom_call("f", {&y, 1}, {f32({3})}, {},
                                        {.operand_layouts = {{0, 0}}, .result_layouts = {{0}}});
              }),
              HasSubstr("[0, 0] is not an order of the dimensions of tensor<2x3xf32>"));
  EXPECT_THAT(rejection([&] {
                (void)other.custom_call("f", {&y, 1}, {f32({3})}, {}, {.operand_layouts = {{1, 0}}});
              }),
              HasSubstr("expected a layout for each of 1 values, found 0"));
}

TEST(CustomCall, Refusals) {
  Builder b;
  const Value x = b.parameter(f32({2}));
  const auto attempt = [&](const std::vector<Type>& results, const CallAttributes& attributes,
                           size_t in_place) {
    return rejection([&] { (void)b.custom_call("f", {&x, 1}, results, attributes, {.in_place = in_place}); });
  };
  EXPECT_THAT(attempt({}, {}, 0), HasSubstr("there must be a target and a result"));
  EXPECT_THAT(attempt({f32({2}), f32({2})}, {}, 2), HasSubstr("found no such operand"));
  EXPECT_THAT(attempt({f32({2})}, {}, 2), HasSubstr("2 results in place, found 1"));
  EXPECT_THAT(attempt({s32({2})}, {}, 1),
              HasSubstr("result 0 (tensor<2xi32>) takes the memory of operand 0, which must have its type, "
                        "found tensor<2xf32>"));
  EXPECT_THAT(attempt({f32({2})}, {{"a b", true}}, 0), HasSubstr("found \"a b\""));
  EXPECT_THAT(attempt({f32({2})}, {{"a", true}, {"a", true}}, 0), HasSubstr("a is given twice"));
  EXPECT_THAT(attempt({f32({-1})}, {}, 0), HasSubstr("must not be negative"));
  EXPECT_EQ(b.operations(), 0u);
}

}  // namespace
}  // namespace sluice::stablehlo::testing
