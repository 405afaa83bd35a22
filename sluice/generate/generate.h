// Generation of text by a language model.
//
//   auto model = sluice::load_pretrained("gpt2");
//   model->to(torch::Device("xla:0"));
//   auto said = sluice::generate(*model, {tokenizer.encode("In the beginning").ids}, {.tokens = 64});
//
// The prompts are read in one program, whose length is rounded up (generation_length). Each token is another
// program, the same for all: keys and values of the tokens before are kept in tensors of one shape. The host
// continues while the device works, and sees a token one step late.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/generate/choose.h"
#include "sluice/models/language/language.h"

SLUICE_API_BEGIN
namespace sluice {

struct GenerateOptions {
  int64_t tokens = 128;  // the most tokens after each prompt
  SamplingOptions sampling = {};
  uint64_t seed = 0;  // for the draws: the same numbers on one kind of device, others on another kind
  // The tokens that end a sequence; the model's own unless they are given. {}: no token does.
  std::optional<std::vector<uint32_t>> end = {};
  // Called for each token of each sequence as it comes, including the end token.
  std::function<void(size_t sequence, uint32_t token)> on_token = {};
};

// Returns the tokens after each prompt: at most `tokens` ids; the last one may be the end token. The
// model stays where it is (all of it on one device) and as it is, in training or not. An empty prompt stands
// for the model's begin token. Throws sluice::Error for a model that cannot read token by token (roberta), a
// prompt that is too long or empty without a begin token, and ids that the model's vocabulary does not have.
std::vector<std::vector<uint32_t>> generate(models::LanguageModel& model,
                                            const std::vector<std::vector<uint32_t>>& prompts,
                                            const GenerateOptions& options = {});

// Throws as generate() does for one prompt, and returns it, or the model's begin token for an empty one.
std::vector<uint32_t> checked_prompt(const models::LanguageOptions& model, std::vector<uint32_t> prompt,
                                     int64_t tokens);
// Returns the length at which prompts of at most `longest` tokens are read: a power of two up to 256, then a
// multiple of 256.
int64_t generation_length(int64_t longest);

}  // namespace sluice
SLUICE_API_END
