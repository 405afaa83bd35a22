// Patterns of Oniguruma, which tokenizer.json is written for, as patterns of PCRE2.
//
// Both libraries were measured on the King James Bible with the split pattern of GPT-2: Debian's
// Oniguruma 6.9.8 finds 5.9 MB/s, PCRE2's machine code 40 MB/s. And Debian's has Unicode 14, where the copy
// within Hugging Face's library has
// 16. So the pattern is parsed here, and every class becomes the set of code points that Oniguruma has for
// it, which PCRE2 then finds without knowing what a property is.
#pragma once

#include <string>
#include <string_view>

#include "sluice/base/result.h"

namespace sluice::text {

// For PCRE2_UTF | PCRE2_MULTILINE, and LF as the only end of a line. kInvalidArgument where Oniguruma refuses
// it, kUnimplemented names what is not translated: (?~…), \y, conditions, callouts, (?W) and the like.
base::Result<std::string> ruby_to_pcre(std::string_view pattern);

}  // namespace sluice::text
