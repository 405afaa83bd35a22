// Pre-tokenizers: how a tokenizer cuts a text into words, of which no token crosses an end.
#pragma once

#include <memory>
#include <vector>

#include "sluice/text/characters/aligned_text.h"
#include "sluice/text/json_object.h"

namespace sluice::text {

// Threads: any number of them, but for leave_bytes().
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Cuts each piece (in the text's bytes, in their order, none empty) into smaller ones. It may write the
  // text again.
  virtual base::Status apply(AlignedText& text, std::vector<Span>& pieces) const = 0;
  // Whether apply() asks where in the original a piece begins: the text must be tracked then.
  virtual bool needs_alignment() const { return false; }
  // If its last step spells bytes in GPT-2's alphabet, it leaves the bytes as they are from now on, and this
  // is true.
  virtual bool leave_bytes() { return false; }
};

// The split pattern of GPT-2, which ByteLevel has.
inline constexpr char kGpt2Pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

// One that does nothing for null. An unknown one is kUnimplemented.
base::Result<std::unique_ptr<PreTokenizer>> read_pre_tokenizer(const Json& json, const std::string& where,
                                                               int depth = 0);

}  // namespace sluice::text
