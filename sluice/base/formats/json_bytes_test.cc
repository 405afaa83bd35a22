#include "sluice/base/formats/json_bytes.h"

#include <gtest/gtest.h>

#include <string>

#include "sluice/base/random.h"

namespace sluice::base {
namespace {

TEST(JsonBytes, WhatIsUtf8StandsAsItIs) {
  for (const char* name :
       {"", "train-0000.tar", "größe 猫 🐈", "a\\b", "\\x", "\\xg0", "\\xAB", "C:\\x9", "\x7f\t"})
    EXPECT_EQ(json_of_bytes(name), name);
}

TEST(JsonBytes, OtherBytesAreEscaped) {
  EXPECT_EQ(json_of_bytes("caf\xe9.tar"), R"(caf\xe9.tar)");
  EXPECT_EQ(json_of_bytes("\xc3\xa9\xc3"), R"(é\xc3)");
  EXPECT_EQ(json_of_bytes("\xed\xa0\x80"), R"(\xed\xa0\x80)");  // a surrogate
  EXPECT_EQ(json_of_bytes("\xc0\xaf"), R"(\xc0\xaf)");          // a longer form of the slash
  EXPECT_EQ(json_of_bytes(R"(a\xe9)"), R"(a\x5cxe9)");
  EXPECT_EQ(nlohmann::json(json_of_bytes("\xff")).dump(), R"("\\xff")");
}

// Names of a few telling bytes, so that escapes, halves of them and halves of characters meet.
TEST(JsonBytes, AllNamesComeBack) {
  constexpr std::string_view kBytes("\\\\\\xxx5c0ef9G\xc3\xa9\xff\x80 \n\0", 20);
  for (std::uint64_t number = 0; number < 20'000; ++number) {
    Random random({7, number});
    std::string name;
    for (std::uint64_t left = random.below(16); left > 0; --left) name += kBytes[random.below(kBytes.size())];
    const std::string text = json_of_bytes(name);
    EXPECT_EQ(bytes_of_json(text), name) << text;
    EXPECT_EQ(nlohmann::json::parse(nlohmann::json(text).dump()), text);
  }
}

TEST(JsonBytes, WholeDocuments) {
  const nlohmann::json document = {{"a\xff", {1, "\xfe", nullptr}}, {"b", {{"c", "d"}}}};
  EXPECT_EQ(with_json_texts(document).dump(), R"({"a\\xff":[1,"\\xfe",null],"b":{"c":"d"}})");
  EXPECT_EQ(with_bytes(with_json_texts(document)), document);
  EXPECT_TRUE(with_bytes(nlohmann::json(nlohmann::json::value_t::discarded)).is_discarded());
}

}  // namespace
}  // namespace sluice::base
