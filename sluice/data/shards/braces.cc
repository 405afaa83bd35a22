// Brace expansion with the rules that WebDataset users know from Python's `braceexpand`.
#include <algorithm>
#include <charconv>
#include <optional>

#include "sluice/base/text/strings.h"
#include "sluice/data/shards/urls.h"

namespace sluice::data {
namespace {

using Strings = std::vector<std::string>;
constexpr std::size_t kMaxStrings = 10'000'000;

base::Result<Strings> expand_pattern(std::string_view pattern, std::string_view whole);

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_padded(std::string_view number) {
  if (base::starts_with(number, "-")) number.remove_prefix(1);
  return number.size() > 1 && number.front() == '0';
}

std::string padded(std::int64_t value, std::size_t width) {
  std::string digits = std::to_string(value < 0 ? -value : value);
  const std::size_t sign = value < 0 ? 1 : 0;
  if (digits.size() + sign < width) digits.insert(0, width - sign - digits.size(), '0');
  return (sign != 0 ? "-" : "") + digits;
}

// Returns the parts of "a..b" or "a..b..c"; empty if it does not have that form.
std::vector<std::string_view> range_parts(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t dots; (dots = text.find("..")) != std::string_view::npos;) {
    parts.push_back(text.substr(0, dots));
    text.remove_prefix(dots + 2);
  }
  parts.push_back(text);
  return parts.size() == 2 || parts.size() == 3 ? parts : std::vector<std::string_view>{};
}

base::Result<Strings> number_range(std::int64_t first, std::int64_t last, std::int64_t step,
                                   std::size_t width, std::string_view whole) {
  const auto distance = static_cast<std::uint64_t>(first < last ? last - first : first - last);
  if (distance / static_cast<std::uint64_t>(step) >= kMaxStrings)
    return base::fail(Code::kInvalidArgument, "'", whole, "' stands for more than ", kMaxStrings, " shards");
  Strings strings;
  if (first <= last) {
    for (std::int64_t value = first; value <= last; value += step) strings.push_back(padded(value, width));
  } else {
    for (std::int64_t value = first; value >= last; value -= step) strings.push_back(padded(value, width));
  }
  return strings;
}

// Returns a letter's number: A…Z, then a…z.
int letter_index(std::string_view text) {
  if (text.size() != 1) return -1;
  const char c = text[0];
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return 26 + c - 'a';
  return -1;
}

std::string letter(int index) { return {static_cast<char>(index < 26 ? 'A' + index : 'a' + index - 26)}; }

// Returns the strings of a range; nothing if the text between the braces is not one.
base::Result<std::optional<Strings>> expand_range(std::string_view text, std::string_view whole) {
  const auto parts = range_parts(text);
  if (parts.empty()) return std::optional<Strings>();
  std::int64_t step = 1;
  if (parts.size() == 3) {
    const auto given = parse_number(parts[2]);
    if (!given || *given == INT64_MIN) return std::optional<Strings>();
    step = *given == 0 ? 1 : std::abs(*given);
  }
  const auto first = parse_number(parts[0]), last = parse_number(parts[1]);
  constexpr std::int64_t kFar = INT64_MAX / 4;
  if (first && last && std::abs(*first) < kFar && std::abs(*last) < kFar && step < kFar) {
    const bool pad = is_padded(parts[0]) || is_padded(parts[1]);
    SLUICE_TRY(auto strings, number_range(*first, *last, step,
                                          pad ? std::max(parts[0].size(), parts[1].size()) : 0, whole));
    return std::optional<Strings>(std::move(strings));
  }
  const int from = letter_index(parts[0]), to = letter_index(parts[1]);
  if (from < 0 || to < 0) return std::optional<Strings>();
  Strings strings;
  const int stride = static_cast<int>(std::min<std::int64_t>(step, 52));
  for (int i = from; from <= to ? i <= to : i >= to; i += from <= to ? stride : -stride)
    strings.push_back(letter(i));
  return std::optional<Strings>(std::move(strings));
}

// Expands each part of {a,b,…}; returns nothing if there is no comma at this depth.
base::Result<std::optional<Strings>> expand_choice(std::string_view text, std::string_view whole) {
  Strings strings;
  std::size_t start = 0;
  int depth = 0;
  bool choice = false;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '\\') {
      ++i;
      continue;
    }
    if (i < text.size() && text[i] == '{') ++depth;
    if (i < text.size() && text[i] == '}') --depth;
    if (i == text.size() ? !choice : text[i] != ',' || depth != 0) continue;
    choice = true;
    SLUICE_TRY(auto part, expand_pattern(text.substr(start, i - start), whole));
    strings.insert(strings.end(), part.begin(), part.end());
    start = i + 1;
  }
  if (!choice) return std::optional<Strings>();
  return std::optional<Strings>(std::move(strings));
}

// Expands the text between one pair of braces.
base::Result<Strings> expand_group(std::string_view text, std::string_view whole) {
  SLUICE_TRY(auto range, expand_range(text, whole));
  if (range) return *range;
  SLUICE_TRY(auto choice, expand_choice(text, whole));
  if (choice) return *choice;
  SLUICE_TRY(auto inner, expand_pattern(text, whole));
  for (std::string& string : inner) string = "{" + string + "}";
  return inner;
}

base::Status append_each(Strings& heads, const Strings& tails, std::string_view whole) {
  if (heads.size() > kMaxStrings / std::max<std::size_t>(tails.size(), 1))
    return base::fail(Code::kInvalidArgument, "'", whole, "' stands for more than ", kMaxStrings, " shards");
  Strings product;
  product.reserve(heads.size() * tails.size());
  for (const std::string& head : heads)
    for (const std::string& tail : tails) product.push_back(head + tail);
  heads = std::move(product);
  return {};
}

base::Result<Strings> expand_pattern(std::string_view pattern, std::string_view whole) {
  Strings strings{""};
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      ++i;
    } else if (pattern[i] == '{') {
      if (depth++ == 0) {
        SLUICE_OK(append_each(strings, {std::string(pattern.substr(start, i - start))}, whole));
        start = i;
      }
    } else if (pattern[i] == '}') {
      if (--depth < 0) break;
      if (depth == 0) {
        SLUICE_TRY(auto group, expand_group(pattern.substr(start + 1, i - start - 1), whole));
        SLUICE_OK(append_each(strings, group, whole));
        start = i + 1;
      }
    }
  }
  if (depth != 0)
    return base::fail(Code::kInvalidArgument, "'", whole,
                      "' has unbalanced braces: expected a } for every {; ",
                      "write \\{ for a brace that belongs to the name");
  SLUICE_OK(append_each(strings, {std::string(pattern.substr(start))}, whole));
  return strings;
}

std::string without_escapes(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    result += text[i];
  }
  return result;
}

}  // namespace

base::Result<Strings> expand_braces(std::string_view pattern) {
  SLUICE_TRY(auto strings, expand_pattern(pattern, pattern));
  for (std::string& string : strings) string = without_escapes(string);
  return strings;
}

}  // namespace sluice::data
