// Translates patterns of Oniguruma, for which tokenizer.json is written, to patterns of PCRE2.
//
// Both libraries were measured on the King James Bible with the split pattern of GPT-2: Debian's Oniguruma
// 6.9.8 reads 5.9 MB/s, PCRE2's machine code 40 MB/s. Debian's also has Unicode 14, while the copy within
// Hugging Face's library has 16. So the pattern is parsed here, and every class becomes Oniguruma's set of
// code points, which PCRE2 finds without knowing any properties.
#pragma once

#include <string>
#include <string_view>

#include "sluice/base/result.h"

namespace sluice::text {

// Returns a pattern for PCRE2_UTF | PCRE2_MULTILINE with LF as the only end of a line. kInvalidArgument if
// Oniguruma refuses the pattern; kUnimplemented names what is not translated: (?~…), \y, conditions,
// callouts, (?W) and the like.
base::Result<std::string> ruby_to_pcre(std::string_view pattern);

}  // namespace sluice::text
