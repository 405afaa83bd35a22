// Normalizers: what a tokenizer does to a text before it looks for words.
#pragma once

#include <memory>

#include "sluice/text/characters/aligned_text.h"
#include "sluice/text/json_object.h"

namespace sluice::text {

// Threads: any number of them.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual base::Status apply(AlignedText& text) const = 0;
};

// One that does nothing for null. An unknown one is kUnimplemented.
base::Result<std::unique_ptr<const Normalizer>> read_normalizer(const Json& json, const std::string& where,
                                                                int depth = 0);

// Unicode's normal forms, with alignments as the crate unicode-normalization-alignments has them.
enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
void normalize(NormalForm form, AlignedText& text);

// SentencePiece's table of replacements (precompiled_charsmap, in base64): a double array of keys before
// their texts.
base::Result<std::unique_ptr<const Normalizer>> read_precompiled(const JsonObject& object);

}  // namespace sluice::text
