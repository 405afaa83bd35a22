// The parts of Oniguruma's patterns that stand for one character: escapes, properties, classes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sluice/base/result.h"
#include "sluice/text/characters/code_points.h"

namespace sluice::text {

// A pattern that is read from front to back.
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

// What an escape stands for: a code point, or a set of them.
struct Escaped {
  std::optional<char32_t> code;
  CodePoints set;
};

// Behind a backslash. kUnimplemented for those that stand for no character, which the caller has to know.
base::Result<Escaped> read_escape(PatternReader& reader, bool in_class);

// Behind a [, to its ]. `negated`: the class is all that is not in the set.
struct CharacterClass {
  CodePoints set;
  bool negated = false;
};
base::Result<CharacterClass> read_class(PatternReader& reader, int depth = 0);

}  // namespace sluice::text
