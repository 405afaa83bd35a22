// Each model's maker, for language.cc.
#pragma once

#include "sluice/models/language/language.h"

namespace sluice::models::language_detail {

LanguageModelPtr make_gpt2(const LanguageOptions& options);
LanguageModelPtr make_llama(const LanguageOptions& options);
LanguageModelPtr make_roberta(const LanguageOptions& options);

}  // namespace sluice::models::language_detail
