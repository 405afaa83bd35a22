#include "sluice/text/tools/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <nlohmann/json.hpp>

#include "sluice/base/files/file.h"
#include "sluice/base/random.h"
#include "sluice/data/test_support.h"
#include "sluice/text/test_tokenizer.h"
#include "sluice/text/token_file.h"
#include "sluice/text/tools/bpe_trainer.h"

namespace sluice::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string gzip(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

class Pack : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) {
    folder_.write(name, bytes);
    return folder_.path(name);
  }
  TokenPackOptions options(std::vector<std::string> files) {
    TokenPackOptions options;
    options.files = std::move(files);
    options.set.folder = folder_.path("out");
    options.workers = 2;
    return options;
  }
  std::vector<std::string> texts() {
    const auto set = TokenSet::open(folder_.path("out/train-*.bin"));
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < set.documents(); ++i) texts.push_back(tokenizer_.decode(set.document(i)));
    return texts;
  }
  std::string error_of(const TokenPackOptions& options) {
    const auto report = pack_tokens(tokenizer_, options);
    return report ? "no error" : report.error().what();
  }

  data::test::Folder folder_;
  const Tokenizer tokenizer_ = Tokenizer::parse(test::byte_tokenizer({{"t", "h"}, {"th", "e"}}).dump());
};

TEST_F(Pack, CutsTextIntoLinesParagraphsAndFiles) {
  const std::string file = write("a.txt", "one\r\n\nthe two\nthe three\n\n\nfour");
  auto wanted = options({file});
  EXPECT_EQ(base::value_or_throw(pack_tokens(tokenizer_, wanted)).documents, 4u);
  EXPECT_THAT(texts(), ElementsAre("one", "the two", "the three", "four"));
  wanted.set.overwrite = true;
  wanted.input.sample_by = SampleBy::kParagraph;
  base::value_or_throw(pack_tokens(tokenizer_, wanted));
  EXPECT_THAT(texts(), ElementsAre("one", "the two\nthe three", "four"));
  wanted.input.sample_by = SampleBy::kDocument;
  wanted.end = '!';
  base::value_or_throw(pack_tokens(tokenizer_, wanted));
  EXPECT_THAT(texts(), ElementsAre("one\r\n\nthe two\nthe three\n\n\nfour!"));  // ids are bytes
}

TEST_F(Pack, ReadsJsonLinesAndShardsPackedOrNot) {
  const std::string lines = "{\"text\": \"the \\u00e9\", \"n\": 1}\n{\"text\": \"\"}\n{\"text\": \"b\"}\n";
  const std::string plain = write("a.jsonl", lines), packed = write("b.jsonl.gz", gzip(lines));
  write("c.tar", data::test::archive({{"0.txt", "from a shard"}, {"0.cls", "1"}, {"1.txt", "and more"}}));
  base::value_or_throw(pack_tokens(tokenizer_, options({plain, packed, folder_.path("c.tar")})));
  EXPECT_THAT(texts(), ElementsAre("the \u00e9", "", "b", "the \u00e9", "", "b", "from a shard", "and more"));
}

TEST_F(Pack, SaysWhereAFileIsWrong) {
  std::string file = write("a.txt", "good\nbad \xFF byte\n");
  EXPECT_EQ(error_of(options({file})),
            file +
                ": expected UTF-8, found the byte 0xFF at byte 9, which no character has "
                "there; convert the text (iconv -t UTF-8) first");
  file = write("a.jsonl", "{\"text\": \"x\"}\n{\"content\": \"y\", \"n\": 1}\n");
  EXPECT_THAT(
      error_of(options({file})),
      HasSubstr(file + ": the JSON object at byte 14 has no text 'text'; its texts are content (--field"));
  file = write("b.jsonl", "{\"text\": \"x\"}\nnonsense\n");
  EXPECT_THAT(error_of(options({file})), HasSubstr(file + ": expected a JSON object on the line at byte 14"));
  file = write("long.txt", "short\n" + std::string(kMaxDocument + 3, 'x'));
  EXPECT_THAT(error_of(options({file})),
              HasSubstr(file + ": a line that begins at byte 6 is longer than 64 MiB"));
  EXPECT_THAT(error_of(options({folder_.path("none.txt")})), HasSubstr("none.txt"));
}

TEST_F(Pack, WithoutDocumentsNothingIsWritten) {
  const std::string empty = write("empty.txt", ""), blank = write("blank.txt", "\n\n"),
                    full = write("a.txt", "one\n");
  EXPECT_EQ(error_of(options({empty})), empty + ": the input has no documents: no token files are written");
  EXPECT_FALSE(base::path_exists(folder_.path("out")));
  EXPECT_THAT(error_of(options({empty, blank})),
              HasSubstr("empty.txt and 1 more: the input has no documents"));
  // A set that is there stays, whatever was to replace it.
  base::value_or_throw(pack_tokens(tokenizer_, options({full})));
  auto other = options({empty});
  other.set.overwrite = true;
  EXPECT_THAT(error_of(other), HasSubstr("the input has no documents"));
  EXPECT_THAT(texts(), ElementsAre("one"));
  EXPECT_FALSE(base::path_exists(folder_.path("out/.train.partial")));
}

TEST_F(Pack, RefusesToReplaceASet) {
  const std::string file = write("a.txt", "one\n");
  base::value_or_throw(pack_tokens(tokenizer_, options({file})));
  EXPECT_THAT(error_of(options({file})), HasSubstr("train.json is there: another --prefix"));
}

// Killed after any number of files, it goes on there and ends with the same bytes.
TEST_F(Pack, GoesOnWhereItWasKilled) {
  std::string text;
  base::Random random({1});
  for (int i = 0; i < 30'000; ++i) text += "the line " + std::to_string(random.below(1'000'000)) + "\n";
  const std::string first = write("a.txt", text), second = write("b.txt.gz", gzip(text));
  auto wanted = options({first, second});
  wanted.set.shard_tokens = 60'000;
  wanted.set.folder = folder_.path("whole");
  const auto whole = base::value_or_throw(pack_tokens(tokenizer_, wanted));
  ASSERT_GT(whole.files.size(), 10u);
  for (const std::size_t after : {std::size_t{1}, whole.files.size() / 2, whole.files.size() - 1}) {
    wanted.set.folder = folder_.path("killed" + std::to_string(after));
    const pid_t child = fork();
    if (child == 0) {
      auto slow = wanted;
      slow.progress = [&](std::uint64_t, std::uint64_t tokens) {
        if (tokens > after * 62'000) kill(getpid(), SIGKILL);
      };
      static_cast<void>(pack_tokens(tokenizer_, slow));
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
    EXPECT_FALSE(base::path_exists(wanted.set.folder + "/train.json"));
    const auto report = base::value_or_throw(pack_tokens(tokenizer_, wanted));
    EXPECT_GE(report.continued, after == 1 ? 1u : after / 2);
    EXPECT_EQ(report.tokens, whole.tokens);
    for (const char* const name : {"/train-0000.bin", "/train-0003.idx", "/train-0010.bin", "/train.json"})
      EXPECT_EQ(base::value_or_throw(base::read_file(wanted.set.folder + name)),
                base::value_or_throw(base::read_file(folder_.path("whole") + name)))
          << name;
    EXPECT_FALSE(base::path_exists(wanted.set.folder + "/.train.partial"));
  }
}

TEST_F(Pack, AStoppedRunOfSomethingElseIsNotContinued) {
  const std::string file = write("a.txt", "one\ntwo\nthree\n");
  auto wanted = options({file});
  folder_.write(
      "out/.train.partial/state.json",
      R"({"made_of": "x", "files": [{"name": "train-0000", "documents": 1, "tokens": 1}], "at": null, "complete": false})");
  EXPECT_THAT(error_of(wanted),
              HasSubstr(".train.partial was left by a stopped run with other files or settings"));
  wanted.set.overwrite = true;
  EXPECT_EQ(base::value_or_throw(pack_tokens(tokenizer_, wanted)).documents, 3u);
}

TEST_F(Pack, LearnsTheSameMergesWithAnyNumberOfThreads) {
  std::string text;
  base::Random random({2});
  for (int i = 0; i < 20'000; ++i)
    text += "word" + std::to_string(random.below(300)) + (i % 11 == 0 ? "\n" : " ");
  BpeTraining training;
  training.files = {write("a.txt", text)};
  training.vocabulary_size = 500;
  training.special_tokens = {"<|end|>"};
  training.workers = 1;
  const auto one = base::value_or_throw(train_bpe(training));
  training.workers = 4;
  EXPECT_EQ(base::value_or_throw(train_bpe(training)).json, one.json);
  EXPECT_EQ(one.forgotten, 0u);
  const auto learnt = Tokenizer::parse(one.json);
  EXPECT_EQ(learnt.vocabulary_size(), static_cast<std::size_t>(one.tokens));
  EXPECT_EQ(learnt.decode(learnt.encode("word12 <|end|>").ids, false), "word12 <|end|>");
  training.memory = 8000;
  EXPECT_GT(base::value_or_throw(train_bpe(training)).forgotten, 0u);
  training.vocabulary_size = 100;
  const auto few = train_bpe(training);
  ASSERT_FALSE(few);
  EXPECT_THAT(few.error().what(), HasSubstr("a vocabulary of 100 tokens: expected 257"));
}

}  // namespace
}  // namespace sluice::text
