#include "sluice/text/text_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "sluice/text/test_tokenizer.h"

namespace sluice::text {
namespace {

using testing::ElementsAre;

Tokenizer bytes() { return Tokenizer::parse(test::byte_tokenizer({{"i", "n"}, {"Ġ", "in"}}).dump()); }

// LLaMA's kind: words with their space in front, and bytes for what has no token.
Tokenizer fallback() {
  nlohmann::json vocabulary = {{"<unk>", 0}, {"▁in", 1}, {"▁the", 2}, {"!", 3}};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    vocabulary[name] = 4 + byte;
  }
  const nlohmann::json space = {
      {"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "first"}, {"split", false}};
  const nlohmann::json decoder = {{"type", "Sequence"},
                                  {"decoders",
                                   {{{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}},
                                    {{"type", "ByteFallback"}},
                                    {{"type", "Fuse"}},
                                    {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
  return Tokenizer::parse(nlohmann::json{
      {"model",
       {{"type", "BPE"},
        {"vocab", vocabulary},
        {"merges", nlohmann::json::array()},
        {"unk_token", "<unk>"},
        {"byte_fallback", true}}},
      {"decoder", decoder}}.dump());
}

std::vector<std::string> pieces_of(TextStream stream, const std::vector<std::uint32_t>& ids) {
  std::vector<std::string> pieces;
  for (const std::uint32_t id : ids) pieces.push_back(stream.add(id));
  pieces.push_back(stream.finish());
  return pieces;
}

std::vector<std::uint32_t> byte_ids(const std::string& text, std::uint32_t first) {
  std::vector<std::uint32_t> ids;
  for (const unsigned char byte : text) ids.push_back(first + byte);
  return ids;
}

TEST(TextStream, HoldsBackHalfACharacter) {
  EXPECT_THAT(pieces_of(TextStream(bytes()), byte_ids("aß€", 0)), ElementsAre("a", "", "ß", "", "", "€", ""));
  EXPECT_THAT(pieces_of(TextStream(fallback()), byte_ids("aß€", 4)),
              ElementsAre("a", "", "ß", "", "", "€", ""));
}

TEST(TextStream, WhatNeverBecomesACharacterIsShownAtItsEnd) {
  EXPECT_THAT(pieces_of(TextStream(bytes()), byte_ids("\xE2\x82", 0)), ElementsAre("", "", "\uFFFD"));
  EXPECT_THAT(pieces_of(TextStream(bytes()), byte_ids("\xE2\x82z", 0)), ElementsAre("", "", "\uFFFDz", ""));
}

TEST(TextStream, ASpaceBehindTheContextStays) {
  EXPECT_THAT(pieces_of(TextStream(fallback()), {1, 2, 3}), ElementsAre("in", " the", "!", ""));
  EXPECT_THAT(pieces_of(TextStream(fallback(), {1}), {2, 3}), ElementsAre(" the", "!", ""));
}

TEST(TextStream, PiecesAreTheTextAndWhole) {
  const std::string characters[] = {"a", " in", "ß", "€", "好", "😀", "👩‍👩‍👧", "\n", "i"};
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += characters[random() % std::size(characters)];
    const bool merged = round % 2 == 0;
    const Tokenizer tokenizer = merged ? bytes() : fallback();
    std::vector<std::uint32_t> ids = byte_ids(text, 4);
    if (merged) {
      ids.clear();
      tokenizer.append_ids(text, ids);
    }
    std::string found;
    for (const std::string& piece : pieces_of(TextStream(tokenizer), ids)) {
      EXPECT_EQ(piece.find("\uFFFD"), std::string::npos);
      found += piece;
    }
    EXPECT_EQ(found, tokenizer.decode(ids)) << text;
  }
}

}  // namespace
}  // namespace sluice::text
