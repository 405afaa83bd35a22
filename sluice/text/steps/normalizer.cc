#include "sluice/text/steps/normalizer.h"

#include <functional>

#include "sluice/text/characters/byte_alphabet.h"
#include "sluice/text/characters/regex.h"

namespace sluice::text {
namespace {

using Made = base::Result<std::unique_ptr<const Normalizer>>;

// A normalizer that cannot fail and has no settings.
class Plain : public Normalizer {
 public:
  explicit Plain(void (*change)(AlignedText&)) : change_(change) {}
  base::Status apply(AlignedText& text) const override {
    change_(text);
    return {};
  }

 private:
  void (*const change_)(AlignedText&);
};

template <typename Keep>
void filter(AlignedText& text, const Keep& keep) {
  Rewriter rewriter(text);
  for (std::size_t at = 0; at < text.text().size();) {
    const std::size_t begin = at;
    const char32_t code = next_code_point(text.text(), at);
    if (keep(code)) {
      rewriter.keep(at - begin);
    } else {
      rewriter.drop(at - begin);
    }
  }
  rewriter.finish();
}

template <typename Change>
void map(AlignedText& text, const Change& change) {
  Rewriter rewriter(text);
  for (std::size_t at = 0; at < text.text().size();) rewriter.put(change(next_code_point(text.text(), at)));
  rewriter.finish();
}

void lower(AlignedText& text) {
  Rewriter rewriter(text);
  for (std::size_t at = 0; at < text.text().size();) {
    const char32_t code = next_code_point(text.text(), at);
    rewriter.put(lower_case(code));
    if (code == 0x130) rewriter.insert(0x307);
  }
  rewriter.finish();
}

void strip_accents(AlignedText& text) {
  if (is_ascii(text.text())) return;
  filter(text, [](char32_t code) { return !is_mark(code); });
}

void nmt(AlignedText& text) {
  filter(text, [](char32_t c) {
    return !((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
             c == 0x9F);
  });
  map(text, [](char32_t c) {
    const bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                       (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                       c == 0xFEFF || c == 0xFFFD;
    return space ? U' ' : c;
  });
}

void to_bytes(AlignedText& text) {
  Rewriter rewriter(text);
  for (std::size_t at = 0; at < text.text().size();) {
    const std::size_t begin = at;
    next_code_point(text.text(), at);
    rewriter.put(byte_alphabet()[static_cast<unsigned char>(text.text()[begin])]);
    for (std::size_t i = begin + 1; i < at; ++i)
      rewriter.insert(byte_alphabet()[static_cast<unsigned char>(text.text()[i])]);
  }
  rewriter.finish();
}

class Bert : public Normalizer {
 public:
  bool clean = true, chinese = true, accents = true, lowercase = true;

  base::Status apply(AlignedText& text) const override {
    if (clean) {
      filter(text, [](char32_t c) {
        return !(c == 0 || c == 0xFFFD || (is_control(c) && c != '\t' && c != '\n' && c != '\r'));
      });
      map(text, [](char32_t c) { return is_white_space(c) ? U' ' : c; });
    }
    if (chinese && !is_ascii(text.text())) separate_chinese(text);
    if (accents && !is_ascii(text.text())) {
      normalize(NormalForm::kNfd, text);
      filter(text, [](char32_t c) { return !is_nonspacing_mark(c); });
    }
    if (lowercase) lower(text);
    return {};
  }

 private:
  static bool is_chinese(char32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) ||
           (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
  }

  static void separate_chinese(AlignedText& text) {
    Rewriter rewriter(text);
    for (std::size_t at = 0; at < text.text().size();) {
      const char32_t code = next_code_point(text.text(), at);
      if (is_chinese(code)) {
        rewriter.put(' ');
        rewriter.insert(code);
        rewriter.insert(' ');
      } else {
        rewriter.put(code);
      }
    }
    rewriter.finish();
  }
};

class Replace : public Normalizer {
 public:
  Replace(Regex pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}

  base::Status apply(AlignedText& text) const override {
    if (text.text().empty()) return {};  // an empty text has no matches
    std::vector<Span> found;
    SLUICE_OK(pattern_.each(text.text(), [&](std::size_t begin, std::size_t end) {
      found.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
    }));
    if (found.empty()) return {};
    SLUICE_OK(text.check_size(text.text().size() + found.size() * content_.size()));
    Rewriter rewriter(text);
    for (const Span& match : found) {
      rewriter.keep(match.begin - rewriter.at());
      rewriter.insert_at(content_, match.end);
      rewriter.drop(match.end - match.begin);
    }
    rewriter.keep(text.text().size() - rewriter.at());
    rewriter.finish();
    return {};
  }

 private:
  const Regex pattern_;
  const std::string content_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  base::Status apply(AlignedText& text) const override {
    if (text.text().empty() || prefix_.empty()) return {};
    Rewriter rewriter(text);
    rewriter.prepend(prefix_);
    rewriter.keep(text.text().size());
    rewriter.finish();
    return {};
  }

 private:
  const std::string prefix_;
};

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  base::Status apply(AlignedText& text) const override {
    const std::string_view all = text.text();
    std::size_t begin = 0, end = all.size();
    for (std::size_t at = 0; left_ && at < all.size() && is_white_space(next_code_point(all, at));)
      begin = at;
    while (right_ && end > begin) {
      const std::size_t before = previous_begin(all, end);
      std::size_t at = before;
      if (!is_white_space(next_code_point(all, at))) break;
      end = before;
    }
    if (begin == 0 && end == all.size()) return {};
    Rewriter rewriter(text);
    rewriter.drop(begin);
    rewriter.keep(end - begin);
    rewriter.finish();
    return {};
  }

 private:
  const bool left_, right_;
};

class Sequence : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<const Normalizer>> parts) : parts_(std::move(parts)) {}
  base::Status apply(AlignedText& text) const override {
    for (const auto& part : parts_) {
      SLUICE_OK(part->apply(text));
      SLUICE_OK(text.check_size());
    }
    return {};
  }

 private:
  const std::vector<std::unique_ptr<const Normalizer>> parts_;
};

template <NormalForm form>
void to_form(AlignedText& text) {
  normalize(form, text);
}

template <void (*change)(AlignedText&)>
Made plain(const JsonObject&, int) {
  return std::make_unique<const Plain>(change);
}

Made read_bert(const JsonObject& object, int) {
  auto bert = std::make_unique<Bert>();
  SLUICE_TRY(bert->clean, object.flag_or("clean_text", true));
  SLUICE_TRY(bert->chinese, object.flag_or("handle_chinese_chars", true));
  SLUICE_TRY(bert->lowercase, object.flag_or("lowercase", true));
  SLUICE_TRY(bert->accents, object.flag_or("strip_accents", bert->lowercase));
  return std::unique_ptr<const Normalizer>(std::move(bert));
}

Made read_replace(const JsonObject& object, int) {
  SLUICE_TRY(Regex pattern, read_pattern(object));
  SLUICE_TRY(std::string content, object.text("content"));
  return std::make_unique<const Replace>(std::move(pattern), std::move(content));
}

Made read_sequence(const JsonObject& object, int depth) {
  SLUICE_TRY(auto parts, read_parts(object, "normalizers", depth, read_normalizer));
  return std::make_unique<const Sequence>(std::move(parts));
}

struct Kind {
  const char* name;
  Made (*read)(const JsonObject&, int depth);
};
const Kind kKinds[] = {
    {"NFC", plain<to_form<NormalForm::kNfc>>},
    {"NFD", plain<to_form<NormalForm::kNfd>>},
    {"NFKC", plain<to_form<NormalForm::kNfkc>>},
    {"NFKD", plain<to_form<NormalForm::kNfkd>>},
    {"Lowercase", plain<lower>},
    {"StripAccents", plain<strip_accents>},
    {"Nmt", plain<nmt>},
    {"ByteLevel", plain<to_bytes>},
    {"BertNormalizer", read_bert},
    {"Replace", read_replace},
    {"Prepend",
     [](const JsonObject& object, int) -> Made {
       SLUICE_TRY(std::string prefix, object.text("prepend"));
       return std::make_unique<const Prepend>(std::move(prefix));
     }},
    {"Strip",
     [](const JsonObject& object, int) -> Made {
       SLUICE_TRY(const bool left, object.flag("strip_left"));
       SLUICE_TRY(const bool right, object.flag("strip_right"));
       return std::make_unique<const Strip>(left, right);
     }},
    {"Precompiled", [](const JsonObject& object, int) { return read_precompiled(object); }},
    {"Sequence", read_sequence},
};

}  // namespace

base::Result<std::unique_ptr<const Normalizer>> read_normalizer(const Json& json, const std::string& where,
                                                                int depth) {
  if (json.is_null()) return std::unique_ptr<const Normalizer>();
  SLUICE_TRY(const auto object, JsonObject::of(json, where));
  return read_kind<std::unique_ptr<const Normalizer>>(object, "normalizer", kKinds, depth);
}

}  // namespace sluice::text
