#include "sluice/text/characters/ruby_pattern.h"

#include <algorithm>
#include <map>

#include "sluice/text/characters/pcre_class.h"
#include "sluice/text/characters/properties.h"
#include "sluice/text/characters/ruby_class.h"
#include "sluice/text/characters/unicode.h"

namespace sluice::text {
namespace {

constexpr int kMaxGroups = 100;  // nested in each other
constexpr std::size_t kMaxWritten = std::size_t{1} << 20;

struct Flags {
  bool fold = false;      // i: ignore case
  bool any = false;       // m: the dot also matches the end of a line
  bool extended = false;  // x: ignore blanks and comments
  bool behind = false;    // in (?<=…), where a character does not match several others
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

class Translator {
 public:
  explicit Translator(std::string_view pattern) : reader_{pattern} {
    for (std::size_t at = 0; (at = pattern.find("(?<", at)) != std::string_view::npos; at += 3)
      if (at + 3 < pattern.size() && pattern[at + 3] != '=' && pattern[at + 3] != '!') named_ = true;
  }

  base::Result<std::string> all() {
    SLUICE_TRY(std::string text, alternatives({}, 0));
    if (!reader_.ended()) return reader_.fail(Code::kInvalidArgument, "a ) that closes nothing");
    return text;
  }

 private:
  enum class Kind { kCharacter, kOne, kPlace, kOption };
  // An element that a quantifier may follow.
  struct Atom {
    Kind kind = Kind::kOne;
    char32_t code = 0;  // for kCharacter
    std::string text;
  };

  void skip(const Flags& flags) {
    while (!reader_.ended()) {
      if (flags.extended && is_blank(reader_.peek())) {
        ++reader_.at;
      } else if (flags.extended && reader_.peek() == '#') {
        reader_.at = std::min(reader_.pattern.find('\n', reader_.at), reader_.pattern.size());
      } else if (reader_.peek() == '(' && reader_.peek(1) == '?' && reader_.peek(2) == '#') {
        reader_.at = std::min(reader_.pattern.find(')', reader_.at), reader_.pattern.size() - 1) + 1;
      } else {
        return;
      }
    }
  }

  // Reads up to the end, or to a ) that it does not consume.
  base::Result<std::string> alternatives(const Flags& flags, int depth) {
    if (depth > kMaxGroups)
      return reader_.fail(Code::kInvalidArgument, "groups within groups, deeper than ", kMaxGroups);
    std::string out;
    std::u32string run;  // characters that may together match one character
    for (skip(flags); !reader_.ended() && reader_.peek() != ')'; skip(flags)) {
      if (reader_.eat("|")) {
        write_run(run, flags, out);
        out += '|';
        continue;
      }
      SLUICE_TRY(Atom atom, read_atom(flags, depth));
      if (atom.kind == Kind::kOption) {
        write_run(run, flags, out);
        out += atom.text;
        continue;
      }
      skip(flags);
      const bool character = atom.kind == Kind::kCharacter;
      SLUICE_TRY(const std::string repeated, quantifiers(flags));
      if (character && repeated.empty()) {
        run += atom.code;
        continue;
      }
      write_run(run, flags, out);
      if (atom.kind == Kind::kPlace && !repeated.empty())
        return reader_.fail(Code::kInvalidArgument, "a place cannot be repeated");
      if (character) {
        std::u32string alone(1, atom.code);
        write_run(alone, flags, atom.text);
      }
      // Each further quantifier repeats the element together with the quantifiers before it.
      std::string text = std::move(atom.text);
      for (std::size_t at = 0; at < repeated.size();) {
        const std::size_t end = std::min(repeated.find('\n', at), repeated.size());
        if (at > 0) text = "(?:" + text + ")";
        text += repeated.substr(at, end - at);
        at = end + 1;
      }
      out += text;
      if (out.size() > kMaxWritten)
        return reader_.fail(Code::kUnimplemented, "it is larger than ", kMaxWritten,
                            " bytes when written out");
    }
    write_run(run, flags, out);
    return out;
  }

  // Writes characters unchanged or, without regard to case, all characters with the same folded form. The
  // longest sequence that is the folded form of one character also matches that character.
  static void write_run(std::u32string& run, const Flags& flags, std::string& out) {
    if (!flags.fold) {
      for (const char32_t code : run) out += pcre_character(code);
      run.clear();
      return;
    }
    std::u32string folded;
    for (const char32_t code : run) {
      if (flags.behind) {
        folded += code;
      } else {
        folded += fold_case(code);
      }
    }
    std::string text;
    const auto one = [](char32_t code) { return pcre_class(close_over_case(CodePoints({{code, code}}))); };
    for (std::size_t at = 0; at < folded.size();) {
      std::size_t length = 1;
      CodePoints alike;
      for (const LongFold& fold : long_folds()) {
        if (flags.behind || fold.folded.size() < std::max<std::size_t>(length, 2)) continue;
        if (!same(folded, at, fold.folded)) continue;
        if (fold.folded.size() > length) alike = {};
        length = fold.folded.size();
        alike.add(fold.code, fold.code);
      }
      std::string part;
      for (std::size_t i = 0; i < length; ++i) part += one(folded[at + i]);
      text += alike.empty() ? part : "(?:" + part + "|" + pcre_class(alike) + ")";
      at += length;
    }
    out += run.size() == 1 && folded.size() > 1 ? "(?:" + text + ")" : text;
    run.clear();
  }

  static bool same(const std::u32string& folded, std::size_t at, const std::u32string& what) {
    return folded.compare(at, what.size(), what) == 0;
  }

  // Returns the quantifiers, one on each line; an empty text if there are none.
  base::Result<std::string> quantifiers(const Flags& flags) {
    std::string all;
    for (;; skip(flags)) {
      std::string one;
      const char c = reader_.peek();
      if (!reader_.ended() && (c == '*' || c == '+' || c == '?')) {
        ++reader_.at;
        one = c;
        if (reader_.peek() == '?' || reader_.peek() == '+') one += reader_.pattern[reader_.at++];
      } else if (c == '{') {
        SLUICE_TRY(one, interval());
      }
      if (one.empty()) return all;
      all += (all.empty() ? "" : "\n") + one;
    }
  }

  // Reads {2}, {2,}, {,2} or {1,2}. Anything else is plain text, and nothing is consumed.
  base::Result<std::string> interval() {
    const std::size_t begin = reader_.at++;
    const auto number = [this] {
      const std::size_t from = reader_.at;
      while (is_digit(reader_.peek())) ++reader_.at;
      return std::string(reader_.pattern.substr(from, reader_.at - from));
    };
    std::string low = number(), high = low;
    const bool comma = reader_.eat(",");
    if (comma) high = number();
    if (!reader_.eat("}") || (low.empty() && high.empty())) {
      reader_.at = begin;
      return std::string();
    }
    if (low.size() > 5 || high.size() > 5)
      return reader_.fail(Code::kInvalidArgument, "a number of repetitions that is too large");
    if (low.empty()) low = "0";
    const bool swapped = comma && !high.empty() && std::stoi(low) > std::stoi(high);
    if (swapped) std::swap(low, high);
    if (std::max(std::stoi(low), high.empty() ? 0 : std::stoi(high)) > 65535)
      return reader_.fail(Code::kUnimplemented, "more than 65535 repetitions");
    if (!comma) {
      // {2}? means 0 or 2 times; {2}+ repeats {2}.
      return "{" + low + "}" + (reader_.eat("?") ? "\n?" : "");
    }
    std::string text = "{" + low + "," + high + "}";
    if (swapped) return text + "+";
    if (reader_.eat("?")) text += '?';
    return text;
  }

  static Atom one(std::string text) { return {Kind::kOne, 0, std::move(text)}; }
  static Atom place(std::string text) { return {Kind::kPlace, 0, std::move(text)}; }

  base::Result<Atom> read_atom(const Flags& flags, int depth) {
    const char c = reader_.peek();
    switch (c) {
      case '(':
        ++reader_.at;
        return group(flags, depth);
      case '\\':
        ++reader_.at;
        return escape(flags);
      case '[': {
        ++reader_.at;
        SLUICE_TRY(const CharacterClass found, read_class(reader_));
        return one(written(found, flags));
      }
      case '.':
        ++reader_.at;
        return one(flags.any ? "(?s:.)" : "[^\\n]");
      case '^':
        ++reader_.at;
        return place("^");
      case '$':
        ++reader_.at;
        return place("$");
      case '*':
      case '+':
      case '?':
        return reader_.fail(Code::kInvalidArgument, c, " repeats nothing");
      case '{': {
        SLUICE_TRY(const std::string repeated, interval());
        if (!repeated.empty()) return reader_.fail(Code::kInvalidArgument, "{…} repeats nothing");
        break;
      }
      default:
        break;
    }
    return Atom{Kind::kCharacter, next_code_point(reader_.pattern, reader_.at), {}};
  }

  static std::string written(const CharacterClass& found, const Flags& flags) {
    if (!flags.fold) return pcre_class(found.negated ? found.set.complement() : found.set);
    const CodePoints closed = close_over_case(found.set);
    if (found.negated) return pcre_class(closed.complement());
    std::string text = pcre_class(closed), longer;
    for (const LongFold& fold : long_folds()) {
      if (!closed.has(fold.code)) continue;
      std::u32string folded = fold.folded;
      longer += '|';
      for (const char32_t code : folded) longer += pcre_class(close_over_case(CodePoints({{code, code}})));
    }
    return longer.empty() ? text : "(?:" + text + longer + ")";
  }

  base::Result<Atom> escape(const Flags& flags) {
    const char letter = reader_.peek();
    const auto word = [] { return pcre_class(property_word()); };
    switch (letter) {
      case 'A':
      case 'z':
      case 'Z':
      case 'G':
        ++reader_.at;
        return place(std::string("\\") + letter);
      case 'K':
        ++reader_.at;
        return place("\\K");
      case 'b':
        ++reader_.at;
        return place("(?:(?<=" + word() + ")(?!" + word() + ")|(?<!" + word() + ")(?=" + word() + "))");
      case 'B':
        ++reader_.at;
        return place("(?:(?<=" + word() + ")(?=" + word() + ")|(?<!" + word() + ")(?!" + word() + "))");
      case 'R':
        ++reader_.at;
        return one("(?>\\r\\n|[\\n-\\r\\x{85}\\x{2028}\\x{2029}])");
      case 'O':
        ++reader_.at;
        return one("(?s:.)");
      case 'N':
        ++reader_.at;
        return one("[^\\n]");
      case 'X':
        ++reader_.at;
        return one("\\X");
      case 'y':
      case 'Y':
        return reader_.fail(Code::kUnimplemented, "\\", letter, " is not known");
      case 'k':
      case 'g': {
        const std::size_t end = reader_.pattern.find('>', reader_.at);
        if (reader_.peek(1) != '<' || end == std::string_view::npos) break;
        const std::string name(reader_.pattern.substr(reader_.at + 2, end - reader_.at - 2));
        if (letter == 'g' || name.empty() || is_digit(name[0]) ||
            name.find_first_of("+-") != std::string::npos)
          return reader_.fail(Code::kUnimplemented, "\\", letter, " with '", name, "' is not known");
        reader_.at = end + 1;
        return one((flags.fold ? "(?i:\\k<" : "(?:\\k<") + name + ">)");
      }
      default:
        break;
    }
    if (letter >= '1' && letter <= '9') {
      if (is_digit(reader_.peek(1)))
        return reader_.fail(Code::kUnimplemented, "a reference to a group above 9: give it a name");
      ++reader_.at;
      return one(std::string(flags.fold ? "(?i:" : "(?:") + "\\g{" + letter + "})");
    }
    SLUICE_TRY(Escaped escaped, read_escape(reader_, false));
    if (escaped.code) return Atom{Kind::kCharacter, *escaped.code, {}};
    return one(pcre_class(escaped.set));
  }

  static CodePoints property_word() {
    PatternReader reader{"w"};
    return base::value_or_throw(read_escape(reader, false)).set;
  }

  // Reads what follows a (.
  base::Result<Atom> group(Flags flags, int depth) {
    std::string opened = named_ ? "(?:" : "(";
    bool is_place = false;
    if (reader_.eat("?")) {
      if (reader_.eat(":")) {
        opened = "(?:";
      } else if (reader_.eat(">")) {
        opened = "(?>";
      } else if (reader_.peek() == '=' || reader_.peek() == '!') {
        opened = std::string("(?") + reader_.pattern[reader_.at++];
        is_place = true;
      } else if (reader_.eat("<=") || reader_.eat("<!")) {
        opened = std::string("(?<") + reader_.pattern[reader_.at - 1];
        is_place = flags.behind = true;
      } else if (reader_.peek() == '<' || reader_.peek() == '\'') {
        const char close = reader_.peek() == '<' ? '>' : '\'';
        const std::size_t end = reader_.pattern.find(close, reader_.at + 1);
        if (end == std::string_view::npos)
          return reader_.fail(Code::kInvalidArgument, "a name without an end");
        opened = "(?<" + std::string(reader_.pattern.substr(reader_.at + 1, end - reader_.at - 1)) + ">";
        reader_.at = end + 1;
      } else {
        return options(flags, depth);
      }
    } else if (reader_.peek() == '*') {
      return reader_.fail(Code::kUnimplemented, "(* is not known");
    }
    return closed(std::move(opened), flags, depth, is_place);
  }

  base::Result<Atom> closed(std::string opened, const Flags& flags, int depth, bool is_place) {
    SLUICE_TRY(const std::string inner, alternatives(flags, depth + 1));
    if (!reader_.eat(")")) return reader_.fail(Code::kInvalidArgument, "a missing closing parenthesis");
    return Atom{is_place ? Kind::kPlace : Kind::kOne, 0, opened + inner + ")"};
  }

  // Reads (?i-m:…) or (?i). The latter holds up to the end of its group, including all later alternatives.
  base::Result<Atom> options(Flags flags, int depth) {
    bool on = true;
    for (; !reader_.ended() && reader_.peek() != ':' && reader_.peek() != ')'; ++reader_.at) {
      switch (reader_.peek()) {
        case '-':
          on = false;
          break;
        case 'i':
          flags.fold = on;
          break;
        case 'm':
          flags.any = on;
          break;
        case 'x':
          flags.extended = on;
          break;
        default:
          return reader_.fail(Code::kUnimplemented, "(?", reader_.peek(),
                              "…) is not known: known are (?imx), (?:…), "
                              "(?=…), (?!…), (?<=…), (?<!…), (?>…), (?<name>…) and (?#…)");
      }
    }
    if (reader_.eat(":")) return closed("(?:", flags, depth, false);
    if (!reader_.eat(")")) return reader_.fail(Code::kInvalidArgument, "a missing closing parenthesis");
    SLUICE_TRY(const std::string rest, alternatives(flags, depth + 1));
    return Atom{Kind::kOption, 0, "(?:" + rest + ")"};
  }

  PatternReader reader_;
  bool named_ = false;  // there are named groups, so groups without a name do not capture
};

}  // namespace

base::Result<std::string> ruby_to_pcre(std::string_view pattern) { return Translator(pattern).all(); }

}  // namespace sluice::text
