// Pre-tokenizers, which cut a text into words; no token crosses the end of a word.
#pragma once

#include <memory>
#include <vector>

#include "sluice/text/characters/aligned_text.h"
#include "sluice/text/json_object.h"

namespace sluice::text {

// Threads: any number of them; leave_bytes() is not thread-safe.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Cuts each piece (in bytes of the text, in order, none empty) into smaller ones. It may rewrite the text.
  virtual base::Status apply(AlignedText& text, std::vector<Span>& pieces) const = 0;
  // Whether apply() needs the places of pieces in the original: the text must then be tracked.
  virtual bool needs_alignment() const { return false; }
  // If the last step spells bytes in GPT-2's alphabet, it leaves them unchanged from now on; returns whether.
  virtual bool leave_bytes() { return false; }
};

// GPT-2's split pattern, which ByteLevel uses.
inline constexpr char kGpt2Pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

// Reads a pre-tokenizer; for null it does nothing. kUnimplemented for an unknown one.
base::Result<std::unique_ptr<PreTokenizer>> read_pre_tokenizer(const Json& json, const std::string& where,
                                                               int depth = 0);

}  // namespace sluice::text
