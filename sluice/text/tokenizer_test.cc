#include "sluice/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <thread>

#include "sluice/base/error.h"
#include "sluice/base/files/file.h"
#include "sluice/base/random.h"
#include "sluice/text/characters/regex.h"
#include "sluice/text/characters/unicode.h"
#include "sluice/text/test_tokenizer.h"

namespace sluice::text {
namespace {

using nlohmann::json;
using test::byte_tokenizer;
using test::thrown;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string message_of(const json& tokenizer) {
  return thrown([&] { Tokenizer::parse(tokenizer.dump()); });
}

TEST(Tokenizer, MergesTheLowestRankFirstAndTheLeftmostOfEqualOnes) {
  const auto tokenizer = Tokenizer::parse(byte_tokenizer({{"a", "a"}, {"aa", "aa"}, {"a", "b"}}).dump());
  const auto encoding = tokenizer.encode("aaaaab");
  EXPECT_THAT(encoding.ids, ElementsAre(257, 258));
  EXPECT_EQ(tokenizer.decode(encoding.ids), "aaaaab");
  EXPECT_EQ(tokenizer.vocabulary_size(), 259u);
  EXPECT_EQ(tokenizer.token_of(257), "aaaa");
  EXPECT_EQ(tokenizer.id_of("ab"), 258u);
  EXPECT_EQ(tokenizer.token_of(1000), std::nullopt);
}

TEST(Tokenizer, AMegabyteWithoutAnEndOfAWordTakesLessThanASecond) {
  const auto tokenizer =
      Tokenizer::parse(byte_tokenizer({{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}}).dump());
  const std::string text(1 << 20, 'a');
  const std::clock_t begin = std::clock();  // of the processor: others may use the machine
  std::vector<std::uint32_t> ids;
  tokenizer.append_ids(text, ids);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_EQ(ids.size(), text.size() / 8);
  EXPECT_GT(seconds, 0);
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(seconds, 1);
#endif
}

TEST(Tokenizer, ThreadsShareOneTokenizer) {
  const auto tokenizer =
      Tokenizer::parse(byte_tokenizer({{"t", "h"}, {"th", "e"}, {"\u0120", "the"}}).dump());
  std::string text;
  for (int i = 0; i < 2000; ++i) text += " the word" + std::to_string(i * 7919 % 997);
  const auto expected = tokenizer.encode(text).ids;
  std::vector<std::thread> threads;
  std::vector<std::vector<std::uint32_t>> found(4);
  for (auto& ids : found)
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        ids.clear();
        tokenizer.append_ids(text, ids);
      }
    });
  for (auto& thread : threads) thread.join();
  for (const auto& ids : found) EXPECT_EQ(ids, expected);
}

TEST(Tokenizer, NamesAComponentThatItDoesNotKnow) {
  auto tokenizer = byte_tokenizer({});
  tokenizer["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFQ"}}}}};
  EXPECT_THAT(message_of(tokenizer), HasSubstr("tokenizer.json: normalizer.normalizers[0]: unknown "
                                               "normalizer 'NFQ'; did you mean 'NFC'? Known are NFC, "));
  tokenizer = byte_tokenizer({});
  tokenizer["model"]["type"] = "Words";
  EXPECT_THAT(message_of(tokenizer), HasSubstr("model: unknown model 'Words'"));
  EXPECT_THAT(message_of(tokenizer), HasSubstr("Known are BPE, WordPiece, WordLevel, Unigram"));
  tokenizer = byte_tokenizer({});
  tokenizer["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "(?~b)"}}}, {"behavior", "Isolated"}};
  EXPECT_THAT(message_of(tokenizer),
              HasSubstr("pre_tokenizer.pattern: the pattern '(?~b)', at byte 2: (?~…) is not known"));
  tokenizer["pre_tokenizer"]["pattern"] = {{"Regex", "(a"}};
  EXPECT_THAT(message_of(tokenizer), HasSubstr("missing closing parenthesis"));
  tokenizer["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"String", "a"}}}, {"behavior", "Isolate"}};
  EXPECT_THAT(message_of(tokenizer), HasSubstr("unknown behavior 'Isolate'; did you mean 'Isolated'?"));
}

// Ids alone are found piece by piece where no token crosses a blank, and with offsets in whole lines.
TEST(Tokenizer, PiecesOfALineHaveTheTokensOfTheLine) {
  const auto tokenizer = [](std::vector<std::pair<std::string, std::string>> merges, const char* unknown) {
    json vocabulary = {{"a", 0}, {"b", 1}, {"\u2581", 2}, {"?", 3}};
    for (const auto& [first, second] : merges) vocabulary[first + second] = vocabulary.size();
    json model = {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}, {"fuse_unk", true}};
    if (unknown != nullptr) model["unk_token"] = unknown;
    const json blank = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}};
    return Tokenizer::parse(json{{"model", model}, {"normalizer", blank}}.dump());
  };
  const std::string b = "\u2581";
  base::Random random({1});
  for (const auto& loaded : {tokenizer({{b, "a"}, {b, b}, {b + b, b + "a"}, {"a", "b"}, {b, "ab"}}, "?"),
                             tokenizer({{b, b}, {"a", b}, {"a" + b, "b"}}, "?"),  // crosses
                             tokenizer({{b, b}, {b, "a"}}, nullptr)}) {           // x is left out
    for (int i = 0; i < 300; ++i) {
      std::string text;
      for (int length = 0; length < 12; ++length) text += "ab  x"[random.below(5)];
      std::vector<std::uint32_t> ids;
      loaded.append_ids(text, ids);
      EXPECT_EQ(ids, loaded.encode(text, {.offsets = true}).ids) << text;
    }
  }
}

// The numbers of the file do not count where they are not the model's, or the next.
TEST(Tokenizer, AddedTokensHaveTheIdsOfHuggingFace) {
  auto tokenizer = byte_tokenizer({});
  const auto token = [](int id, const char* content) { return json{{"id", id}, {"content", content}}; };
  tokenizer["added_tokens"] = {token(3, "<x>"), token(900, "<y>"), token(9, "a")};
  const auto loaded = Tokenizer::parse(tokenizer.dump());
  EXPECT_EQ(loaded.id_of("<x>"), 256u);
  EXPECT_EQ(loaded.id_of("<y>"), 257u);
  EXPECT_EQ(loaded.id_of("a"), Tokenizer::parse(byte_tokenizer({}).dump()).id_of("a"));
  EXPECT_EQ(loaded.vocabulary_size(), 258u);
  // White space that one has taken is none again.
  tokenizer["added_tokens"] = {
      {{"id", 256}, {"content", "\n"}, {"lstrip", true}, {"rstrip", true}, {"normalized", false}}};
  std::vector<std::uint32_t> ids;
  Tokenizer::parse(tokenizer.dump()).append_ids("\n \n\n ", ids);
  EXPECT_THAT(ids, ElementsAre(256));
}

json tokenizer_of(const json& model) {
  return {{"model", model}, {"pre_tokenizer", {{"type", "Whitespace"}}}};
}

// The ids and tokens are those of Python's tokenizers 0.23. What an id of two tokens becomes differs there
// from run to run.
TEST(Tokenizer, SeveralTokensMayHaveOneId) {
  const auto words = Tokenizer::parse(
      tokenizer_of({{"type", "WordLevel"},
                    {"vocab", {{"a", 0}, {"b", 0}, {"c", 1}, {"d", 1}, {"e", 0}, {"<unk>", 5}}},
                    {"unk_token", "<unk>"}})
          .dump());
  const auto encoding = words.encode("a b c d e z", {.offsets = true});
  EXPECT_THAT(encoding.ids, ElementsAre(0, 0, 1, 1, 0, 5));
  EXPECT_THAT(encoding.tokens, ElementsAre("a", "b", "c", "d", "e", "<unk>"));
  EXPECT_EQ(words.decode(encoding.ids), "a a c c a <unk>");
  EXPECT_EQ(words.id_of("e"), 0u);
  const auto pieces =
      Tokenizer::parse(tokenizer_of({{"type", "WordPiece"},
                                     {"vocab", {{"a", 0}, {"b", 0}, {"##c", 1}, {"ab", 2}, {"<unk>", 2}}},
                                     {"unk_token", "<unk>"}})
                           .dump());
  EXPECT_THAT(pieces.encode("a b ac bc ab z").ids, ElementsAre(0, 0, 0, 1, 0, 1, 2, 2));
  const auto merges = Tokenizer::parse(
      tokenizer_of({{"type", "BPE"},
                    {"vocab", {{"a", 0}, {"b", 0}, {"c", 1}, {"ab", 2}, {"bc", 2}, {"abc", 3}}},
                    {"merges", json::array({"a b", "b c", "ab c"})}})
          .dump());
  EXPECT_THAT(merges.encode("a b ab bc abc cab").ids, ElementsAre(0, 0, 2, 2, 3, 1, 2));
}

TEST(Tokenizer, TwoEntriesOfOneTokenAreRefused) {
  for (const char* entries : {R"("a": 0, "b": 1, "a": 2)", R"("a": 0, "\u0061": 0)"})
    EXPECT_THAT(thrown([&] {
                  Tokenizer::parse(base::str(
                      R"({"model": {"type": "WordLevel", "unk_token": "a", "vocab": {)", entries, "}}}"));
                }),
                HasSubstr("tokenizer.json: two entries of one object are called 'a'"));
}

// Hugging Face's tokenizers cut an ASCII text at each byte for such a token, and end with a panic for others.
TEST(Tokenizer, AnAddedTokenOfWhichNothingIsLeftIsFoundNowhere) {
  json tokenizer = tokenizer_of(
      {{"type", "WordLevel"}, {"vocab", {{"a", 0}, {"ab", 1}, {"<unk>", 2}}}, {"unk_token", "<unk>"}});
  tokenizer["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", "z"}}}, {"content", ""}};
  const auto token = [](int id, const char* content) {
    return json{{"id", id}, {"content", content}, {"normalized", true}, {"lstrip", true}, {"rstrip", true}};
  };
  tokenizer["added_tokens"] = {token(3, "z"), token(4, "zz"), token(5, "xx")};
  const auto loaded = Tokenizer::parse(tokenizer.dump());
  EXPECT_THAT(loaded.encode("ab  a é zab xx z").ids, ElementsAre(1, 0, 2, 1, 5));
  EXPECT_EQ(loaded.id_of("zz"), 4u);
  EXPECT_EQ(loaded.decode(std::vector<std::uint32_t>{0, 3, 5, 1}), "a  xx ab");
}

TEST(Tokenizer, SaysWhatIsWrongInAFile) {
  auto tokenizer = byte_tokenizer({{"a", "b"}});
  tokenizer["model"]["merges"].push_back({"a", "zz"});
  EXPECT_THAT(message_of(tokenizer), HasSubstr("model: merge 1: 'a', 'zz' or both together are not a token"));
  tokenizer = byte_tokenizer({});
  tokenizer["model"]["vocab"]["x"] = -1;
  EXPECT_THAT(message_of(tokenizer), HasSubstr("expected an id below 16777216 for the token 'x', found -1"));
  tokenizer = byte_tokenizer({});
  tokenizer["model"]["dropout"] = 0.1;
  EXPECT_THAT(message_of(tokenizer), HasSubstr("dropout leaves out merges at random"));
  EXPECT_THAT(thrown([] { Tokenizer::parse("[1"); }), HasSubstr("expected a tokenizer as JSON"));
  EXPECT_THAT(thrown([] { Tokenizer::load("/nowhere/tokenizer.json"); }),
              HasSubstr("/nowhere/tokenizer.json"));
}

TEST(Tokenizer, NamesTheByteThatIsNoUtf8AndTheIdThatIsNoToken) {
  const auto tokenizer = Tokenizer::parse(byte_tokenizer({}).dump());
  EXPECT_THAT(thrown([&] { tokenizer.encode("abc\xC3"); }), HasSubstr("found the byte 0xC3 at byte 3"));
  EXPECT_THAT(thrown([&] {
                tokenizer.decode({1, 256});
              }),
              HasSubstr("the id 256 at place 1 is not a token of tokenizer.json, whose "
                        "ids are below 256"));
  // Half of a character is U+FFFD.
  const auto half = tokenizer.encode("\u00e9").ids;
  EXPECT_EQ(tokenizer.decode(half.data(), 1), "\uFFFD");
}

TEST(Tokenizer, TruncationThatLeavesNoRoomIsAnError) {
  auto tokenizer = byte_tokenizer({});
  tokenizer["truncation"] = {{"max_length", 1}, {"strategy", "LongestFirst"}, {"stride", 0}};
  tokenizer["post_processor"] = {{"type", "BertProcessing"}, {"sep", {"[SEP]", 1}}, {"cls", {"[CLS]", 2}}};
  const auto loaded = Tokenizer::parse(tokenizer.dump());
  EXPECT_THAT(thrown([&] { loaded.encode("abc"); }),
              HasSubstr("max_length is 1, and the template alone adds 2 tokens"));
  EXPECT_EQ(loaded.encode("abc", {.limits = false}).ids.size(), 5u);
  EXPECT_EQ(loaded.encode("abc", {.special_tokens = false}).ids.size(), 1u);
}

TEST(Tokenizer, IsAFileOnTheDisk) {
  const auto temporary = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string& folder = temporary.path();
  base::value_or_throw(
      base::write_file_atomically(folder + "/tokenizer.json", byte_tokenizer({{"t", "h"}}).dump()));
  // [tokenizer]
  const auto tokenizer = sluice::text::Tokenizer::load(folder + "/tokenizer.json");
  const auto encoding = tokenizer.encode("In the beginning", {.offsets = true});
  const std::string text = tokenizer.decode(encoding.ids);
  std::vector<std::uint32_t> ids;  // many texts, one behind the other: the quickest way
  for (const char* const line : {"In the beginning", "was the word"}) tokenizer.append_ids(line, ids);
  // [end]
  EXPECT_EQ(text, "In the beginning");
  EXPECT_EQ(encoding.offsets[3], (Span{3, 5}));
  EXPECT_EQ(tokenizer.decode(ids), "In the beginningwas the word");
  EXPECT_EQ(Tokenizer::load(folder).fingerprint(), tokenizer.fingerprint());
}

TEST(Regex, MeansWhatRubyMeans) {
  const auto matches = [](const std::string& pattern, std::string_view text) {
    const auto regex = base::value_or_throw(Regex::compile(pattern));
    std::vector<std::string> found;
    base::value_or_throw(regex.each(text, [&](std::size_t begin, std::size_t end) {
      found.emplace_back(text.substr(begin, end - begin));
    }));
    return found;
  };
  EXPECT_THAT(matches("\\s+", "a\u180eb\u3000\u0085c"), ElementsAre("\u3000\u0085"));  // U+180E is no space
  EXPECT_THAT(matches("^.", "ab\ncd"), ElementsAre("a", "c"));
  EXPECT_THAT(matches("(?m:a.b)|c.d", "a\nb c\nd"), ElementsAre("a\nb"));
  EXPECT_THAT(matches("[\\w[-.]]+", "a-\u0300.b c"), ElementsAre("a-\u0300.b", "c"));
  EXPECT_THAT(matches("\\h+", "12afg"), ElementsAre("12af"));
  EXPECT_THAT(matches("x*", "axb"), ElementsAre("", "x", ""));
  EXPECT_THAT(matches("[]a]+", "a]b"), ElementsAre("a]"));
  EXPECT_THAT(matches("\\p{Han}+", "漢、字"), ElementsAre("漢", "字"));  // the script, without its extensions
  EXPECT_THAT(matches("[\\u3040-\\u309f&&[^い]]+", "あいう"), ElementsAre("あ", "う"));
  EXPECT_THAT(matches("[[:punct:]]+", "a$+、"), ElementsAre("$+、"));
  EXPECT_THAT(matches("\\w+|[\\W_]+", "a² _"), ElementsAre("a²", " _"));
  EXPECT_THAT(matches("[\\w]+", "a²"), ElementsAre("a"));
  EXPECT_THAT(matches("a{1,2}+", "aaaaa"), ElementsAre("aaaaa"));
  EXPECT_THAT(matches("(?i)ss|fi", "ßSSﬁ"), ElementsAre("ß", "SS", "ﬁ"));
  EXPECT_THAT(matches("\\Qa\\E", "QaE"), ElementsAre("QaE"));
  EXPECT_THAT(matches("a(?i)b|c", "aB aC C"), ElementsAre("aB", "aC"));
  EXPECT_FALSE(Regex::compile("(?~a)"));
  EXPECT_FALSE(Regex::compile("\\p{Foo}"));
}

TEST(Unicode, FindsTheFirstByteThatIsNoUtf8) {
  EXPECT_EQ(first_invalid_utf8("plain, \u00e9, \u20ac, \U0001F600"), std::string_view::npos);
  for (const std::string bad : {"\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\x80", "\xFF"})
    EXPECT_EQ(first_invalid_utf8("0123456789" + bad), 10u)
        << json(bad).dump(-1, ' ', true, json::error_handler_t::replace);
  EXPECT_EQ(replace_invalid_utf8("a\xE2\x82"
                                 "b\xF0\x9F\x98\xFF"),
            "a\uFFFDb\uFFFD\uFFFD");
}

}  // namespace
}  // namespace sluice::text
