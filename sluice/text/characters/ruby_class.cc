#include "sluice/text/characters/ruby_class.h"

#include <algorithm>

#include "sluice/base/text/lower_case.h"
#include "sluice/text/characters/properties.h"
#include "sluice/text/characters/unicode.h"

namespace sluice::text {
namespace {

constexpr int kMaxNested = 32;

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 16;
}

// Reads up to `most` digits; nullopt if there is no digit.
std::optional<char32_t> read_digits(PatternReader& reader, int base, int most) {
  char32_t value = 0;
  int count = 0;
  for (; count < most && digit_of(reader.peek()) < base; ++count, ++reader.at)
    value = value * static_cast<char32_t>(base) + static_cast<char32_t>(digit_of(reader.peek()));
  return count == 0 ? std::nullopt : std::optional(value);
}

base::Result<char32_t> checked(const PatternReader& reader, std::optional<char32_t> code) {
  if (!code || *code > kLastCodePoint || (*code >= 0xD800 && *code <= 0xDFFF))
    return reader.fail(Code::kInvalidArgument, "expected the number of a code point");
  return *code;
}

// Reads {41}, after \x or \o.
base::Result<char32_t> read_braced(PatternReader& reader, int base) {
  reader.eat("{");
  const std::optional<char32_t> code = read_digits(reader, base, base == 16 ? 8 : 11);
  if (code && (reader.peek() == ' ' || reader.peek() == '-'))
    return reader.fail(Code::kUnimplemented,
                       "several code points between one pair of braces: write each in its own pair");
  if (!reader.eat("}")) return reader.fail(Code::kInvalidArgument, "expected } after a number");
  return checked(reader, code);
}

// Reads the bytes after \x as one character of UTF-8, each further byte with its own \x.
base::Result<char32_t> read_bytes(PatternReader& reader) {
  if (reader.peek() == '{') return read_braced(reader, 16);
  std::string bytes;
  do {
    const std::optional<char32_t> byte = read_digits(reader, 16, 2);
    if (!byte) return reader.fail(Code::kInvalidArgument, "expected a hexadecimal number after \\x");
    bytes += static_cast<char>(*byte);
  } while (bytes.size() < std::min<std::size_t>(utf8_length(bytes[0]), 4) && reader.eat("\\x"));
  if (first_invalid_utf8(bytes) != std::string_view::npos)
    return reader.fail(Code::kInvalidArgument, "\\x gives bytes that are not UTF-8: write \\u or \\x{…}");
  std::size_t at = 0;
  return next_code_point(bytes, at);
}

// Whether the property is named "word". Within a class Oniguruma treats it as [:word:], like \w.
bool is_word_class(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (c != ' ' && c != '_' && c != '-') plain += base::lower_case(c);
  return plain == "word";
}

base::Result<CodePoints> read_property(PatternReader& reader, bool negated, bool in_class) {
  const std::size_t end = reader.pattern.find('}', reader.at);
  if (end == std::string_view::npos) return reader.fail(Code::kInvalidArgument, "\\p{ without }");
  std::string_view name = reader.pattern.substr(reader.at, end - reader.at);
  if (!name.empty() && name[0] == '^') {
    negated = !negated;
    name.remove_prefix(1);
  }
  std::optional<CodePoints> found;
  if (in_class && is_word_class(name)) {
    found = property("[:word:]");
  } else if (name.find_first_of(":=[]") == std::string_view::npos) {
    found = find_property(name);
  }
  if (!found) return reader.fail(Code::kInvalidArgument, "Oniguruma has no property '", name, "'");
  reader.at = end + 1;
  return negated ? found->complement() : *found;
}

// The set of \w outside of classes, which there also contains ² ³ ¹ ¼ ½ ¾ in Oniguruma.
const CodePoints& word_outside() {
  static const auto* const set = [] {
    auto* made = new CodePoints(property("[:word:]"));
    made->add(CodePoints({{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}}));
    return made;
  }();
  return *set;
}

std::optional<CodePoints> set_of(char letter, bool in_class) {
  switch (letter) {
    case 'w':
      return in_class ? property("[:word:]") : word_outside();
    case 'd':
      return property("[:digit:]");
    case 's':
      return property("[:space:]");
    case 'h':
      return property("[:xdigit:]");
    case 'W':
    case 'D':
    case 'S':
    case 'H':
      return set_of(static_cast<char>(letter + 'a' - 'A'), in_class)->complement();
    default:
      return std::nullopt;
  }
}

char32_t control_of(char letter, bool in_class) {
  switch (letter) {
    case 't':
      return '\t';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case 'a':
      return '\a';
    case 'e':
      return 0x1B;
    case 'b':
      return in_class ? '\b' : 0;
    default:
      return 0;
  }
}

// Reads [:name:] or [:^name:] after the first bracket; nullopt for a class that begins with a colon.
base::Result<std::optional<CodePoints>> read_posix(PatternReader& reader) {
  const std::size_t end = reader.pattern.find(":]", reader.at + 1);
  if (end == std::string_view::npos) return std::optional<CodePoints>();
  std::string_view name = reader.pattern.substr(reader.at + 1, end - reader.at - 1);
  const bool negated = !name.empty() && name[0] == '^';
  if (negated) name.remove_prefix(1);
  if (std::any_of(name.begin(), name.end(), [](char c) { return c < 'a' || c > 'z'; }))
    return std::optional<CodePoints>();
  const auto found = find_property(base::str("[:", name, ":]"));
  if (!found) return reader.fail(Code::kInvalidArgument, "Oniguruma has no POSIX bracket [:", name, ":]");
  reader.at = end + 2;
  return std::optional(negated ? found->complement() : *found);
}

// Reads an item of a class: a code point or a set.
base::Result<Escaped> read_item(PatternReader& reader, int depth) {
  if (reader.eat("\\")) return read_escape(reader, true);
  if (reader.eat("[")) {
    if (reader.peek() == ':') {
      SLUICE_TRY(const auto posix, read_posix(reader));
      if (posix) return Escaped{std::nullopt, *posix};
    }
    SLUICE_TRY(const CharacterClass inner, read_class(reader, depth + 1));
    return Escaped{std::nullopt, inner.negated ? inner.set.complement() : inner.set};
  }
  return Escaped{next_code_point(reader.pattern, reader.at), {}};
}

}  // namespace

base::Result<Escaped> read_escape(PatternReader& reader, bool in_class) {
  if (reader.ended()) return reader.fail(Code::kInvalidArgument, "a backslash at the end");
  const char letter = reader.peek();
  if (auto set = set_of(letter, in_class)) {
    ++reader.at;
    return Escaped{std::nullopt, *std::move(set)};
  }
  if ((letter == 'p' || letter == 'P') && reader.peek(1) == '{') {
    reader.at += 2;
    SLUICE_TRY(CodePoints set, read_property(reader, letter == 'P', in_class));
    return Escaped{std::nullopt, std::move(set)};
  }
  if (letter >= '0' && letter <= '7') return Escaped{read_digits(reader, 8, 3), {}};
  if (letter == 'c' || ((letter == 'C' || letter == 'M') && reader.peek(1) == '-')) {
    const char c = reader.peek(letter == 'c' ? 1 : 2);
    if (letter == 'M' || c == '\\' || c <= 0)
      return reader.fail(Code::kUnimplemented, "\\", letter, " with anything but a plain letter: write \\u");
    reader.at += letter == 'c' ? 2 : 3;
    return Escaped{c == '?' ? 0x7F : static_cast<char32_t>(c & 0x1F), {}};
  }
  const std::size_t begin = reader.at;
  const char32_t code = next_code_point(reader.pattern, reader.at);
  if (const char32_t control = control_of(letter, in_class)) return Escaped{control, {}};
  if (letter == 'o' && reader.peek() == '{') {
    SLUICE_TRY(const char32_t value, read_braced(reader, 8));
    return Escaped{value, {}};
  }
  if (letter == 'x') {
    SLUICE_TRY(const char32_t value, read_bytes(reader));
    return Escaped{value, {}};
  }
  if (letter == 'u') {
    const auto value = read_digits(reader, 16, 4);
    if (reader.at != begin + 5) return reader.fail(Code::kInvalidArgument, "expected four digits after \\u");
    SLUICE_TRY(const char32_t checked_value, checked(reader, value));
    return Escaped{checked_value, {}};
  }
  return Escaped{code, {}};
}

base::Result<CharacterClass> read_class(PatternReader& reader, int depth) {
  if (depth > kMaxNested)
    return reader.fail(Code::kInvalidArgument, "classes within classes, deeper than ", kMaxNested);
  CharacterClass made;
  made.negated = reader.eat("^");
  std::vector<CodePoints::Range> current;
  std::optional<CodePoints> left;  // the left operand of &&
  const auto close_part = [&] {
    CodePoints part(std::move(current));
    current.clear();
    left = left ? left->intersection(part) : std::move(part);
  };
  bool may_range = true;  // whether the previous item can begin a range
  for (bool first = true;; first = false) {
    if (reader.ended()) return reader.fail(Code::kInvalidArgument, "a class without ]");
    if (!first && reader.eat("]")) break;
    if (first && reader.peek() == ']' && reader.pattern.find(']', reader.at + 1) == std::string_view::npos)
      return reader.fail(Code::kInvalidArgument, "an empty class");
    if (reader.eat("&&")) {
      close_part();
      continue;
    }
    const bool dash = reader.peek() == '-' && !first && reader.peek(1) != ']';
    if (dash && !may_range && reader.pattern.substr(reader.at + 1, 2) != "&&")
      return reader.fail(Code::kInvalidArgument, "a - that begins or ends no range: write \\-");
    SLUICE_TRY(const Escaped item, read_item(reader, depth));
    may_range = item.code.has_value();
    if (!item.code) {
      const auto& ranges = item.set.ranges();
      current.insert(current.end(), ranges.begin(), ranges.end());
      continue;
    }
    char32_t last = *item.code;
    if (reader.peek() == '-' && reader.peek(1) != ']' && reader.pattern.substr(reader.at + 1, 2) != "&&") {
      if (reader.peek(1) == '[')
        return reader.fail(Code::kUnimplemented, "a - before a class within a class: write \\-");
      ++reader.at;
      SLUICE_TRY(const Escaped end, read_item(reader, depth));
      if (!end.code || *end.code < last)
        return reader.fail(Code::kInvalidArgument, "a range that ends before it begins, or at a set");
      last = *end.code;
      // [a-c-e]: a dash after a range stands for itself.
      if (reader.peek() == '-' && reader.peek(1) != ']') {
        ++reader.at;
        current.push_back({'-', '-'});
      }
    }
    current.push_back({*item.code, last});
  }
  close_part();
  made.set = *std::move(left);
  return made;
}

}  // namespace sluice::text
