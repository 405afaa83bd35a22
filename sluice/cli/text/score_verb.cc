// sluice text score
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/join.h"
#include "sluice/cli/data/common.h"
#include "sluice/cli/text/common.h"
#include "sluice/cli/text/model_flags.h"
#include "sluice/cli/verbs.h"
#include "sluice/generate/score.h"
#include "sluice/text/json_object.h"
#include "sluice/text/token_file.h"

namespace sluice::cli {
namespace {

using Ids = std::vector<std::uint32_t>;

struct ScoreFlags {
  ModelFlags model;
  std::vector<std::string> files;
  std::string tokens, choices, out;
  text::InputOptions input = {.sample_by = text::SampleBy::kDocument};
  std::int64_t batch = 8, length = 0, stride = 0;
  bool no_begin = false, json = false;
};

// Sums over one document or all of them.
struct Sums {
  double nats = 0;  // the sum of -ln(probability)
  std::uint64_t tokens = 0, bytes = 0;

  nlohmann::ordered_json json() const {
    const double each = nats / static_cast<double>(tokens);
    nlohmann::ordered_json line = {
        {"tokens", tokens}, {"nats", nats}, {"nats_per_token", each}, {"perplexity", std::exp(each)}};
    if (bytes > 0) {
      line["bytes"] = bytes;
      line["bits_per_byte"] = nats / std::numbers::ln2 / static_cast<double>(bytes);
    }
    return line;
  }
};

// The output of --out, one line for each document or question.
class Lines {
 public:
  static base::Result<Lines> open(const std::string& path) {
    Lines lines;
    if (path.empty()) return lines;
    SLUICE_TRY(auto file, base::AtomicFile::create(path));
    lines.file_ = std::make_unique<base::AtomicFile>(std::move(file));
    return lines;
  }
  base::Status add(const nlohmann::ordered_json& line) {
    return file_ == nullptr ? base::Status() : file_->write(line.dump() + "\n");
  }
  base::Status finish() { return file_ == nullptr ? base::Status() : file_->commit(); }

 private:
  std::unique_ptr<base::AtomicFile> file_;
};

// Scores all tokens of documents, in passages that the model can read.
class Documents {
 public:
  Documents(const ScoreFlags& flags, const models::LanguageOptions& options, models::LanguageModel& model)
      : scorer_(model, flags.batch),
        begin_(flags.no_begin ? -1 : options.begin),
        length_(flags.length > 0 ? flags.length : std::min<std::int64_t>(options.positions, 1024)),
        stride_(flags.stride > 0 ? flags.stride : length_) {
    if (length_ > options.positions)
      throw_error(Code::kInvalidArgument,
                  base::str("--length ", length_, ": the model's positions serve ", options.positions));
  }
  void add(Ids ids, std::uint64_t bytes) {
    // The first token gets a score only if a token is in front of it.
    if (begin_ >= 0 && (ids.empty() || ids[0] != begin_))
      ids.insert(ids.begin(), static_cast<std::uint32_t>(begin_));
    for (Passage& passage : passages_of(ids, length_, stride_)) {
      scorer_.add(std::move(passage));
      document_of_.push_back(documents_.size());
    }
    documents_.push_back({0, ids.empty() ? 0 : ids.size() - 1, bytes});
    progress_.show("scored documents", static_cast<std::int64_t>(documents_.size()),
                   static_cast<std::int64_t>(documents_.size()));
  }
  std::vector<Sums> finish() {
    const std::vector<double> sums = scorer_.finish();
    for (std::size_t i = 0; i < sums.size(); ++i) documents_[document_of_[i]].nats -= sums[i];
    progress_.clear();
    return std::move(documents_);
  }

 private:
  PassageScorer scorer_;
  const std::int64_t begin_, length_, stride_;
  std::vector<std::size_t> document_of_;  // [passage]
  std::vector<Sums> documents_;
  Progress progress_;
};

base::Status add_texts(const ScoreFlags& flags, const text::Tokenizer& tokenizer, Documents& documents) {
  SLUICE_TRY(const auto files, expand_arguments(flags.files));
  for (const std::string& file : files) {
    SLUICE_TRY(const auto reader, text::open_documents(file, flags.input));
    for (text::RawDocument document;;) {
      SLUICE_TRY(const bool more, reader->next(document));
      if (!more) break;
      SLUICE_TRY(const std::string words, text::text_of(std::move(document), file, flags.input));
      documents.add(beginning(tokenizer, words), words.size());
    }
  }
  return {};
}

base::Status add_tokens(const ScoreFlags& flags, Documents& documents) {
  const auto set = text::TokenSet::open(flags.tokens);
  std::optional<text::Tokenizer> tokenizer;
  if (has_tokenizer(flags.model)) {
    SLUICE_TRY(tokenizer, model_tokenizer(flags.model));
  }
  for (std::size_t i = 0; i < set.documents(); ++i) {
    Ids ids = set.document(i);
    const std::uint64_t bytes = tokenizer ? tokenizer->decode(ids).size() : 0;
    documents.add(std::move(ids), bytes);
  }
  return {};
}

base::Status score_documents(const ScoreFlags& flags, const models::LanguageOptions& options) {
  std::optional<text::Tokenizer> tokenizer;
  if (flags.tokens.empty()) {
    SLUICE_TRY(tokenizer, model_tokenizer(flags.model));
  }
  SLUICE_TRY(Lines lines, Lines::open(flags.out));
  const auto model = ready_model(flags.model);
  Documents documents(flags, options, *model);
  SLUICE_OK(tokenizer ? add_texts(flags, *tokenizer, documents) : add_tokens(flags, documents));
  Sums all;
  const std::vector<Sums> each = documents.finish();
  for (const Sums& one : each) {
    all.nats += one.nats;
    all.tokens += one.tokens;
    all.bytes += one.bytes;
    SLUICE_OK(lines.add(one.json()));
  }
  if (all.tokens == 0)
    return base::fail(Code::kInvalidArgument, "expected documents with tokens to score, found none in ",
                      counted(static_cast<std::int64_t>(each.size()), "document"));
  SLUICE_OK(lines.finish());
  nlohmann::ordered_json report = all.json();
  if (flags.json) {
    report["documents"] = each.size();
    std::printf("%s\n", report.dump().c_str());
    return {};
  }
  std::printf("%s, %s: %.6g nats, %.4f a token, perplexity %.4f",
              counted(static_cast<std::int64_t>(each.size()), "document").c_str(),
              counted(static_cast<std::int64_t>(all.tokens), "token").c_str(), all.nats,
              report["nats_per_token"].get<double>(), report["perplexity"].get<double>());
  if (all.bytes > 0) std::printf(", %.4f bits a byte", report["bits_per_byte"].get<double>());
  std::printf("\n");
  return {};
}

struct Question {
  std::vector<std::size_t> passages;  // [choice]
  std::vector<std::size_t> bytes;     // [choice]
  std::size_t answer = 0;
};

base::Result<std::vector<std::string>> choices_of(const text::JsonObject& line) {
  SLUICE_TRY(const text::Json* const list, line.list("choices"));
  std::vector<std::string> choices;
  for (const text::Json& choice : *list) {
    if (!choice.is_string() || choice.get<std::string>().empty())
      return line.fail("\"choices\" must be texts that are not empty, found ", choice.dump());
    choices.push_back(choice.get<std::string>());
  }
  if (choices.size() < 2) return line.fail("expected two or more \"choices\", found ", choices.size());
  return choices;
}

// Returns the choice after its prompt. Spaces at the prompt's end move to the choice: tokens begin with them.
Passage passage_of(const text::Tokenizer& tokenizer, const models::LanguageOptions& options,
                   const std::string& prompt, const std::string& choice) {
  const std::size_t end = prompt.find_last_not_of(' ') + 1;
  const std::size_t before = beginning(tokenizer, prompt.substr(0, end)).size();
  Passage passage = {beginning(tokenizer, prompt + choice), before};
  if (passage.first == 0 && options.begin >= 0) {
    passage.ids.insert(passage.ids.begin(), static_cast<std::uint32_t>(options.begin));
    passage.first = 1;
  }
  return passage;
}

// Removes the beginning of a prompt that is too long; returns whether it did.
bool shorten(Passage& passage, std::int64_t positions) {
  const auto longest = static_cast<std::size_t>(positions) + 1;
  if (passage.ids.size() <= longest) return false;
  const std::size_t cut = std::min(passage.ids.size() - longest, passage.first - 1);
  passage.ids.erase(passage.ids.begin(), passage.ids.begin() + static_cast<std::ptrdiff_t>(cut));
  passage.first -= cut;
  return true;
}

// Returns the index of the largest value, the first one of equal values.
std::size_t largest(const std::vector<double>& values) {
  return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

base::Status score_choices(const ScoreFlags& flags, const models::LanguageOptions& options) {
  SLUICE_TRY(const text::Tokenizer tokenizer, model_tokenizer(flags.model));
  SLUICE_TRY(Lines lines, Lines::open(flags.out));
  SLUICE_TRY(const auto reader, text::open_documents(flags.choices, {.format = text::InputFormat::kText}));
  const auto model = ready_model(flags.model);
  PassageScorer scorer(*model, flags.batch);
  std::vector<Question> questions;
  std::int64_t cut = 0;
  for (text::RawDocument document;;) {
    SLUICE_TRY(const bool more, reader->next(document));
    if (!more) break;
    const std::string where = base::str(flags.choices, ", the line at byte ", document.begin);
    const auto json = base::parse_json(document.bytes);
    SLUICE_TRY(const auto line, text::JsonObject::of(json, where));
    SLUICE_TRY(const std::string prompt, line.text("prompt"));
    SLUICE_TRY(const auto choices, choices_of(line));
    Question question;
    SLUICE_TRY(const std::int64_t answer,
               line.number("answer", 0, static_cast<std::int64_t>(choices.size()) - 1));
    question.answer = static_cast<std::size_t>(answer);
    for (const std::string& choice : choices) {
      Passage passage = passage_of(tokenizer, options, prompt, choice);
      if (passage.first == 0 || passage.first >= passage.ids.size())
        return line.fail("the choice '", choice, "' adds no tokens after the prompt");
      cut += shorten(passage, options.positions) ? 1 : 0;
      question.passages.push_back(scorer.add(std::move(passage)));
      question.bytes.push_back(choice.size());
    }
    questions.push_back(std::move(question));
  }
  if (questions.empty())
    return base::fail(
        Code::kInvalidArgument, flags.choices,
        R"(: expected lines such as {"prompt": "…", "choices": ["…", "…"], "answer": 0}, found none)");
  const std::vector<double> sums = scorer.finish();
  std::size_t right = 0, right_by_length = 0;
  for (const Question& question : questions) {
    std::vector<double> likelihoods, by_length;
    for (std::size_t i = 0; i < question.passages.size(); ++i) {
      likelihoods.push_back(sums[question.passages[i]]);
      by_length.push_back(likelihoods.back() / static_cast<double>(question.bytes[i]));
    }
    right += largest(likelihoods) == question.answer ? 1 : 0;
    right_by_length += largest(by_length) == question.answer ? 1 : 0;
    SLUICE_OK(
        lines.add({{"log_likelihoods", likelihoods}, {"by_length", by_length}, {"answer", question.answer}}));
  }
  SLUICE_OK(lines.finish());
  const auto of_all = [&](std::size_t count) {
    return static_cast<double>(count) / static_cast<double>(questions.size());
  };
  if (cut > 0)
    std::fprintf(stderr, "%s of prompts that are longer than the model's positions were cut in front\n",
                 counted(cut, "choice").c_str());
  if (flags.json) {
    std::printf("%s\n", nlohmann::ordered_json{{"questions", questions.size()},
                                               {"accuracy", of_all(right)},
                                               {"accuracy_by_length", of_all(right_by_length)},
                                               {"cut", cut}}
                            .dump()
                            .c_str());
    return {};
  }
  std::printf("%s: accuracy %.4f, by likelihood a byte %.4f\n",
              counted(static_cast<std::int64_t>(questions.size()), "question").c_str(), of_all(right),
              of_all(right_by_length));
  return {};
}

base::Status score(const ScoreFlags& flags) {
  const int kinds =
      (flags.files.empty() ? 0 : 1) + (flags.tokens.empty() ? 0 : 1) + (flags.choices.empty() ? 0 : 1);
  if (kinds != 1)
    return base::fail(Code::kInvalidArgument, "expected one of FILES, --tokens and --choices, found ", kinds);
  SLUICE_TRY(const models::LanguageOptions options, model_options(flags.model));
  check_scores(options);
  return flags.choices.empty() ? score_documents(flags, options) : score_choices(flags, options);
}

}  // namespace

Verb text_score_verb() {
  auto flags = std::make_shared<ScoreFlags>();
  return {.name = "score",
          .help = "How likely a language model finds texts: perplexity, or which of several choices",
          .footer =
              "Examples: sluice text score --model run/best book.txt\n"
              "          sluice text score --model run/best --tokens 'tokens/test-*.bin'\n"
              "          sluice text score --model gpt2 --choices questions.jsonl\n"
              "A line of --choices is {\"prompt\": \"…\", \"choices\": [\"…\", \"…\"], \"answer\": 0}; a "
              "choice begins with its space.",
          .add_flags =
              [flags](CLI::App& app) {
                app.add_option("FILES", flags->files, kTextsHelp);
                add_model_flags(app, flags->model);
                app.add_option("--tokens", flags->tokens,
                               "Token files instead of texts: paths of .bin files, braces, globs");
                app.add_option(
                    "--choices", flags->choices,
                    "Read JSON lines with a prompt, choices and the number of the right choice, from 0");
                add_input_flags(app, flags->input, /*sample_by=*/true);
                app.add_option("--batch-size", flags->batch, "Passages that are read at a time")
                    ->check(kAboveZero);
                app.add_option("--length", flags->length,
                               "Tokens of a passage; 0: the model's positions, at most 1024")
                    ->check(kZeroOrMore);
                app.add_option(
                       "--stride", flags->stride,
                       "Tokens from one passage of a document to the next; 0: the length, below it all "
                       "but the first see what is before them")
                    ->check(kZeroOrMore);
                app.add_flag("--no-begin", flags->no_begin,
                             "Do not put the model's begin token in front of a document that lacks it");
                app.add_option("--out", flags->out, "A JSON line for each document or question");
                app.add_flag("--json", flags->json, "As one JSON object");
              },
          .run = guarded_text("score", [flags] { return score(*flags); })};
}

}  // namespace sluice::cli
