// sluice text encode, decode
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/cli/text/common.h"
#include "sluice/text/tokenizer.h"

namespace sluice::cli {
namespace {

struct CodeFlags {
  std::string tokenizer, file = "-";
  bool no_special = false, json = false, keep_special = false;
};

// Calls body(line) for each line, also for empty ones, so that each line of input prints one line.
template <typename Body>
base::Status each_line(const std::string& file, const Body& body) {
  SLUICE_TRY(const auto reader,
             text::open_documents(file, {.format = text::InputFormat::kText, .keep_line_ends = true}));
  text::RawDocument line;
  for (;;) {
    SLUICE_TRY(const bool more, reader->next(line));
    if (!more) return {};
    while (!line.bytes.empty() && (line.bytes.back() == '\n' || line.bytes.back() == '\r'))
      line.bytes.pop_back();
    SLUICE_OK(body(line));
  }
}

void print_encoding(const text::Encoding& encoding) {
  nlohmann::ordered_json offsets = nlohmann::ordered_json::array();
  for (const text::Span& span : encoding.offsets) offsets.push_back({span.begin, span.end});
  const nlohmann::ordered_json line = {{"ids", encoding.ids},
                                       {"tokens", encoding.tokens},
                                       {"offsets", offsets},
                                       {"type_ids", encoding.type_ids}};
  std::printf("%s\n", line.dump().c_str());
}

base::Status encode(const CodeFlags& flags) {
  const auto tokenizer = text::Tokenizer::load(flags.tokenizer);
  return each_line(flags.file, [&](text::RawDocument& line) -> base::Status {
    SLUICE_TRY(const std::string words, text::text_of(std::move(line), flags.file, {}));
    const auto encoding =
        tokenizer.encode(words, {.special_tokens = !flags.no_special, .offsets = flags.json});
    if (flags.json) {
      print_encoding(encoding);
    } else {
      std::printf("%s\n", base::join(encoding.ids, " ").c_str());
    }
    return {};
  });
}

base::Status decode(const CodeFlags& flags) {
  const auto tokenizer = text::Tokenizer::load(flags.tokenizer);
  return each_line(flags.file, [&](const text::RawDocument& line) -> base::Status {
    std::vector<std::uint32_t> ids;
    for (const std::string& word : base::split(line.bytes, ' ')) {
      if (word.empty()) continue;
      const auto id = base::number_of<std::uint32_t>(word);
      if (!id)
        return base::fail(Code::kInvalidArgument, flags.file,
                          ": expected ids with spaces between them, found '", word.substr(0, 40),
                          "' on the line at byte ", line.begin);
      ids.push_back(*id);
    }
    std::printf("%s\n", tokenizer.decode(ids, !flags.keep_special).c_str());
    return {};
  });
}

void add_files(CLI::App& app, CodeFlags& flags, const char* help) {
  app.add_option("TOKENIZER", flags.tokenizer, "A tokenizer.json, or the folder that it is in")->required();
  app.add_option("FILE", flags.file, help)->capture_default_str();
}

}  // namespace

Verb encode_verb() {
  auto flags = std::make_shared<CodeFlags>();
  return {.name = "encode",
          .help = "Print the ids of texts, a line each",
          .footer = "Example: echo 'In the beginning' | sluice text encode tokenizer.json",
          .add_flags =
              [flags](CLI::App& app) {
                add_files(app, *flags, "Text, a line each; -: standard input");
                app.add_flag("--no-special-tokens", flags->no_special,
                             "Do not add the special tokens of the file's template");
                app.add_flag("--json", flags->json,
                             "A JSON object a line, with tokens and their places in bytes");
              },
          .run = guarded_text("encode", [flags] { return encode(*flags); })};
}

Verb decode_verb() {
  auto flags = std::make_shared<CodeFlags>();
  return {.name = "decode",
          .help = "Print the texts of ids, a line each",
          .footer = "Example: echo '818 262 3726' | sluice text decode tokenizer.json",
          .add_flags =
              [flags](CLI::App& app) {
                add_files(app, *flags, "Ids with spaces between them, a line a text; -: standard input");
                app.add_flag("--special-tokens", flags->keep_special, "Show special tokens too");
              },
          .run = guarded_text("decode", [flags] { return decode(*flags); })};
}

}  // namespace sluice::cli
