// Cuts between two characters of different scripts, as Hugging Face's pre-tokenizer UnicodeScripts does.
#pragma once

#include <string_view>
#include <vector>

#include "sluice/text/characters/aligned_text.h"

namespace sluice::text {

// Kana count as Han. A blank belongs to the text before it, and so do characters that are newer than the
// table. Text before the first character with a script is left out.
void split_at_scripts(std::string_view text, std::vector<Span>& pieces);

}  // namespace sluice::text
