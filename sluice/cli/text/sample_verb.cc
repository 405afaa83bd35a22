// sluice text sample
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/cli/data/common.h"
#include "sluice/cli/text/common.h"
#include "sluice/cli/text/model_flags.h"
#include "sluice/cli/verbs.h"
#include "sluice/generate/generate.h"
#include "sluice/text/text_stream.h"

namespace sluice::cli {
namespace {

struct SampleFlags {
  ModelFlags model;
  std::string prompt, file;
  GenerateOptions options = {.tokens = 128, .sampling = {.temperature = 0.8}};
  std::size_t samples = 1;
  bool ignore_end = false, json = false;
};

base::Result<std::string> prompt_text(const SampleFlags& flags) {
  if (flags.file.empty()) return flags.prompt;
  return base::read_file(flags.file == "-" ? "/dev/stdin" : flags.file);
}

// Shows the samples: the first while it is generated, the others after it.
class Shown {
 public:
  Shown(const SampleFlags& flags, const text::Tokenizer& tokenizer, std::string prompt,
        const std::vector<std::uint32_t>& ids)
      : flags_(flags),
        prompt_(std::move(prompt)),
        texts_(flags.samples),
        streams_(flags.samples, text::TextStream(tokenizer, ids)) {
    if (!flags_.json) print(0, prompt_);
  }
  void add(std::size_t sample, std::uint32_t id) {
    if (tokens_ == 0) first_ = clock_.seconds();
    ++tokens_;
    show(sample, streams_[sample].add(id));
  }
  void finish(const std::vector<std::vector<std::uint32_t>>& said, std::size_t prompt_tokens) {
    for (std::size_t sample = 0; sample < said.size(); ++sample) {
      if (sample > 0 && !flags_.json) print(sample, prompt_ + texts_[sample]);
      show(sample, streams_[sample].finish(), /*now=*/true);
      if (flags_.json) {
        const nlohmann::ordered_json line = {
            {"prompt", prompt_}, {"text", texts_[sample]}, {"tokens", said[sample]}};
        std::printf("%s", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
      }
      std::printf("\n");
    }
    std::fflush(stdout);
    const double seconds = clock_.seconds() - first_;
    const auto later = static_cast<double>(tokens_ - flags_.samples);
    std::fprintf(stderr, "%s of the prompt and the first new token in %.2f s, then %.1f tokens/s\n",
                 counted(static_cast<std::int64_t>(prompt_tokens), "token").c_str(), first_,
                 seconds > 0 && later > 0 ? later / seconds : 0.0);
  }

 private:
  void show(std::size_t sample, const std::string& piece, bool now = false) {
    texts_[sample] += piece;
    if (flags_.json || (sample > 0 && !now)) return;
    std::fputs(piece.c_str(), stdout);
    std::fflush(stdout);
  }
  void print(std::size_t sample, const std::string& text) const {
    if (flags_.samples > 1) std::printf("%s--- sample %zu\n", sample > 0 ? "\n" : "", sample + 1);
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }

  const SampleFlags& flags_;
  const std::string prompt_;
  std::vector<std::string> texts_;
  std::vector<text::TextStream> streams_;
  base::Stopwatch clock_;
  double first_ = 0;
  std::size_t tokens_ = 0;
};

base::Status sample(const SampleFlags& flags) {
  check(flags.options.sampling);
  SLUICE_TRY(const models::LanguageOptions model, model_options(flags.model));
  SLUICE_TRY(const text::Tokenizer tokenizer, model_tokenizer(flags.model));
  SLUICE_TRY(const std::string prompt, prompt_text(flags));
  const auto ids = checked_prompt(model, beginning(tokenizer, prompt), flags.options.tokens);
  const auto ready = ready_model(flags.model);
  Shown shown(flags, tokenizer, prompt, ids);
  GenerateOptions options = flags.options;
  if (flags.ignore_end) options.end = std::vector<std::uint32_t>();
  options.on_token = [&shown](std::size_t sequence, std::uint32_t token) { shown.add(sequence, token); };
  const std::vector<std::vector<std::uint32_t>> prompts(flags.samples, ids);
  shown.finish(generate(*ready, prompts, options), ids.size());
  return {};
}

}  // namespace

Verb text_sample_verb() {
  auto flags = std::make_shared<SampleFlags>();
  return {
      .name = "sample",
      .help = "Let a language model continue a text",
      .footer =
          "Examples: sluice text sample --model run/best --prompt 'In the beginning'\n"
          "          sluice text sample --model gpt2 --prompt-file story.txt --greedy --tokens 64",
      .add_flags =
          [flags](CLI::App& app) {
            auto& options = flags->options;
            auto& sampling = options.sampling;
            add_model_flags(app, flags->model);
            CLI::Option* const prompt = app.add_option("--prompt", flags->prompt,
                                                       "Continue this text; empty: the model's begin token");
            app.add_option("--prompt-file", flags->file, "Continue the text of this file; -: standard input")
                ->excludes(prompt);
            app.add_option("--tokens", options.tokens, "Write at most N tokens after the prompt")
                ->check(kAboveZero);
            app.add_option("--samples", flags->samples, "Write N different texts after the same prompt")
                ->check(kAboveZero);
            app.add_flag("--greedy", sampling.greedy,
                         "Always take the likeliest token, instead of drawing one");
            app.add_option("--temperature", sampling.temperature,
                           "Above 0; below 1 the likely tokens become likelier");
            app.add_option("--top-k", sampling.top_k, "Draw from this many of the likeliest tokens; 0: all");
            app.add_option("--top-p", sampling.top_p,
                           "Draw from the likeliest tokens that together have this probability; above 0, "
                           "at most 1");
            app.add_option("--repetition-penalty", sampling.repetition_penalty,
                           "Above 1: what the text has already becomes less likely");
            app.add_option("--seed", options.seed, "Seed the drawing of tokens");
            app.add_flag("--ignore-end", flags->ignore_end, "Continue after the model's end token");
            app.add_flag("--json", flags->json, "A JSON object a sample, with its tokens");
          },
      .run = guarded_text("sample", [flags] { return sample(*flags); })};
}

}  // namespace sluice::cli
