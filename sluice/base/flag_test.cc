#include "sluice/base/flag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sluice/base/error.h"

namespace sluice::base {
namespace {

using testing::ElementsAre;

// One value of each kind.
struct Values {
  std::string text = "a", size = "small", resume;
  int workers = 3;
  std::int64_t batch = 128, tokens = 0;
  std::uint64_t seed = 42;
  double share = 0.1;
  bool flip = false, kernels = true;
  std::optional<bool> strict, exact;
  std::vector<double> betas;
  std::vector<float> mean = {0.5F, 0.25F};
  std::vector<std::int64_t> augment = {2, 9};
  std::vector<std::string> frozen, zones, words;
  std::optional<int> worker;
  std::string bad = "1%";
};

ChoiceValue size_of(Values& v) {
  return {{"small", "large"}, v.size, [&v](const std::string& text) {
            if (text != "small" && text != "large")
              throw_error(Code::kInvalidArgument, "--size is small or large, not " + text);
            v.size = text;
          }};
}

ParsedText share_of(Values& v) {
  return {.take =
              [&v](const std::string& text) {
                if (text.back() != '%')
                  throw_error(Code::kInvalidArgument, "--max-bad takes 5%, not " + text);
                v.bad = text;
              },
          .now = v.bad};
}

std::vector<Flag> rows(Values& v) {
  return {Flag{"Data", "--text", &v.text, "", ""},
          Flag{"Data", "--size", size_of(v), "", ""},
          Flag{"Data", "--workers", &v.workers, "", ""}.at_least(0),
          Flag{"Data", "--batch-size", &v.batch, "samples", ""}.at_least(1),
          Flag{"Data", "--tokens", LargeNumber{&v.tokens}, "", ""}.at_least(0),
          Flag{"Data", "--seed", &v.seed, "", ""},
          Flag{"Data", "--share", &v.share, "", ""}.within(from_below(0, 1), "takes a share of 0 to below 1"),
          Flag{"Data", "--flip", &v.flip, "", ""},
          Flag{"Data", "--kernels", OnOffValue{&v.kernels}, "", ""},
          Flag{"Data", "--strict", &v.strict, "", ""},
          Flag{"Data", "--exact", OpenOnOffValue{&v.exact, true}, "", ""},
          Flag{"Data", "--betas", &v.betas, "", ""},
          Flag{"Data", "--mean", &v.mean, "", ""}.within(above_to(0, 1), "takes numbers above 0 and up to 1"),
          Flag{"Data", "--augment", &v.augment, "", ""},
          Flag{"Data", "--resume", OptionalText{&v.resume}, "", ""},
          Flag{"Data", "--freeze", RepeatedText{&v.frozen}, "", ""},
          Flag{"Data", "--max-bad", share_of(v), "", ""},
          Flag{"Data", "--worker", &v.worker, "", ""},
          Flag{"Data", "--zones", TextList{&v.zones}, "", ""},
          Flag{"Data", "WORDS", Words{&v.words}, "", ""}};
}

std::vector<std::string> names(const std::vector<Flag>& flags) {
  std::vector<std::string> all;
  for (const Flag& flag : flags) all.push_back(flag.name);
  return all;
}

// The message of the first row that a check refuses; "": none.
template <typename Change>
std::string message(Change change) {
  Values values;
  change(values);
  try {
    for (const Flag& flag : rows(values)) check_value(flag);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST(Flag, SaysItsValueAsText) {
  Values values;
  values.betas = {0.9, 0.95};
  values.strict = true;
  std::vector<std::string> texts;
  for (const Flag& flag : rows(values)) texts.push_back(value_text(flag));
  EXPECT_THAT(texts, ElementsAre("a", "small", "3", "128", "0", "42", "0.1", "false", "on", "true", "",
                                 "0.9,0.95", "0.5,0.25", "2,9", "", "", "1%", "", "", ""));
}

TEST(Flag, KnowsWhetherAValueIsThere) {
  Values values;
  std::vector<std::string> set;
  for (const Flag& flag : rows(values))
    if (is_set(flag)) set.push_back(flag.name);
  EXPECT_THAT(set, ElementsAre("--text", "--size", "--workers", "--batch-size", "--seed", "--share",
                               "--kernels", "--exact", "--mean", "--augment", "--max-bad"));
  values.worker = 0, values.zones = {"a"}, values.words = {"b"};
  for (const size_t row : {17, 18, 19}) EXPECT_TRUE(is_set(rows(values)[row])) << row;
  values.share = NAN;
  EXPECT_FALSE(is_set(rows(values)[6]));
}

TEST(Flag, CopiesEachKindOfValue) {
  Values one, other;
  one.text = "b", one.size = "large", one.resume = "r";
  one.workers = 4, one.batch = 5, one.tokens = 6, one.seed = 7;
  one.share = 0.5, one.flip = true, one.kernels = false, one.strict = true, one.exact = false;
  one.betas = {1}, one.mean = {}, one.augment = {3}, one.frozen = {"x"};
  one.bad = "2%", one.worker = 3, one.zones = {"a", "b"}, one.words = {"c"};
  const auto from = rows(one), to = rows(other);
  for (size_t i = 0; i < from.size(); ++i) copy_value(from[i], to[i]);
  const auto copied = rows(other);
  for (size_t i = 0; i < from.size(); ++i)
    EXPECT_EQ(value_text(copied[i]), value_text(from[i])) << from[i].name;
  EXPECT_EQ(other.frozen, one.frozen);
  EXPECT_EQ(other.zones, one.zones);
  EXPECT_EQ(other.words, one.words);
  EXPECT_EQ(other.exact, false);
}

TEST(Flag, RefusesWhatItsLimitsExclude) {
  EXPECT_EQ(message([](Values&) {}), "");
  EXPECT_EQ(message([](Values& v) { v.bad = "3"; }), "--max-bad takes 5%, not 3");
  EXPECT_EQ(message([](Values& v) { v.batch = 0; }), "--batch-size must be at least 1, not 0");
  EXPECT_EQ(message([](Values& v) { v.workers = -2; }), "--workers must be at least 0, not -2");
  EXPECT_EQ(message([](Values& v) { v.tokens = -1; }), "--tokens must be at least 0, not -1");
  EXPECT_EQ(message([](Values& v) { v.batch = INT64_C(9007199254740992); }), "");
  EXPECT_EQ(message([](Values& v) { v.batch = INT64_C(9007199254740993); }),
            "--batch-size must be at most 9007199254740992, not 9007199254740993");
  EXPECT_EQ(message([](Values& v) { v.batch = INT64_MAX; }),
            "--batch-size must be at most 9007199254740992, not 9223372036854775807 or more");
  EXPECT_EQ(message([](Values& v) { v.share = 0; }), "");
  EXPECT_EQ(message([](Values& v) { v.share = 1; }), "--share takes a share of 0 to below 1, not 1");
  EXPECT_EQ(message([](Values& v) { v.share = NAN; }), "--share takes a share of 0 to below 1, not nan");
  EXPECT_EQ(message([](Values& v) { v.mean = {1, 0}; }), "--mean takes numbers above 0 and up to 1, not 0");
  EXPECT_EQ(message([](Values& v) { v.size = ""; }), "--size is small or large, not another value");
}

TEST(Flag, RunsItsOwnCheck) {
  bool checked = false;
  const Flag flag = Flag{"Data", "--text", &checked, "", ""}.checked([&] { checked = true; });
  check_value(flag);
  EXPECT_TRUE(checked);
}

TEST(Flag, IntervalsHaveTheirEndsOrNot) {
  EXPECT_TRUE(from(0).has(0));
  EXPECT_TRUE(from(0).has(1e300));
  EXPECT_FALSE(from(0).has(INFINITY));
  EXPECT_FALSE(from(0).has(-1e-9));
  EXPECT_TRUE((Interval{.low = 0}).has(INFINITY));
  EXPECT_TRUE(from_to(0, 1).has(1));
  EXPECT_FALSE(from_below(0, 1).has(1));
  EXPECT_TRUE(from_below(0, 1).has(0));
  EXPECT_FALSE(above_to(0, 1).has(0));
  EXPECT_TRUE(above_to(0, 1).has(1));
  for (const Interval& numbers : {Interval{}, from(0), from_to(0, 1), from_below(0, 1), above_to(0, 1)})
    EXPECT_FALSE(numbers.has(NAN));
}

TEST(Flag, ReadsListsOfNumbers) {
  EXPECT_THAT(parse_numbers<double>("--a", "0.9, 0.95"), ElementsAre(0.9, 0.95));
  EXPECT_THAT(parse_numbers<std::int64_t>("--a", "[2,9]"), ElementsAre(2, 9));
  EXPECT_TRUE(parse_numbers<float>("--a", "").empty());
  try {
    parse_numbers<std::int64_t>("--a", "2,x");
    FAIL() << "x is not a number";
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "--a takes numbers separated by commas, not \"2,x\"");
  }
}

TEST(Flag, ListsTheFirstReasonThatHolds) {
  bool value = false;
  const std::vector<Flag> flags = {Flag{"Data", "--crop", &value, "", ""}
                                       .idle(false, {"--task"}, "the task has no images")
                                       .idle(true, {"--fake"}, "there are no shards")
                                       .idle(true, {"--other"}, "nobody reads this"),
                                   Flag{"Data", "--devices", &value, "", ""}.idle(
                                       {.causes = {"--ids"}, .why = "--ids names them", .beside = "--ids"}),
                                   Flag{"Data", "--lr", &value, "", ""}};
  EXPECT_EQ(flags_without_effect(flags, {}, {}), "");
  EXPECT_EQ(flags_without_effect(flags, {"--lr", "--devices"}, {"--lr"}), "");
  EXPECT_EQ(flags_without_effect(flags, {"--crop", "--devices", "--ids"}, {"--crop", "--devices", "--ids"}),
            "--crop has no effect: there are no shards\n--devices has no effect: --ids names them");
  // The command line may overrule what a file says; another reason still counts.
  EXPECT_EQ(flags_without_effect(flags, {"--crop", "--devices", "--ids", "--fake"}, {"--ids", "--fake"}),
            "--crop has no effect: nobody reads this");
}

TEST(Flag, AreSortedForTheHelp) {
  bool value = false;
  const auto row = [&](const char* name) { return Flag{"Data", name, &value, "", ""}; };
  EXPECT_THAT(
      names(in_help_order({{row("--a"), row("--b").after("--d"), row("--c")},
                           {row("--d"), row("--e"), row("--f").after("--b"), row("--g").after("--f")}})),
      ElementsAre("--a", "--d", "--b", "--f", "--g", "--c", "--e"));
  EXPECT_THROW(in_help_order({{row("--a").after("--none")}}), std::exception);
}

TEST(Flag, IsASettingIfItIsSetOrAsTheRowSays) {
  double number = 0;
  const auto row = [&] { return Flag{"Data", "--ema", &number, "", ""}; };
  EXPECT_FALSE(row().is_setting);
  EXPECT_FALSE(row().setting().is_setting);
  EXPECT_TRUE(row().setting_if(true).is_setting);
  number = 0.9;
  EXPECT_TRUE(row().setting(3).is_setting);
  EXPECT_EQ(row().setting(3).setting_rank, 3);
  EXPECT_EQ(toml_key("--batch-size"), "batch_size");
}

}  // namespace
}  // namespace sluice::base
