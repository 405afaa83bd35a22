#include "sluice/base/formats/unique_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sluice/base/formats/parse_json.h"

namespace sluice::base {
namespace {

std::string error_of(std::string_view text) {
  const auto value = parse_unique_json(text);
  return value ? "" : value.error().what();
}

TEST(UniqueJson, TwoEntriesOfOneNameAreRefused) {
  EXPECT_THAT(error_of(R"({"a": 1, "b": 2, "a": 1})"), testing::HasSubstr("called 'a'"));
  EXPECT_THAT(error_of(R"([{"x": {"b": 1, "\u0062": 2}}, 3])"), testing::HasSubstr("called 'b'"));
  EXPECT_THAT(error_of(R"({"": [], "": {}})"), testing::HasSubstr("called ''"));
  EXPECT_THAT(error_of(R"({"a": {"x": 1}, "c": 0, "a": {"x": 1}})"), testing::HasSubstr("called 'a'"));
}

TEST(UniqueJson, OthersAreWhatTheyAre) {
  for (const char* text : {R"({"a": {"a": [{"a": 1}, {"a": 1}]}, "b": null})", "{}", "[]", "3", R"("x")",
                           R"([{}, {}, ["a", "a"]])"}) {
    const auto value = parse_unique_json(text);
    ASSERT_TRUE(value) << text;
    EXPECT_EQ(*value, parse_json(text)) << text;
  }
  for (const std::string& text :
       {std::string("{"), std::string(R"({"a": 1, "a": })"), std::string(1'000'000, '[')})
    EXPECT_TRUE(parse_unique_json(text).value().is_discarded()) << text.substr(0, 20);
}

}  // namespace
}  // namespace sluice::base
