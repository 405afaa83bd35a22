// The texts of options: what they say, what is refused, and that each value gives its text again.
#include "sluice/train/recipe/parsed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace sluice::train {
namespace {

using metrics::MetricName;
using testing::HasSubstr;
using Shapes = std::vector<data::LengthShape>;

template <typename Value>
Value read(const std::string& text) {
  return base::value_or_throw(parse_value<Value>("--flag", text));
}

template <typename Value>
std::string refusal(const std::string& text) {
  const auto value = parse_value<Value>("--flag", text);
  if (value) return "";
  EXPECT_EQ(value.error().code(), Code::kInvalidArgument);
  return value.error().what();
}

// The text of the value, which gives the same value again.
template <typename Value>
std::string round_trip(const std::string& text) {
  const Value value = read<Value>(text);
  EXPECT_EQ(read<Value>(text_of(value)), value) << text;
  return text_of(value);
}

TEST(ParsedOptions, MaxBadIsAShareOrANumber) {
  EXPECT_EQ(read<MaxBad>("0.1%"), MaxBad());
  EXPECT_EQ(read<MaxBad>("0.1%").limit(), 0.001);
  EXPECT_EQ(read<MaxBad>("100%").limit(), 0.999);  // 1 would be one sample
  EXPECT_EQ(read<MaxBad>("25").limit(), 25);
  EXPECT_EQ(round_trip<MaxBad>("0.10%"), "0.1%");
  EXPECT_EQ(round_trip<MaxBad>("0%"), "0%");
  EXPECT_EQ(round_trip<MaxBad>("0"), "0");
  EXPECT_EQ(round_trip<MaxBad>("1e6"), "1000000");
  EXPECT_EQ(round_trip<MaxBad>("9007199254740992"), "9007199254740992");
  EXPECT_EQ(round_trip<MaxBad>("0.30000000000000004%"), "0.30000000000000004%");
  EXPECT_EQ(refusal<MaxBad>("lots"),
            "--flag takes a share of at most 100%, such as 0.1%, or a number of samples, such as 25, "
            "not 'lots'");
  for (const char* text : {"", "%", "101%", "-1", "-1%", "nan", "nan%", "inf", "0.5", "1e17", "1 %", "5%%"})
    EXPECT_THAT(refusal<MaxBad>(text), HasSubstr(std::string("not '") + text + "'")) << text;
}

TEST(ParsedOptions, ProfileIsARangeOfSteps) {
  EXPECT_EQ(read<ProfileSteps>("10:13"), (ProfileSteps{10, 13}));
  EXPECT_TRUE(read<ProfileSteps>("").empty());
  EXPECT_EQ(round_trip<ProfileSteps>(""), "");
  EXPECT_EQ(round_trip<ProfileSteps>("010:13"), "10:13");
  EXPECT_EQ(refusal<ProfileSteps>("13:10"),
            "--flag 13:10: expected FIRST:END with 1 <= FIRST < END, such as 10:13 for the steps 10, 11, 12");
  for (const char* text : {"10", ":", "0:3", "3:3", "-1:3", "1:x", "1:2:3", "1: 2", "1:99999999999999999999"})
    EXPECT_THAT(refusal<ProfileSteps>(text), HasSubstr("expected FIRST:END")) << text;
}

TEST(ParsedOptions, ResumeIsTheLastCheckpointOrAFolder) {
  EXPECT_TRUE(read<Resume>("").empty());
  EXPECT_EQ(read<Resume>("auto"), (Resume{.from_last = true}));
  EXPECT_EQ(read<Resume>("gs://b/run/last"), (Resume{.folder = "gs://b/run/last"}));
  for (const char* text : {"", "auto", "./auto", "run/top-12"}) EXPECT_EQ(round_trip<Resume>(text), text);
}

TEST(ParsedOptions, ShapesAreRowsAndLengths) {
  EXPECT_EQ(read<Shapes>("16x512, 32x256"), (Shapes{{16, 512}, {32, 256}}));
  EXPECT_EQ(round_trip<Shapes>("16x512, 32x256"), "16x512,32x256");
  EXPECT_EQ(round_trip<Shapes>(""), "");
  EXPECT_EQ(refusal<Shapes>("16y512"),
            "--flag: the shapes '16y512': expected ROWSxLENGTH, with commas between them, such as "
            "16x512,32x256");
  for (const char* text : {"16", "x", "0x8", "8x0", "-8x8", "8x8,", "8x8x8", "8x8;9x9"})
    EXPECT_THAT(refusal<Shapes>(text), HasSubstr("expected ROWSxLENGTH")) << text;
}

TEST(ParsedOptions, MetricsAreNames) {
  EXPECT_EQ(read<std::vector<MetricName>>("top5"), (std::vector<MetricName>{{.k = 5}}));
  EXPECT_EQ(round_trip<std::vector<MetricName>>("top5, f1,confusion"), "top5,f1,confusion");
  EXPECT_THAT(refusal<std::vector<MetricName>>("f1,acc"), HasSubstr("--flag: there is no metric \"acc\""));
}

// A row takes its value's text; a value that no text says is refused.
TEST(ParsedOptions, ARowHoldsItsValue) {
  MaxBad limit, other{.amount = 25, .percent = false};
  const auto row = [](MaxBad& value) {
    return base::Flag{"", "--max-bad", parsed("--max-bad", value), "", ""};
  };
  EXPECT_EQ(base::value_text(row(limit)), "0.1%");
  EXPECT_TRUE(base::is_set(row(limit)));
  base::copy_value(row(other), row(limit));
  EXPECT_EQ(limit, other);
  base::check_value(row(limit));
  limit.amount = std::numeric_limits<double>::infinity();
  EXPECT_THROW(base::check_value(row(limit)), Error);
}

}  // namespace
}  // namespace sluice::train
