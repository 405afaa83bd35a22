#include "sluice/text/characters/pcre_class.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>

#include "sluice/base/check.h"
#include "sluice/base/text/join.h"
#include "sluice/text/characters/properties.h"
#include "sluice/text/characters/unicode.h"

namespace sluice::text {
namespace {

// A whole general category is tried before its parts.
constexpr const char* kCategories[] = {"L",  "M",  "N",  "P",  "S",  "Z",  "Lu", "Ll", "Lt", "Lm",
                                       "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
                                       "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So"};
// Planes 4 to 13 and 15 to 16 have no characters of these categories.
constexpr CodePoints::Range kAssigned[] = {{0, 0xD7FF}, {0xE000, 0x33FFF}, {0xE0000, 0xE0FFF}};

// A code point in plane 5, where nothing is assigned.
constexpr char32_t kNever = 0x50005;

// Returns the characters of a category in PCRE2's own version of Unicode, which is a different one.
CodePoints measure(const std::string& category) {
  static const auto* const everything = [] {
    auto* text = new std::string;
    for (const auto& [first, last] : kAssigned)
      for (char32_t code = first; code <= last; ++code) append_utf8(*text, code);
    return text;
  }();
  const std::string pattern = "\\p{" + category + "}+";
  int error = 0;
  PCRE2_SIZE place = 0;
  pcre2_code* const code = pcre2_compile(reinterpret_cast<PCRE2_SPTR8>(pattern.data()), pattern.size(),
                                         PCRE2_UTF, &error, &place, nullptr);
  SLUICE_CHECK(code != nullptr, pattern);
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  pcre2_match_data* const match = pcre2_match_data_create(1, nullptr);
  std::vector<CodePoints::Range> ranges;
  for (std::size_t from = 0; pcre2_match(code, reinterpret_cast<PCRE2_SPTR8>(everything->data()),
                                         everything->size(), from, PCRE2_NO_UTF_CHECK, match, nullptr) > 0;) {
    const PCRE2_SIZE* const places = pcre2_get_ovector_pointer(match);
    std::size_t begin = places[0], last = previous_begin(*everything, places[1]);
    from = places[1];
    const char32_t first = next_code_point(*everything, begin);
    ranges.push_back({first, next_code_point(*everything, last)});
  }
  pcre2_match_data_free(match);
  pcre2_code_free(code);
  return CodePoints(std::move(ranges));
}

const CodePoints& category_of_pcre(const std::string& category) {
  static auto* const kept = new std::map<std::string, CodePoints>;
  static auto* const mutex = new std::mutex;
  const std::lock_guard lock(*mutex);
  const auto known = kept->find(category);
  return known != kept->end() ? known->second : kept->emplace(category, measure(category)).first->second;
}

struct Written {
  std::string text;
  std::size_t parts = 0;
};

std::string in_class(char32_t code) {
  const bool plain =
      (code >= '0' && code <= '9') || (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z');
  if (plain) return std::string(1, static_cast<char>(code));
  char text[16];
  std::snprintf(text, sizeof text, "\\x{%X}", static_cast<unsigned>(code));
  return text;
}

Written parts_of(const CodePoints& set) {
  Written made;
  CodePoints rest = set;
  constexpr std::size_t kFewRanges = 12;
  for (const char* const category : kCategories) {
    if (rest.ranges().size() <= kFewRanges) break;
    if (!property(category).without(rest).empty()) continue;
    const CodePoints& own = category_of_pcre(category);
    if (!own.without(set).empty()) continue;
    CodePoints left = rest.without(own);
    if (left.ranges().size() + 1 >= rest.ranges().size()) continue;
    rest = std::move(left);
    made.text += base::str("\\p{", category, "}");
    ++made.parts;
  }
  // PCRE2 keeps the first 256 in a bitmap, which it tests first. Large ranges come first, as they match more
  // often.
  const CodePoints bitmap({{0, 0xFF}});
  std::vector<CodePoints::Range> ranges = rest.without(bitmap).ranges();
  std::stable_sort(ranges.begin(), ranges.end(),
                   [](const auto& a, const auto& b) { return a.last - a.first > b.last - b.first; });
  const CodePoints latin = set.intersection(bitmap);
  ranges.insert(ranges.begin(), latin.ranges().begin(), latin.ranges().end());
  for (auto [first, last] : ranges) {
    if (first >= 0xD800 && first <= 0xDFFF) first = 0xE000;
    if (last >= 0xD800 && last <= 0xDFFF) last = 0xD7FF;
    if (first > last) continue;
    made.text += in_class(first);
    if (first < last) made.text += "-" + in_class(last);
    ++made.parts;
  }
  return made;
}

}  // namespace

std::string pcre_character(char32_t code) {
  if (code >= 0x80) {
    std::string text;
    append_utf8(text, code);
    return text;
  }
  return in_class(code);
}

std::string pcre_class(const CodePoints& set) {
  if (set.empty()) return "(?!)";
  const auto& ranges = set.ranges();
  if (ranges.size() == 1 && ranges[0].first == ranges[0].last) return pcre_character(ranges[0].first);
  const CodePoints others = set.complement();
  if (others.empty()) return "(?s:.)";
  // Unassigned code points make too many ranges: a set with them is written by negating its complement.
  const bool negated = set.has(kNever);
  const Written written = parts_of(negated ? others : set);
  if (written.parts == 0) return negated ? "(?s:.)" : "(?!)";
  return (negated ? "[^" : "[") + written.text + "]";
}

}  // namespace sluice::text
