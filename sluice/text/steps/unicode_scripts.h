// Cuts between two characters of different scripts, as Hugging Face's pre-tokenizer UnicodeScripts does.
#pragma once

#include <string_view>
#include <vector>

#include "sluice/text/characters/aligned_text.h"

namespace sluice::text {

// Kana count as Han, and a blank belongs to what is before it; so do characters that are newer than its
// table. What is before the first character of a script is left out.
void split_at_scripts(std::string_view text, std::vector<Span>& pieces);

}  // namespace sluice::text
