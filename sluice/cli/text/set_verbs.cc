// sluice text pack, verify, import, export
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/cli/data/common.h"
#include "sluice/cli/text/common.h"
#include "sluice/text/set_facts.h"
#include "sluice/text/token_file.h"
#include "sluice/text/tokenizer.h"
#include "sluice/text/tools/pack.h"

// jemalloc's function, in programs that use it.
extern "C" int mallctl(const char* name, void* old_value, size_t* old_size, void* new_value, size_t new_size)
    __attribute__((weak));

namespace sluice::cli {
namespace {

// Long documents would leave hundreds of megabytes in the program's allocator, which keeps freed memory
// because that is good for training (apps/allocator.cc).
void give_freed_memory_back() {
  if (mallctl == nullptr) return;
  ssize_t milliseconds = 0;
  for (const char* const arenas :
       {"arenas.dirty_decay_ms", "arena.4096.dirty_decay_ms"})  // new arenas, and all existing ones
    mallctl(arenas, nullptr, nullptr, &milliseconds, sizeof milliseconds);
}

constexpr char kTokensHelp[] =
    "Token files: paths of .bin files, braces, globs, @file, several joined by '::'";

void add_set_flags(CLI::App& app, text::TokenSetOptions& set) {
  app.add_option("OUT", set.folder, "Folder for the token files (made when missing)")->required();
  app.add_option("--prefix", set.prefix, "Files are named PREFIX-0000.bin and PREFIX-0000.idx …")
      ->capture_default_str();
  app.add_option("--shard-tokens", set.shard_tokens, "Tokens after which the next file begins")
      ->check(kAboveZero)
      ->capture_default_str();
  app.add_flag("--overwrite", set.overwrite, "Replace a set of the same prefix");
}

void print_set(const text::TokenSetReport& report) {
  std::printf("%s, %s of %d bytes in %s%s%s\n",
              counted(static_cast<std::int64_t>(report.documents), "document").c_str(),
              counted(static_cast<std::int64_t>(report.tokens), "token").c_str(), report.width,
              counted(static_cast<std::int64_t>(report.files.size()), "file").c_str(),
              report.files.empty() ? "" : ": ",
              report.files.empty() ? "" : (report.files.front() + ".bin …").c_str());
  if (report.continued > 0)
    std::printf("%s of the files were there from a run that was stopped\n",
                grouped(static_cast<std::int64_t>(report.continued)).c_str());
}

struct PackFlags {
  std::string tokenizer, input, end;
  text::TokenPackOptions options;
};

base::Status pack(PackFlags& flags) {
  give_freed_memory_back();
  const auto tokenizer = text::Tokenizer::load(flags.tokenizer);
  auto& options = flags.options;
  SLUICE_TRY(options.files, expand_arguments({flags.input}));
  if (!flags.end.empty()) {
    options.end = tokenizer.id_of(flags.end);
    if (!options.end)
      return base::fail(Code::kInvalidArgument, "--end-token '", flags.end, "' is not a token of ",
                        flags.tokenizer, ": expected one such as '<|endoftext|>'");
  }
  const std::string kept = base::join_path(options.set.folder, "tokenizer.json");
  const bool had = base::path_exists(kept);
  SLUICE_OK(text::keep_tokenizer(flags.tokenizer, options.set.folder, options.set.overwrite));
  Progress progress;
  options.progress = [&](std::uint64_t documents, std::uint64_t) {
    progress.show("packed documents", static_cast<std::int64_t>(documents),
                  static_cast<std::int64_t>(documents));
  };
  const auto report = text::pack_tokens(tokenizer, options);
  progress.clear();
  if (!report && report.error().code() == Code::kNotFound && !had) {  // nothing to read: keep nothing
    SLUICE_OK(base::remove_file(kept));
    std::error_code ignored;
    std::filesystem::remove(options.set.folder, ignored);
  }
  if (!report) return tl::unexpected<Error>(report.error());
  print_set(*report);
  return {};
}

struct VerifyFlags {
  std::string files, tokenizer;
  std::uint64_t vocabulary = 0;
};

base::Status verify(const VerifyFlags& flags) {
  if (flags.tokenizer.empty() == (flags.vocabulary == 0))
    return base::fail(Code::kInvalidArgument,
                      "expected --tokenizer or --vocab-size, and not both: ids must be below it");
  const std::size_t vocabulary =
      flags.vocabulary > 0 ? flags.vocabulary : text::Tokenizer::load(flags.tokenizer).vocabulary_size();
  const auto set = text::TokenSet::open(flags.files);
  for (const text::TokenFile& file : set.files()) {
    file.check(vocabulary);
    std::printf("%20s  %20s  %s.bin\n",
                counted(static_cast<std::int64_t>(file.documents()), "document").c_str(),
                counted(static_cast<std::int64_t>(file.tokens()), "token").c_str(), file.name().c_str());
  }
  std::printf("%20s  %20s  in %s: all ids are below %s\n",
              counted(static_cast<std::int64_t>(set.documents()), "document").c_str(),
              counted(static_cast<std::int64_t>(set.tokens()), "token").c_str(),
              counted(static_cast<std::int64_t>(set.files().size()), "file").c_str(),
              grouped(static_cast<std::int64_t>(vocabulary)).c_str());
  return {};
}

struct ExchangeFlags {
  std::string format, input, out;
  bool overwrite = false;
  std::optional<std::uint32_t> begins_with, ends_with;
  text::TokenImportOptions options;
};

void add_format(CLI::App& app, ExchangeFlags& flags, bool imports) {
  std::vector<std::string> formats = {"nanogpt", "llmc", "megatron"};
  if (imports) formats.emplace_back("mds");
  app.add_option("--format", flags.format,
                 base::str("Whose files: nanogpt (uint16, no header), llmc (a header) or megatron",
                           imports ? "; mds: a folder of MosaicML's Streaming" : ""))
      ->required()
      ->type_name(base::join(formats, "|"))
      ->check(one_of(formats));
}

base::Status import_files(ExchangeFlags& flags) {
  auto& options = flags.options;
  SLUICE_TRY(options.format, text::token_format_of(flags.format));
  options.files = {flags.input};
  if (options.format != text::TokenFormat::kMds) {
    SLUICE_TRY(options.files, expand_arguments({flags.input}));
  }
  options.begins_with = flags.begins_with;
  options.ends_with = flags.ends_with;
  SLUICE_TRY(const auto report, text::import_tokens(options));
  print_set(report);
  return {};
}

}  // namespace

Verb text_pack_verb() {
  auto flags = std::make_shared<PackFlags>();
  return {
      .name = "pack",
      .help = "Encode texts into files of tokens",
      .footer =
          "Writes OUT/PREFIX-0000.bin and OUT/PREFIX-0000.idx, … as Megatron-LM reads them, "
          "OUT/PREFIX.json, and a copy of the tokenizer.json.\n"
          "Files appear when the whole set is written. A run that was stopped continues when it is "
          "started again.\n"
          "Examples: sluice text pack 'web-{00..15}.jsonl.zst' tokens --tokenizer tokenizer.json "
          "--end-token '<|endoftext|>'\n"
          "          sluice text pack book.txt tokens --tokenizer tokenizer.json --sample-by "
          "paragraph",
      .add_flags =
          [flags](CLI::App& app) {
            app.add_option("INPUT", flags->input, kTextsHelp)->required();
            add_set_flags(app, flags->options.set);
            app.add_option("--tokenizer", flags->tokenizer, "A tokenizer.json, or the folder that it is in")
                ->required();
            app.add_option("--end-token", flags->end, "Add this token after each document (default: none)");
            add_input_flags(app, flags->options.input, /*sample_by=*/true);
            app.add_option("--workers", flags->options.workers, "Threads that encode (0: one for each core)")
                ->check(kZeroOrMore)
                ->capture_default_str();
          },
      .run = guarded_text("pack", [flags] { return pack(*flags); })};
}

Verb text_verify_verb() {
  auto flags = std::make_shared<VerifyFlags>();
  return {.name = "verify",
          .help = "List token files, and check that their ids are tokens",
          .footer = "Example: sluice text verify 'tokens/train-*.bin' --tokenizer tokenizer.json",
          .add_flags =
              [flags](CLI::App& app) {
                app.add_option("TOKENS", flags->files, kTokensHelp)->required();
                app.add_option("--tokenizer", flags->tokenizer, "Check that all ids are of this tokenizer");
                app.add_option("--vocab-size", flags->vocabulary, "Check that all ids are below this")
                    ->check(kAboveZero);
              },
          .run = guarded_text("verify", [flags] { return verify(*flags); })};
}

Verb text_import_verb() {
  auto flags = std::make_shared<ExchangeFlags>();
  return {.name = "import",
          .help = "Make a set of token files of nanoGPT, llm.c, Megatron-LM or MosaicML's Streaming",
          .footer =
              "Examples: sluice text import train.bin tokens --format nanogpt --vocab-size 50257 --ends-with "
              "50256\n"
              "          sluice text import mds/train tokens --format mds --id-type int64 --vocab-size 50368 "
              "--ends-with 0",
          .add_flags =
              [flags](CLI::App& app) {
                auto& options = flags->options;
                app.add_option("INPUT", flags->input, base::str(kTokensHelp, "; of mds the set's folder"))
                    ->required();
                add_set_flags(app, options.set);
                add_format(app, *flags, /*imports=*/true);
                app.add_option("--vocab-size", options.vocabulary, "Check that all ids are below this")
                    ->check(kAboveZero)
                    ->capture_default_str();
                app.add_option("--begins-with", flags->begins_with,
                               "The id that each document begins with (llm.c: 50256); not for megatron. "
                               "Without it and --ends-with each sample of mds is a document");
                app.add_option("--ends-with", flags->ends_with,
                               "The id that each document ends with (nanoGPT: 50256); not for megatron");
                app.add_option("--column", options.column, "mds: the column of the tokens")
                    ->capture_default_str();
                app.add_option("--id-type", options.id_type,
                               "mds: the type of ids in a column of bytes, such as int64 (LLM Foundry's)");
              },
          .run = guarded_text("import", [flags] { return import_files(*flags); })};
}

Verb text_export_verb() {
  auto flags = std::make_shared<ExchangeFlags>();
  return {.name = "export",
          .help = "Write a set as one file of nanoGPT, llm.c or Megatron-LM",
          .footer = "Example: sluice text export 'tokens/train-*.bin' train.bin --format nanogpt",
          .add_flags =
              [flags](CLI::App& app) {
                app.add_option("TOKENS", flags->input, kTokensHelp)->required();
                app.add_option("OUT", flags->out, "The file; of megatron NAME.bin and NAME.idx are written")
                    ->required();
                add_format(app, *flags, /*imports=*/false);
                app.add_flag("--overwrite", flags->overwrite, "Replace the file if it is there");
              },
          .run = guarded_text("export", [flags]() -> base::Status {
            SLUICE_TRY(const auto format, text::token_format_of(flags->format));
            SLUICE_OK(text::export_tokens(flags->input, format, flags->out, flags->overwrite));
            std::printf("%s\n", flags->out.c_str());
            return {};
          })};
}

}  // namespace sluice::cli
