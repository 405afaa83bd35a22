#include <unicode/uchar.h>
#include <unicode/unorm2.h>

#include <algorithm>
#include <optional>

#include "sluice/base/check.h"
#include "sluice/text/steps/normalizer.h"

namespace sluice::text {
namespace {

struct Item {
  char32_t code;
  std::ptrdiff_t change;  // as in Rewriter::change
  std::uint8_t ccc;       // canonical combining class
};

const UNormalizer2* table(bool compatible) {
  UErrorCode status = U_ZERO_ERROR;
  const UNormalizer2* table = compatible ? unorm2_getNFKCInstance(&status) : unorm2_getNFCInstance(&status);
  SLUICE_CHECK(U_SUCCESS(status), "ICU has its tables of normal forms");
  return table;
}

Item item_of(char32_t code, std::ptrdiff_t change) {
  return {code, change, u_getCombiningClass(static_cast<UChar32>(code))};
}

// Decomposes all characters, and puts marks in their canonical order.
std::vector<Item> decompose(const UNormalizer2* forms, std::string_view text) {
  std::vector<Item> items;
  items.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char32_t code = next_code_point(text, at);
    UChar parts[64];
    UErrorCode status = U_ZERO_ERROR;
    const int32_t length =
        code < 0x80 ? -1 : unorm2_getDecomposition(forms, static_cast<UChar32>(code), parts, 64, &status);
    if (length < 0) {
      items.push_back(item_of(code, 0));
      continue;
    }
    for (int32_t i = 0; i < length;) {
      UChar32 part;
      const bool first = i == 0;
      U16_NEXT(parts, i, length, part);
      items.push_back(item_of(static_cast<char32_t>(part), first ? 0 : 1));
    }
  }
  for (auto run = items.begin(); run != items.end();) {
    if (run->ccc == 0) {
      ++run;
      continue;
    }
    const auto end = std::find_if(run, items.end(), [](const Item& item) { return item.ccc == 0; });
    std::stable_sort(run, end, [](const Item& a, const Item& b) { return a.ccc < b.ccc; });
    run = end;
  }
  return items;
}

// UAX 15: joins each mark that is not blocked with its starter if the two have a composite.
class Composer {
 public:
  explicit Composer(std::vector<Item>& out) : out_(out) {}

  void add(const UNormalizer2* forms, const Item& item) {
    if (!starter_) {
      if (item.ccc == 0) {
        starter_ = item;
      } else {
        out_.push_back(item);
      }
      return;
    }
    const bool blocked = !marks_.empty() && marks_.back().ccc >= item.ccc;
    if (!blocked) {
      const UChar32 both =
          unorm2_composePair(forms, static_cast<UChar32>(starter_->code), static_cast<UChar32>(item.code));
      if (both >= 0) {
        starter_ = Item{static_cast<char32_t>(both), starter_->change + item.change - 1, 0};
        return;
      }
    }
    if (item.ccc == 0) {
      flush();
      starter_ = item;
    } else {
      marks_.push_back(item);
    }
  }

  void flush() {
    if (starter_) out_.push_back(*starter_);
    out_.insert(out_.end(), marks_.begin(), marks_.end());
    starter_.reset();
    marks_.clear();
  }

 private:
  std::vector<Item>& out_;
  std::optional<Item> starter_;
  std::vector<Item> marks_;
};

// Characters below these limits do not change in NFC.
bool all_below(std::string_view text, char32_t limit) {
  for (std::size_t at = 0; at < text.size();)
    if (next_code_point(text, at) >= limit) return false;
  return true;
}

}  // namespace

void normalize(NormalForm form, AlignedText& text) {
  if (is_ascii(text.text())) return;
  if (form == NormalForm::kNfc && all_below(text.text(), 0x300)) return;
  const UNormalizer2* forms = table(form == NormalForm::kNfkc || form == NormalForm::kNfkd);
  std::vector<Item> items = decompose(forms, text.text());
  if (form == NormalForm::kNfc || form == NormalForm::kNfkc) {
    std::vector<Item> composed;
    composed.reserve(items.size());
    Composer composer(composed);
    for (const Item& item : items) composer.add(forms, item);
    composer.flush();
    items = std::move(composed);
  }
  Rewriter rewriter(text);
  for (const Item& item : items) rewriter.change(item.code, item.change);
  rewriter.finish();
}

}  // namespace sluice::text
