// Normalizers, which change a text before the tokenizer looks for words.
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

// Reads a normalizer; for null it does nothing. kUnimplemented for an unknown one.
base::Result<std::unique_ptr<const Normalizer>> read_normalizer(const Json& json, const std::string& where,
                                                                int depth = 0);

// Applies Unicode's normal forms, with the alignments of the crate unicode-normalization-alignments.
enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
void normalize(NormalForm form, AlignedText& text);

// Reads SentencePiece's table of replacements (precompiled_charsmap, in base64): a double array of keys,
// followed by their texts.
base::Result<std::unique_ptr<const Normalizer>> read_precompiled(const JsonObject& object);

}  // namespace sluice::text
