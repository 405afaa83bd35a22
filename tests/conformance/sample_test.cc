#include "tests/conformance/sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/conformance/choose.h"

namespace sluice::conformance {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Sample, ReadsArgumentsOfEveryForm) {
  Sample s = parse_sample(
      "aten::op.x | f[3,5]; i[4]{-1..9}:i32; b[]; none; 2; -0.5; true; (1,-2); 'floor'; bf16; @0;"
      " {f[2]; none}; p[2]{1,nan}; beta=1e-3",
      "file", 7);
  EXPECT_EQ(s.op, "aten::op.x");
  EXPECT_EQ(s.where(), "file:7: aten::op.x");
  ASSERT_EQ(s.arguments.size(), 14u);
  auto value = [&](size_t i) -> const Value& { return s.arguments[i].value; };
  EXPECT_EQ(value(0).tensor.kind, 'f');
  EXPECT_THAT(value(0).tensor.dims, ElementsAre(3, 5));
  EXPECT_EQ(value(1).tensor.low, -1);
  EXPECT_EQ(value(1).tensor.high, 9);
  EXPECT_EQ(value(1).tensor.dtype, "i32");
  EXPECT_TRUE(value(2).tensor.dims.empty());
  EXPECT_EQ(value(3).kind, Value::Kind::kNone);
  EXPECT_TRUE(value(4).whole);
  EXPECT_EQ(value(4).integer, 2);
  EXPECT_FALSE(value(5).whole);
  EXPECT_EQ(value(5).number, -0.5);
  EXPECT_EQ(value(6).kind, Value::Kind::kBool);
  EXPECT_THAT(value(7).list, ElementsAre(1, -2));
  EXPECT_EQ(value(8).text, "floor");
  EXPECT_EQ(value(9).kind, Value::Kind::kDType);
  EXPECT_EQ(value(10).kind, Value::Kind::kSame);
  ASSERT_EQ(value(11).items.size(), 2u);
  EXPECT_EQ(value(11).items[1].kind, Value::Kind::kNone);
  EXPECT_TRUE(std::isnan(value(12).tensor.values[1]));
  EXPECT_EQ(s.arguments[13].name, "beta");
  EXPECT_EQ(value(13).number, 1e-3);
}

TEST(Sample, ReadsOptions) {
  Sample s = parse_sample(
      "aten::a | | dtypes=f32,f16 itypes=i64,u8 tol=1e-4 tol.f16=0.25 gradtol=9 results=0,2 noview "
      "until=2.13 "
      "cpu=aten::b "
      "cpu.bias_sizes=(4)");
  EXPECT_TRUE(s.arguments.empty());
  EXPECT_THAT(s.dtypes, ElementsAre("f32", "f16"));
  EXPECT_THAT(s.itypes, ElementsAre("i64", "u8"));
  EXPECT_DOUBLE_EQ(s.tolerance_in("f32"), 1e-4);
  EXPECT_DOUBLE_EQ(s.tolerance_in("f16"), 0.25);
  EXPECT_DOUBLE_EQ(s.tolerance_in("f64"), 1e-8);
  EXPECT_EQ(s.gradient_factor, 9);
  EXPECT_THAT(s.results, ElementsAre(0, 2));
  EXPECT_TRUE(s.noview);
  EXPECT_EQ(s.until, 13);
  EXPECT_FALSE(s.noinplace);
  EXPECT_EQ(s.reference, "aten::b");
  ASSERT_EQ(s.reference_arguments.size(), 1u);
  EXPECT_EQ(s.reference_arguments[0].name, "bias_sizes");
}

TEST(Sample, RefusesWhatItCannotRead) {
  for (const char* line : {"aten::a", "relu | f[3]", "aten::a | f[3", "aten::a | f[3]{1", "aten::a | f[3]:q7",
                           "aten::a | x=1; f[3]", "aten::a | f[2]{0..3}", "aten::a | i[2]{3..1}",
                           "aten::a | 'x", "aten::a | 12x", "aten::a | ; f[3]", "aten::a | f[3] | nograds",
                           "aten::a | f[3] | dtypes=f31", "aten::a | f[3] | until=3.1", "aten::a | {1; 2}"}) {
    EXPECT_THROW(parse_sample(line), SampleError) << line;
  }
  try {
    parse_sample("aten::a | 12x", "reduce", 9);
    FAIL();
  } catch (const SampleError& error) {
    EXPECT_THAT(error.what(), HasSubstr("reduce:9: expected a number, found '12x'"));
  }
}

std::vector<std::string> chosen(const std::vector<std::pair<std::string, std::string>>& flags) {
  std::vector<Sample> samples;
  for (const char* line :
       {"aten::gather | f[3]; 0; i[2]", "aten::sort | d[4] | dtypes=f32", "aten::any | b[3]"})
    samples.push_back(parse_sample(line, "index"));
  samples.push_back(parse_sample("aten::sort.stable | d[4] | dtypes=f64,bf16", "special"));
  Choice choice;
  for (const auto& [flag, value] : flags) EXPECT_TRUE(choice.read(flag, value)) << flag;
  std::vector<std::string> names;
  for (const Sample* sample : chosen_samples(samples, choice)) names.push_back(sample->op);
  return names;
}

TEST(Choice, TakesFilesOperationsTypesAndParts) {
  EXPECT_EQ(chosen({}).size(), 4u);
  EXPECT_THAT(chosen({{"--filter", "sort,any"}}),
              ElementsAre("aten::sort", "aten::any", "aten::sort.stable"));
  EXPECT_THAT(chosen({{"--filter", "sort"}, {"--file", "special"}}), ElementsAre("aten::sort.stable"));
  EXPECT_THAT(chosen({{"--dtype", "bf16"}}), ElementsAre("aten::gather", "aten::sort.stable"));
  EXPECT_THAT(chosen({{"--dtype", "f32"}}), ElementsAre("aten::gather", "aten::sort", "aten::any"));
  EXPECT_THAT(chosen({{"--part", "2/3"}}), ElementsAre("aten::sort"));
  EXPECT_THROW(chosen({{"--part", "4/3"}}), std::runtime_error);
  EXPECT_FALSE(Choice().read("--device", "xla"));
}

}  // namespace
}  // namespace sluice::conformance
