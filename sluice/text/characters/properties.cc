#include "sluice/text/characters/properties.h"

#include <unicode/uchar.h>
#include <unicode/uset.h>
#include <unicode/ustring.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>

#include "sluice/base/check.h"
#include "sluice/base/text/lower_case.h"

namespace sluice::text {
namespace {

// A number is written with five bits a character, the lowest first; its last character is among the first 32.
constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+-";

std::vector<char32_t> places_of(std::size_t index) {
  std::vector<char32_t> own;
  char32_t place = 0, number = 0;
  int shift = 0;
  for (const char* at = kProperties[index].places; *at != '\0'; ++at) {
    const auto digit = static_cast<char32_t>(kDigits.find(*at));
    number |= (digit & 31) << shift;
    shift += 5;
    if (digit >= 32) continue;
    place += number;
    own.push_back(place);
    number = 0;
    shift = 0;
  }
  const int base = kProperties[index].base;
  if (base < 0) return own;
  const std::vector<char32_t> other = places_of(static_cast<std::size_t>(base));
  std::vector<char32_t> all;
  std::set_symmetric_difference(own.begin(), own.end(), other.begin(), other.end(), std::back_inserter(all));
  return all;
}

// Case pairs of Unicode 16 that the oldest supported ICU lacks: upper, lower.
struct CasePair {
  char32_t upper, lower;
  char32_t count = 1;
};
constexpr CasePair kNewPairs[] = {{0x1C89, 0x1C8A}, {0xA7CB, 0x264}, {0xA7CC, 0xA7CD},
                                  {0xA7DA, 0xA7DB}, {0xA7DC, 0x19B}, {0x10D50, 0x10D70, 22}};

}  // namespace

std::optional<CodePoints> find_property(std::string_view name) {
  static const auto* const places = [] {
    auto* made = new std::map<std::string, std::size_t, std::less<>>;
    for (std::size_t i = 0; i < kPropertyCount; ++i) {
      std::string_view names = kProperties[i].names;
      while (!names.empty()) {
        const std::size_t end = std::min(names.find(' '), names.size());
        made->emplace(names.substr(0, end), i);
        names.remove_prefix(std::min(end + 1, names.size()));
      }
    }
    return made;
  }();
  std::string plain;
  for (const char c : name)
    if (c != ' ' && c != '_' && c != '-') plain += base::lower_case(c);
  const auto found = places->find(plain);
  if (found == places->end()) return std::nullopt;
  return CodePoints::of_places(places_of(found->second));
}

const CodePoints& property(std::string_view name) {
  static auto* const kept = new std::map<std::string, CodePoints, std::less<>>;
  static auto* const mutex = new std::mutex;
  const std::lock_guard lock(*mutex);
  const auto known = kept->find(name);
  if (known != kept->end()) return known->second;
  auto found = find_property(name);
  SLUICE_CHECK(found.has_value());
  return kept->emplace(std::string(name), *std::move(found)).first->second;
}

CodePoints close_over_case(const CodePoints& set) {
  USet* const closed = uset_openEmpty();
  for (const CodePoints::Range& range : set.ranges())
    uset_addRange(closed, static_cast<UChar32>(range.first), static_cast<UChar32>(range.last));
  uset_closeOver(closed, USET_CASE_INSENSITIVE);
  std::vector<CodePoints::Range> ranges;
  for (std::int32_t i = 0; i < uset_getItemCount(closed); ++i) {
    UChar32 first = 0, last = 0;
    UErrorCode error = U_ZERO_ERROR;
    // ICU lists texts of several characters after the ranges.
    if (uset_getItem(closed, i, &first, &last, nullptr, 0, &error) == 0)
      ranges.push_back({static_cast<char32_t>(first), static_cast<char32_t>(last)});
  }
  uset_close(closed);
  CodePoints all(std::move(ranges));
  for (const CasePair& pair : kNewPairs)
    for (char32_t i = 0; i < pair.count; ++i) {
      if (all.has(pair.upper + i)) all.add(pair.lower + i, pair.lower + i);
      if (all.has(pair.lower + i)) all.add(pair.upper + i, pair.upper + i);
    }
  return all;
}

std::u32string fold_case(char32_t code) {
  UChar source[2], folded[8];
  std::int32_t length = 0, count = 0;
  UErrorCode error = U_ZERO_ERROR;
  U16_APPEND_UNSAFE(source, length, code);
  count = u_strFoldCase(folded, 8, source, length, U_FOLD_CASE_DEFAULT, &error);
  std::u32string text;
  for (std::int32_t at = 0; at < count;) {
    UChar32 next = 0;
    U16_NEXT(folded, at, count, next);
    text += static_cast<char32_t>(next);
  }
  return text;
}

const std::vector<LongFold>& long_folds() {
  static const auto* const folds = [] {
    auto* made = new std::vector<LongFold>;
    for (const auto& [first, last] : {std::pair(U'\u00DF', U'\u1FFF'), std::pair(U'\uFB00', U'\uFB17')})
      for (char32_t code = first; code <= last; ++code)
        if (std::u32string folded = fold_case(code); folded.size() > 1)
          made->push_back({code, std::move(folded)});
    return made;
  }();
  return *folds;
}

}  // namespace sluice::text
