#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/cli/data/test_program.h"
#include "sluice/cli/verbs.h"

namespace sluice::cli {
namespace {

using ::testing::HasSubstr;

test::Outcome sluice_program(std::vector<std::string> arguments) {
  return test::sluice_program({text_verb()}, std::move(arguments));
}

class TextVerbs : public ::testing::Test {
 protected:
  std::string path(const std::string& name) { return folder_.path(name); }
  std::string write(const std::string& name, const std::string& bytes) {
    base::value_or_throw(base::write_file_atomically(path(name), bytes));
    return path(name);
  }
  base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
};

TEST_F(TextVerbs, FromATextToTokensAndBack) {
  std::string lines;
  for (int i = 0; i < 50; ++i) lines += "in the beginning was the word\n";
  const std::string book = write("book.txt", lines), tokenizer = path("tokenizer.json");
  const auto made = sluice_program(
      {"text", "tokenizer", book, "--out", tokenizer, "--vocab-size", "280", "--special-token", "<|end|>"});
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(
      made.out,
      HasSubstr("350 words of 1.5 kB, 6 different: 274 tokens, 17 merges in "));  // the line's end is a word
  EXPECT_THAT(sluice_program({"text", "tokenizer", book, "--out", tokenizer}).err,
              HasSubstr("sluice text tokenizer: " + tokenizer + " is there: another --out"));

  const std::string line = write("line.txt", "the word <|end|>\n");
  const auto encoded = sluice_program({"text", "encode", tokenizer, line});
  EXPECT_EQ(encoded.status, 0) << encoded.err;
  const auto decoded = sluice_program({"text", "decode", tokenizer, write("ids.txt", encoded.out)});
  EXPECT_EQ(decoded.out, "the word \n") << decoded.err;
  EXPECT_EQ(sluice_program({"text", "decode", tokenizer, path("ids.txt"), "--special-tokens"}).out,
            "the word <|end|>\n");
  EXPECT_THAT(sluice_program({"text", "encode", tokenizer, line, "--json"}).out,
              HasSubstr("\"offsets\":[[0,"));
  const auto unknown = sluice_program({"text", "decode", tokenizer, write("far.txt", "1 9999\n")});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.err, HasSubstr("the id 9999 at place 1 is not a token of"));
  EXPECT_THAT(sluice_program({"text", "decode", tokenizer, write("words.txt", "1 x\n")}).err,
              HasSubstr("expected ids with spaces between them, found 'x'"));

  const auto packed =
      sluice_program({"text", "pack", book, path("out"), "--tokenizer", tokenizer, "--end-token", "<|end|>"});
  EXPECT_EQ(packed.status, 0) << packed.err;
  EXPECT_THAT(packed.out, HasSubstr("50 documents, "));
  EXPECT_THAT(packed.out, HasSubstr("tokens of 2 bytes in 1 file: "));
  const auto sound =
      sluice_program({"text", "verify", path("out") + "/train-*.bin", "--tokenizer", tokenizer});
  EXPECT_EQ(sound.status, 0) << sound.err;
  const auto unsound = sluice_program({"text", "verify", path("out") + "/train-*.bin", "--vocab-size", "1"});
  EXPECT_EQ(unsound.status, 1);
  EXPECT_THAT(unsound.err, HasSubstr("is not below the vocabulary's size 1"));
  EXPECT_EQ(sluice_program(
                {"text", "export", path("out") + "/train-*.bin", path("nano.bin"), "--format", "nanogpt"})
                .status,
            0);
  const auto imported = sluice_program(
      {"text", "import", path("nano.bin"), path("back"), "--format", "nanogpt", "--ends-with", "0"});
  EXPECT_EQ(imported.status, 0) << imported.err;
  for (const char* const name : {"/train-0000.bin", "/train-0000.idx"})
    EXPECT_EQ(base::value_or_throw(base::read_file(path("back") + name)),
              base::value_or_throw(base::read_file(path("out") + name)));
}

TEST_F(TextVerbs, LinesCorrespondAlsoWhereTheyAreEmpty) {
  const std::string tokenizer =
      write("tokenizer.json",
            R"({"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "[E]": 2}, "unk_token": "[E]"},
          "pre_tokenizer": {"type": "Whitespace"}, "added_tokens": [{"id": 2, "content": "[E]", "special": true}],
          "post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "[E]", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}},
            {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {"[E]": {"id": "[E]", "ids": [2], "tokens": ["[E]"]}}}})");
  for (const auto& [text, plain, special] :
       {std::tuple("\n\na b\n\r\n \nb", "\n\n0 1\n\n\n1\n", "2\n2\n0 1 2\n2\n2\n1 2\n"),
        std::tuple("\n", "\n", "2\n"), std::tuple("", "", ""),
        std::tuple("a\n\n\n", "0\n\n\n", "0 2\n2\n2\n")}) {
    const std::string file = write("lines.txt", text);
    EXPECT_EQ(sluice_program({"text", "encode", tokenizer, file, "--no-special-tokens"}).out, plain) << text;
    EXPECT_EQ(sluice_program({"text", "encode", tokenizer, file}).out, special) << text;
    const auto json = sluice_program({"text", "encode", tokenizer, file, "--json"}).out;
    EXPECT_EQ(std::count(json.begin(), json.end(), '\n'),
              std::count(special, special + std::strlen(special), '\n'));
  }
  EXPECT_EQ(sluice_program({"text", "decode", tokenizer, write("ids.txt", "\n0 1\n\n2\n")}).out,
            "\na b\n\n\n");
}

TEST_F(TextVerbs, MistakesAreAnsweredInWords) {
  write("empty.txt", "");
  write("a.txt", "the cat sat\n");
  const std::string made = path("small.json");
  EXPECT_EQ(sluice_program({"text", "tokenizer", path("a.txt"), "--out", made, "--vocab-size", "260"}).status,
            0);
  EXPECT_THAT(sluice_program({"text", "pack", path("empty.txt"), path("none"), "--tokenizer", made}).err,
              HasSubstr("empty.txt: the input has no documents"));
  EXPECT_FALSE(base::path_exists(path("none")));
  EXPECT_THAT(sluice_program({"text", "pack", "a.txt", path("out"), "--tokenizer", "/nowhere.json"}).err,
              HasSubstr("sluice text pack: cannot open /nowhere.json"));
  const auto unknown = sluice_program({"text", "import", "a.bin", path("out"), "--format", "gpt"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--format"));
  EXPECT_THAT(sluice_program({"text", "verify", "a.bin"}).err,
              HasSubstr("expected --tokenizer or --vocab-size"));
}

}  // namespace
}  // namespace sluice::cli
