#include "sluice/base/formats/parse_json.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::base {
namespace {

std::string nested(int depth, const std::string& open, const std::string& close) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  text += "1";
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

TEST(ParseJson, ToTheDepthThatItHas) {
  for (const auto& [open, close] :
       {std::pair("[", "]"), std::pair("{\"a\":", "}"), std::pair("[{\"b\":", "}]")}) {
    const int levels = std::string(open).size() > 5 ? 2 : 1;
    EXPECT_FALSE(parse_json(nested(kMaxJsonDepth / levels, open, close)).is_discarded()) << open;
    EXPECT_TRUE(parse_json(nested(kMaxJsonDepth / levels + 1, open, close)).is_discarded()) << open;
    // Printing or copying this one took the stack of a program.
    EXPECT_TRUE(parse_json(nested(1'000'000, open, close)).is_discarded()) << open;
  }
  EXPECT_TRUE(parse_json(std::string(1'000'000, '[')).is_discarded());
}

TEST(ParseJson, BracketsInTextsAreNoDepth) {
  const std::string brackets(200, '[');
  EXPECT_EQ(parse_json("[\"" + brackets + "\", \"\\\"" + brackets + "\"]").size(), 2u);
  EXPECT_EQ(parse_json("[\"\\\\\", [[1]]]").size(), 2u);
  std::string wide = "[";
  for (int i = 0; i < 1000; ++i) wide += "[1],";
  EXPECT_EQ(parse_json(wide + "2]").size(), 1001u);
}

TEST(ParseJson, WhatIsNoJson) {
  for (const char* text : {"", "{", "]]]]", "[1,]", "{\"a\":}", "\"\xff\"", "nul", "\"\\"})
    EXPECT_TRUE(parse_json(text).is_discarded()) << text;
  EXPECT_EQ(parse_json("3"), 3);
}

}  // namespace
}  // namespace sluice::base
