#include <cstring>
#include <optional>

#include "sluice/base/formats/base64.h"
#include "sluice/text/steps/normalizer.h"

namespace sluice::text {
namespace {

// Longer grapheme clusters are looked up by character, as in SentencePiece.
constexpr std::size_t kLongGrapheme = 6;

class Precompiled : public Normalizer {
 public:
  Precompiled(std::vector<std::uint32_t> units, std::string texts)
      : units_(std::move(units)), texts_(std::move(texts)) {}

  base::Status apply(AlignedText& text) const override {
    const std::string_view from = text.text();
    std::vector<std::pair<char32_t, std::ptrdiff_t>> changes;
    changes.reserve(from.size());
    bool modified = false;
    Graphemes graphemes(from);
    for (std::size_t begin = 0, end = 0; graphemes.next(begin, end);) {
      const std::string_view whole = from.substr(begin, end - begin);
      if (const auto found = whole.size() < kLongGrapheme ? replacement(whole) : std::nullopt) {
        replace(whole, *found, changes);
        modified = true;
        continue;
      }
      for (std::size_t at = 0; at < whole.size();) {
        const std::size_t first = at;
        const char32_t code = next_code_point(whole, at);
        const std::string_view one = whole.substr(first, at - first);
        if (const auto found = replacement(one)) {
          replace(one, *found, changes);
          modified = true;
        } else {
          changes.emplace_back(code, 0);
        }
      }
    }
    if (!modified) return {};
    Rewriter rewriter(text);
    for (const auto& [code, change] : changes) rewriter.change(code, change);
    rewriter.finish();
    return {};
  }

 private:
  // Returns the text of the shortest key that `key` begins with.
  std::optional<std::string_view> replacement(std::string_view key) const {
    std::size_t node = offset_of(units_[0]);
    for (const char c : key) {
      const auto label = static_cast<unsigned char>(c);
      if (label == 0) break;
      node ^= label;
      if (node >= units_.size() || (units_[node] & 0x800000FFu) != label) return std::nullopt;
      const std::uint32_t unit = units_[node];
      node ^= offset_of(unit);
      if (node >= units_.size()) return std::nullopt;
      if ((unit >> 8 & 1) == 0) continue;
      const std::size_t place = units_[node] & 0x7FFFFFFFu;
      if (place >= texts_.size()) return std::nullopt;
      return std::string_view(texts_.c_str() + place);
    }
    return std::nullopt;
  }

  static std::size_t offset_of(std::uint32_t unit) {
    return static_cast<std::size_t>(unit >> 10) << ((unit & 0x200u) >> 6);
  }

  static void replace(std::string_view before, std::string_view after,
                      std::vector<std::pair<char32_t, std::ptrdiff_t>>& changes) {
    const auto more = static_cast<std::ptrdiff_t>(count_code_points(after)) -
                      static_cast<std::ptrdiff_t>(count_code_points(before));
    for (std::size_t at = 0; at < after.size();) changes.emplace_back(next_code_point(after, at), 0);
    for (std::ptrdiff_t i = 0; i < more; ++i)
      changes[changes.size() - 1 - static_cast<std::size_t>(i)].second = 1;
    if (more < 0 && !changes.empty()) changes.back().second += more;
  }

  const std::vector<std::uint32_t> units_;
  const std::string texts_;  // each ends with a NUL
};

}  // namespace

base::Result<std::unique_ptr<const Normalizer>> read_precompiled(const JsonObject& object) {
  SLUICE_TRY(const std::string coded, object.text("precompiled_charsmap"));
  auto decoded = base::bytes_of_base64(coded);
  if (!decoded) return object.fail("expected base64 as 'precompiled_charsmap'");
  std::string bytes = *std::move(decoded);
  std::uint32_t trie = 0;
  if (bytes.size() >= sizeof trie) std::memcpy(&trie, bytes.data(), sizeof trie);
  if (trie < 4 || trie % 4 != 0 || trie > bytes.size() - sizeof trie)
    return object.fail("expected a table of ", trie, " bytes and its texts in 'precompiled_charsmap', found ",
                       bytes.size(), " bytes");
  std::vector<std::uint32_t> units(trie / 4);
  std::memcpy(units.data(), bytes.data() + sizeof trie, trie);
  std::string texts = bytes.substr(sizeof trie + trie);
  if (first_invalid_utf8(texts) != std::string_view::npos)
    return object.fail("the texts of 'precompiled_charsmap' are not UTF-8");
  return std::make_unique<const Precompiled>(std::move(units), std::move(texts));
}

}  // namespace sluice::text
