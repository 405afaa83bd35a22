#include "sluice/data/decode/nested.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace sluice::data {
namespace {

using ::testing::HasSubstr;

std::string nested(const std::string& open, std::size_t levels, const std::string& inside,
                   const std::string& close = "") {
  std::string bytes;
  for (std::size_t i = 0; i < levels; ++i) bytes += open;
  bytes += inside;
  for (std::size_t i = 0; i < levels; ++i) bytes += close;
  return bytes;
}

std::string error_of(const std::string& bytes, Format format) {
  const auto text = json_of_packed(bytes, format);
  return text ? "no error" : text.error().what();
}

// Each of these once ended the process by a stack that ran over.
TEST(Nested, WhatIsTooDeepIsRefused) {
  constexpr std::size_t kMany = 1'000'000;
  EXPECT_THAT(error_of(nested("\x91", kMany, "\x01"), Format::kMsgpack), HasSubstr("deeper than 512 levels"));
  EXPECT_THAT(error_of(nested("\x81\xa1k", kMany, "\x01"), Format::kMsgpack), HasSubstr("deeper than 512"));
  EXPECT_THAT(error_of(nested("\x81", kMany, "\x01"), Format::kCbor), HasSubstr("deeper than 512 levels"));
  EXPECT_THAT(error_of(nested("\x9f", kMany, "\x01", "\xff"), Format::kCbor), HasSubstr("deeper than 512"));
  EXPECT_THAT(error_of(nested("\xbf\x61k", kMany, "\x01", "\xff"), Format::kCbor), HasSubstr("deeper"));
  EXPECT_THAT(error_of(nested("\x7f", kMany, "\x61k", "\xff"), Format::kCbor), HasSubstr("in pieces"));
  EXPECT_THAT(error_of(nested("\x5f\x41k", kMany, "", "\xff"), Format::kCbor), HasSubstr("in pieces"));
  EXPECT_THAT(error_of(nested("\xc6", kMany, "\x01"), Format::kCbor), HasSubstr("not valid CBOR"));
  EXPECT_THAT(check_json(nested("[", kMany, "1", "]")).error().what(), HasSubstr("deeper than 512 levels"));
}

TEST(Nested, UpToTheLimitItIsRead) {
  const std::string json = nested("[", kMaxNesting, "1", "]");
  EXPECT_EQ(json_of_packed(nested("\x91", kMaxNesting, "\x01"), Format::kMsgpack).value_or(""), json);
  EXPECT_EQ(json_of_packed(nested("\x81", kMaxNesting, "\x01"), Format::kCbor).value_or(""), json);
  EXPECT_TRUE(check_json(json));
  EXPECT_FALSE(check_json("[" + json + "]"));
  // Many values beside each other are not deep.
  EXPECT_TRUE(check_json("[" + nested("[],", 10'000, "[]") + "]"));
  EXPECT_EQ(json_of_packed("\x82\x7f\x61"
                           "a\x62"
                           "bc\xff\x60",
                           Format::kCbor)
                .value_or(""),
            "[\"abc\",\"\"]");
}

// Against the library's own reader of the whole: lists and objects in each other, names that come twice.
TEST(Nested, TheTreeIsThatOfTheLibrary) {
  const auto document = nlohmann::json::parse(
      R"({"b": [1, -2, 3.5, [], [{}, [null, true]], "é"], "a": {"x": {"y": [[1], [2, {"z": ""}]]}, "w": 18446744073709551615}})");
  const auto packed = nlohmann::json::to_msgpack(document), cbor = nlohmann::json::to_cbor(document);
  EXPECT_EQ(json_of_packed({reinterpret_cast<const char*>(packed.data()), packed.size()}, Format::kMsgpack)
                .value_or(""),
            document.dump());
  EXPECT_EQ(
      json_of_packed({reinterpret_cast<const char*>(cbor.data()), cbor.size()}, Format::kCbor).value_or(""),
      document.dump());
  EXPECT_EQ(json_of_packed("\x82\xa1k\x01\xa1k\x02", Format::kMsgpack).value_or(""), "{\"k\":2}");
  EXPECT_EQ(json_of_packed(std::string("\xc4\x02\x07\x08", 4), Format::kMsgpack).value_or(""),
            nlohmann::json::binary({7, 8}).dump());
  EXPECT_EQ(json_of_packed("\xd4\x05\x07", Format::kMsgpack).value_or(""),
            nlohmann::json::binary({7}, 5).dump());
}

// They became null.
TEST(Nested, ErrorsAreWithoutTheLibrarysNames) {
  EXPECT_EQ(std::string(check_json("{\"a\": bad").error().what()),
            "not valid JSON: at column 7: syntax error while parsing value - invalid literal; last read: "
            "'\"a\": b'");
  EXPECT_THAT(check_json("[1\n,x").error().what(),
              HasSubstr("not valid JSON: at line 2, column 2: syntax error"));
  EXPECT_THAT(json_of_packed("\xa2\x61", Format::kCbor).error().what(),
              HasSubstr("not valid CBOR: at byte 3: "));
}

TEST(Nested, NumbersThatJsonHasNoFormForAreRefused) {
  for (const std::string& number : {std::string("\xcb\x7f\xf8\0\0\0\0\0\0", 9),
                                    std::string("\xca\x7f\x80\0\0", 5), std::string("\xca\xff\x80\0\0", 5)})
    EXPECT_THAT(error_of("\x92\x01" + number, Format::kMsgpack), HasSubstr("NaN or infinity"));
  for (const std::string& number : {std::string("\xfb\x7f\xf8\0\0\0\0\0\0", 9), std::string("\xf9\x7e\0", 3),
                                    std::string("\xf9\xfc\0", 3)})
    EXPECT_THAT(error_of("\x82\x01" + number, Format::kCbor), HasSubstr("NaN or infinity"));
  EXPECT_FALSE(check_json("[NaN]"));
  EXPECT_FALSE(check_json("[1e999]"));
}

}  // namespace
}  // namespace sluice::data
