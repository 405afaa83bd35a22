// Small models for this room's tests.
#pragma once

#include "sluice/models/language/language.h"

namespace sluice {

using Ids = std::vector<uint32_t>;
inline constexpr const char* kDecoders[] = {"gpt2-tiny", "llama-tiny"};

// Returns a model with large weights: with fresh ones every text would look alike.
inline models::LanguageModelPtr lively_model(const char* preset) {
  torch::manual_seed(3);
  models::LanguageOptions options = models::language_preset(preset);
  options.initial_deviation = 0.3;
  auto model = models::language_model(options);
  model->eval();
  return model;
}

}  // namespace sluice
