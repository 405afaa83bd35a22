#include "sluice/text/steps/unicode_scripts.h"

#include <algorithm>

#include "sluice/text/characters/properties.h"
#include "sluice/text/characters/unicode.h"

namespace sluice::text {
namespace {

struct ScriptRange {
  char32_t first, last;
  std::size_t script;
};
constexpr std::size_t kAny = static_cast<std::size_t>(-1);

// Short names with four letters of properties that are not scripts.
constexpr std::string_view kNoScripts =
    "ahex cwcf cwcm dash emod ideo idsb idst idsu incb mark math oidc oids term word xidc xids zzzz";

bool is_script(std::string_view name) {
  return name.size() == 4 && name[0] != '[' && kNoScripts.find(name) == std::string_view::npos;
}

std::vector<ScriptRange> read_scripts() {
  const CodePoints unknown = property("=noscript");
  std::size_t han = 0;
  std::vector<ScriptRange> ranges;
  for (std::size_t i = 0; i < kPropertyCount; ++i) {
    std::string_view names = kProperties[i].names, script;
    while (!names.empty()) {
      const std::string_view name = names.substr(0, names.find(' '));
      if (is_script(name)) script = name;
      names.remove_prefix(std::min(name.size() + 1, names.size()));
    }
    if (script.empty()) continue;
    if (script == "hani") han = i;
    const CodePoints known = property(script).without(unknown);
    for (const auto& [first, last] : known.ranges()) ranges.push_back({first, last, i});
  }
  // Hiragana and Katakana count as Han.
  for (const char* const name : {"hira", "kana"}) {
    const CodePoints& set = property(name);
    for (ScriptRange& range : ranges)
      if (set.has(range.first)) range.script = han;
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const ScriptRange& a, const ScriptRange& b) { return a.first < b.first; });
  return ranges;
}

std::size_t script_of(char32_t code) {
  static const auto* const ranges = new std::vector<ScriptRange>(read_scripts());
  if (code == 0x30FC) code = U'一';
  const auto behind =
      std::upper_bound(ranges->begin(), ranges->end(), code,
                       [](char32_t value, const ScriptRange& range) { return value < range.first; });
  return behind == ranges->begin() || code > (behind - 1)->last ? kAny : (behind - 1)->script;
}

}  // namespace

void split_at_scripts(std::string_view text, std::vector<Span>& pieces) {
  std::vector<Span> parts;
  for (const Span& piece : pieces) {
    std::size_t last = kAny;
    bool begun = false;
    for (std::size_t at = piece.begin; at < piece.end;) {
      const auto begin = static_cast<std::uint32_t>(at);
      const std::size_t script = script_of(next_code_point(text, at));
      if (script == kAny) {
        if (begun) parts.back().end = static_cast<std::uint32_t>(at);
        continue;
      }
      if (!begun || script != last) parts.push_back({begin, begin});
      parts.back().end = static_cast<std::uint32_t>(at);
      begun = true;
      last = script;
    }
  }
  pieces = std::move(parts);
}

}  // namespace sluice::text
