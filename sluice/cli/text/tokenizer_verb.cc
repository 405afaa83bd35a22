// sluice text tokenizer
#include <cstdio>
#include <memory>

#include "sluice/base/files/file.h"
#include "sluice/cli/data/common.h"
#include "sluice/cli/text/common.h"
#include "sluice/text/tools/bpe_trainer.h"

namespace sluice::cli {
namespace {

struct TokenizerFlags {
  std::vector<std::string> files;
  std::string out = "tokenizer.json";
  std::int64_t memory = 2048;  // MiB
  bool overwrite = false;
  text::BpeTraining training;
};

base::Status make_tokenizer(TokenizerFlags& flags) {
  if (!flags.overwrite && base::path_exists(flags.out))
    return base::fail(Code::kAlreadyExists, flags.out,
                      " is there: another --out, or --overwrite to replace it");
  Progress progress;
  auto& training = flags.training;
  SLUICE_TRY(training.files, expand_arguments(flags.files));
  training.memory = static_cast<std::uint64_t>(flags.memory) << 20;
  training.progress = [&](std::uint64_t bytes) {
    progress.show("counted words of bytes", static_cast<std::int64_t>(bytes),
                  static_cast<std::int64_t>(bytes));
  };
  SLUICE_TRY(const text::BpeReport report, text::train_bpe(training));
  progress.clear();
  SLUICE_OK(base::make_directories(base::parent_path(flags.out)));
  SLUICE_OK(base::write_file_atomically(flags.out, report.json));
  std::printf("%s of %s, %s different: %s, %s in %s\n",
              counted(static_cast<std::int64_t>(report.words), "word").c_str(),
              size_text(report.bytes).c_str(), grouped(static_cast<std::int64_t>(report.distinct)).c_str(),
              counted(report.tokens, "token").c_str(),
              counted(static_cast<std::int64_t>(report.merges), "merge").c_str(), flags.out.c_str());
  if (report.tokens < training.vocabulary_size)
    std::printf("fewer than the %s that --vocab-size asks for: the text has no more pairs%s\n",
                grouped(training.vocabulary_size).c_str(),
                training.min_frequency > 0 ? " that are frequent enough" : "");
  if (report.forgotten > 0)
    std::printf("words seen at most %s were forgotten to stay within --max-memory: rare merges may differ\n",
                counted(static_cast<std::int64_t>(report.forgotten), "time").c_str());
  return {};
}

}  // namespace

Verb tokenizer_verb() {
  auto flags = std::make_shared<TokenizerFlags>();
  return {.name = "tokenizer",
          .help = "Learn a tokenizer (byte-level BPE) from texts",
          .footer =
              "Writes a tokenizer.json that Hugging Face's tokenizers loads too; the merges are the "
              "same as its trainer learns\n"
              "from the same text.\n"
              "Examples: sluice text tokenizer book.txt --vocab-size 8000 --special-token "
              "'<|endoftext|>'\n"
              "          sluice text tokenizer 'web-{00..15}.jsonl.zst' --vocab-size 50000 --out "
              "web.json",
          .add_flags =
              [flags](CLI::App& app) {
                auto& training = flags->training;
                app.add_option("FILES", flags->files, kTextsHelp)->required();
                app.add_option("--out", flags->out, "The file that is written")->capture_default_str();
                app.add_option("--vocab-size", training.vocabulary_size,
                               "Tokens, the 256 bytes and special ones included")
                    ->check(kAboveZero)
                    ->capture_default_str();
                app.add_option("--special-token", training.special_tokens,
                               "A token that no text is made of, such as '<|endoftext|>' (may be repeated)")
                    ->allow_extra_args(false);
                app.add_option("--min-frequency", training.min_frequency,
                               "How often a pair must be there to be merged")
                    ->capture_default_str();
                app.add_option("--pattern", training.pattern,
                               "How texts are cut into words: gpt2, llama3, or a regular expression")
                    ->capture_default_str();
                add_input_flags(app, training.input, /*sample_by=*/false);
                app.add_option("--max-memory", flags->memory, "MiB that the table of words may take")
                    ->check(between(std::int64_t{1}, std::int64_t{1} << 20))
                    ->capture_default_str();
                app.add_option("--workers", training.workers,
                               "Threads that count words (0: one for each core)")
                    ->check(kZeroOrMore)
                    ->capture_default_str();
                app.add_flag("--overwrite", flags->overwrite, "Replace the file if it is there");
              },
          .run = guarded_text("tokenizer", [flags] { return make_tokenizer(*flags); })};
}

}  // namespace sluice::cli
