#include "sluice/cli/verbs.h"

#include "sluice/base/text/join.h"
#include "sluice/cli/data/common.h"
#include "sluice/cli/text/common.h"

namespace sluice::cli {

void add_input_flags(CLI::App& app, text::InputOptions& input, bool sample_by) {
  app.add_option_function<std::string>(
         "--format",
         [&input](const std::string& name) {
           input.format = base::value_or_throw(text::input_format_of(name));
         },
         "Kind of the files; auto: by their names, .jsonl, .ndjson and .json are JSON lines, .tar is shards "
         "(default: "
         "auto)")
      ->type_name("auto|text|jsonl|shards")
      ->check(one_of({"auto", "text", "jsonl", "shards"}));
  app.add_option("--field", input.field, "The text's name in a JSON line")->capture_default_str();
  app.add_option("--member", input.member,
                 "The text's extension in a sample of shards; of json, --field counts too")
      ->capture_default_str();
  if (!sample_by) return;
  app.add_option_function<std::string>(
         "--sample-by",
         [&input](const std::string& name) {
           input.sample_by = base::value_or_throw(text::sample_by_of(name));
         },
         base::str("Split a text file into documents in this way: a paragraph ends with an empty line, a "
                   "document is the file (default: ",
                   input.sample_by == text::SampleBy::kLine ? "line" : "document", ")"))
      ->type_name("line|paragraph|document")
      ->check(one_of({"line", "paragraph", "document"}));
}

std::function<int()> guarded_text(std::string verb, std::function<base::Status()> body) {
  return guarded(std::move(verb), std::move(body), "text");
}

Verb text_verb() {
  return {.name = "text",
          .help = "Make and use tokenizers, and files of tokens",
          .verbs = {tokenizer_verb(), encode_verb(), decode_verb(), text_pack_verb(), text_verify_verb(),
                    text_import_verb(), text_export_verb()},
          .more_with_torch = true};
}

}  // namespace sluice::cli
