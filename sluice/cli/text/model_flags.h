// The flags and the set-up that the verbs of `sluice text` that run a language model share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/cli/verb.h"
#include "sluice/mesh/mesh.h"
#include "sluice/models/language/language.h"
#include "sluice/text/tokenizer.h"
#include "sluice/train/choices.h"

namespace sluice::cli {

struct ModelFlags {
  std::string folder, tokenizer, plugin;
  train::DeviceKind device = train::DeviceKind::kXla;
  train::Precision precision = train::Precision::kF32;
  Mesh mesh;  // empty: one device
};
void add_model_flags(CLI::App& app, ModelFlags& flags);

// Parses the folder's config.json. kNotFound if there is none.
base::Result<models::LanguageOptions> model_options(const ModelFlags& flags);
// Whether --tokenizer or the folder gives a tokenizer.
bool has_tokenizer(const ModelFlags& flags);
// Loads this tokenizer. kNotFound says where it was looked for.
base::Result<text::Tokenizer> model_tokenizer(const ModelFlags& flags);
// Returns the model on its device, or laid out over the mesh, in its precision, in evaluation mode.
models::LanguageModelPtr ready_model(const ModelFlags& flags);

// Returns the ids of the beginning of a text: with the tokens that the tokenizer's template puts before it,
// without those that it puts after it.
std::vector<std::uint32_t> beginning(const text::Tokenizer& tokenizer, const std::string& text);

}  // namespace sluice::cli
