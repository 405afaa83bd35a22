// What the verbs of `sluice text` that run a language model share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/cli/verb.h"
#include "sluice/models/language/language.h"
#include "sluice/text/tokenizer.h"
#include "sluice/train/choices.h"

namespace sluice::cli {

struct ModelFlags {
  std::string folder, tokenizer, plugin;
  train::DeviceKind device = train::DeviceKind::kXla;
  train::Precision precision = train::Precision::kF32;
};
void add_model_flags(CLI::App& app, ModelFlags& flags);

// What the folder's config.json says. kNotFound where there is none.
base::Result<models::LanguageOptions> model_options(const ModelFlags& flags);
// Whether --tokenizer or the folder has one.
bool has_tokenizer(const ModelFlags& flags);
// It. kNotFound says where it was looked for.
base::Result<text::Tokenizer> model_tokenizer(const ModelFlags& flags);
// The model on its device, in its precision, ready to be asked.
models::LanguageModelPtr ready_model(const ModelFlags& flags);

// The ids of a text's beginning: with what the tokenizer's template puts in front, without what it puts
// behind.
std::vector<std::uint32_t> beginning(const text::Tokenizer& tokenizer, const std::string& text);

}  // namespace sluice::cli
