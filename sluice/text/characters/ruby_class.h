// The parts of Oniguruma's patterns that match one character: escapes, properties, classes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sluice/base/result.h"
#include "sluice/text/characters/code_points.h"

namespace sluice::text {

// Reads a pattern from front to back.
struct PatternReader {
  std::string_view pattern;
  std::size_t at = 0;

  bool ended() const { return at >= pattern.size(); }
  char peek(std::size_t ahead = 0) const { return at + ahead < pattern.size() ? pattern[at + ahead] : '\0'; }
  bool eat(std::string_view what) {
    if (pattern.substr(at, what.size()) != what) return false;
    at += what.size();
    return true;
  }
  template <typename... Pieces>
  tl::unexpected<Error> fail(Code code, const Pieces&... pieces) const {
    return base::fail(code, "the pattern '", pattern, "', at byte ", at, ": ", pieces...);
  }
};

// The meaning of an escape: a code point, or a set of code points.
struct Escaped {
  std::optional<char32_t> code;
  CodePoints set;
};

// Reads what follows a backslash. kUnimplemented for escapes that match no character: the caller has them.
base::Result<Escaped> read_escape(PatternReader& reader, bool in_class);

// The class from after its [ to its ]. `negated`: the class matches what is not in the set.
struct CharacterClass {
  CodePoints set;
  bool negated = false;
};
base::Result<CharacterClass> read_class(PatternReader& reader, int depth = 0);

}  // namespace sluice::text
