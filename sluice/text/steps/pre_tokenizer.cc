#include "sluice/text/steps/pre_tokenizer.h"

#include <algorithm>
#include <array>

#include "sluice/text/characters/byte_alphabet.h"
#include "sluice/text/characters/regex.h"
#include "sluice/text/steps/unicode_scripts.h"

namespace sluice::text {
namespace {

using Made = base::Result<std::unique_ptr<PreTokenizer>>;

// The treatment of matching parts. "a-b" with "-" becomes [a b], [a - b], [a- b], [a -b]; the last one is
// like the second, but with adjacent matches joined.
enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Makes pieces from the parts of a piece, which are added from front to back.
class Parts {
 public:
  explicit Parts(Behavior behavior) : behavior_(behavior) {}

  void add(Span part, bool match) {
    if (behavior_ == Behavior::kIsolated) {
      push(part);
    } else if (behavior_ == Behavior::kRemoved) {
      if (!match) push(part);
    } else {
      parts_.push_back({part, match});
    }
  }

  // Ends the current piece.
  void finish() {
    bool before = false;
    std::vector<Span> joined;
    const auto join = [&](const Part& part, bool merge) {
      if (merge && !joined.empty()) {
        joined.back().begin = std::min(joined.back().begin, part.span.begin);
        joined.back().end = std::max(joined.back().end, part.span.end);
      } else {
        joined.push_back(part.span);
      }
      before = part.match;
    };
    if (behavior_ == Behavior::kMergedWithNext) {
      for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) join(*part, part->match && !before);
      std::reverse(joined.begin(), joined.end());
    } else {
      for (const Part& part : parts_)
        join(part, behavior_ == Behavior::kContiguous ? part.match == before : part.match && !before);
    }
    for (const Span& piece : joined) push(piece);
    parts_.clear();
  }

  std::vector<Span> take() { return std::move(pieces_); }

 private:
  struct Part {
    Span span;
    bool match;
  };

  void push(Span piece) {
    if (piece.begin < piece.end) pieces_.push_back(piece);
  }

  const Behavior behavior_;
  std::vector<Part> parts_;
  std::vector<Span> pieces_;
};

base::Status split(const Regex& regex, bool invert, Behavior behavior, std::string_view text,
                   std::vector<Span>& pieces) {
  Parts parts(behavior);
  for (const Span& piece : pieces) {
    std::uint32_t reached = piece.begin;
    SLUICE_OK(regex.each(text.substr(piece.begin, piece.end - piece.begin),
                         [&](std::size_t begin, std::size_t end) {
                           const Span found{piece.begin + static_cast<std::uint32_t>(begin),
                                            piece.begin + static_cast<std::uint32_t>(end)};
                           if (reached < found.begin) parts.add({reached, found.begin}, invert);
                           parts.add(found, !invert);
                           reached = found.end;
                         }));
    if (reached < piece.end) parts.add({reached, piece.end}, invert);
    parts.finish();
  }
  pieces = parts.take();
  return {};
}

// Splits a text at each character for which `is_match` holds.
template <typename IsMatch>
void split_characters(const IsMatch& is_match, Behavior behavior, std::string_view text,
                      std::vector<Span>& pieces) {
  Parts parts(behavior);
  for (const Span& piece : pieces) {
    std::uint32_t reached = piece.begin;
    for (std::size_t at = piece.begin; at < piece.end;) {
      const auto begin = static_cast<std::uint32_t>(at);
      if (!is_match(next_code_point(text, at))) continue;
      if (reached < begin) parts.add({reached, begin}, false);
      reached = static_cast<std::uint32_t>(at);
      parts.add({begin, reached}, true);
    }
    if (reached < piece.end) parts.add({reached, piece.end}, false);
    parts.finish();
  }
  pieces = parts.take();
}

bool is_any_punctuation(char32_t code) {
  return code < 0x80 ? is_ascii_punctuation(code) : is_punctuation(code);
}

// Splits at characters of a kind.
class Characters : public PreTokenizer {
 public:
  Characters(bool (*is_match)(char32_t), Behavior behavior) : is_match_(is_match), behavior_(behavior) {}
  base::Status apply(AlignedText& text, std::vector<Span>& pieces) const override {
    split_characters(is_match_, behavior_, text.text(), pieces);
    return {};
  }

 private:
  bool (*const is_match_)(char32_t);
  const Behavior behavior_;
};

class Delimiter : public PreTokenizer {
 public:
  explicit Delimiter(char32_t delimiter) : delimiter_(delimiter) {}
  base::Status apply(AlignedText& text, std::vector<Span>& pieces) const override {
    split_characters([this](char32_t code) { return code == delimiter_; }, Behavior::kRemoved, text.text(),
                     pieces);
    return {};
  }

 private:
  const char32_t delimiter_;
};

class Bert : public PreTokenizer {
 public:
  base::Status apply(AlignedText& text, std::vector<Span>& pieces) const override {
    split_characters(is_white_space, Behavior::kRemoved, text.text(), pieces);
    split_characters(is_any_punctuation, Behavior::kIsolated, text.text(), pieces);
    return {};
  }
};

// Splits into runs of \w, and runs of characters that are neither \w nor white space.
class Whitespace : public PreTokenizer {
 public:
  base::Status apply(AlignedText& text, std::vector<Span>& pieces) const override {
    std::vector<Span> words;
    for (const Span& piece : pieces) {
      int before = 0;
      for (std::size_t at = piece.begin; at < piece.end;) {
        const auto begin = static_cast<std::uint32_t>(at);
        const char32_t code = next_code_point(text.text(), at);
        const int kind = is_word(code) ? 1 : is_white_space(code) ? 0 : 2;
        const auto end = static_cast<std::uint32_t>(at);
        if (kind != 0 && kind == before) {
          words.back().end = end;
        } else if (kind != 0) {
          words.push_back({begin, end});
        }
        before = kind;
      }
    }
    pieces = std::move(words);
    return {};
  }
};

class UnicodeScripts : public PreTokenizer {
 public:
  base::Status apply(AlignedText& text, std::vector<Span>& pieces) const override {
    split_at_scripts(text.text(), pieces);
    return {};
  }
};

// Splits into pieces of a fixed number of characters.
class FixedLength : public PreTokenizer {
 public:
  explicit FixedLength(std::int64_t length) : length_(length) {}
  base::Status apply(AlignedText& text, std::vector<Span>& pieces) const override {
    std::vector<Span> parts;
    for (const Span& piece : pieces) {
      std::int64_t count = 0;
      for (std::size_t at = piece.begin; at < piece.end; ++count) {
        const auto begin = static_cast<std::uint32_t>(at);
        if (count % length_ == 0) parts.push_back({begin, begin});
        next_code_point(text.text(), at);
        parts.back().end = static_cast<std::uint32_t>(at);
      }
    }
    pieces = std::move(parts);
    return {};
  }

 private:
  const std::int64_t length_;
};

class Split : public PreTokenizer {
 public:
  Split(Regex regex, Behavior behavior, bool invert)
      : regex_(std::move(regex)), behavior_(behavior), invert_(invert) {}
  base::Status apply(AlignedText& text, std::vector<Span>& pieces) const override {
    return split(regex_, invert_, behavior_, text.text(), pieces);
  }

 private:
  const Regex regex_;
  const Behavior behavior_;
  const bool invert_;
};

// Rewrites each piece with write(rewriter, piece), and leaves out the text between them.
template <typename Write>
void rewrite_pieces(AlignedText& text, std::vector<Span>& pieces, const Write& write) {
  Rewriter rewriter(text);
  for (Span& piece : pieces) {
    rewriter.drop(piece.begin - rewriter.at());
    const std::uint32_t begin = rewriter.written();
    write(rewriter, piece);
    piece = {begin, rewriter.written()};
  }
  rewriter.finish();
}

class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(bool prefix_space, std::optional<Regex> regex)
      : prefix_space_(prefix_space), regex_(std::move(regex)) {}

  base::Status apply(AlignedText& text, std::vector<Span>& pieces) const override {
    const auto lacks_space = [&](const Span& piece) { return text.text()[piece.begin] != ' '; };
    if (prefix_space_ && std::any_of(pieces.begin(), pieces.end(), lacks_space)) {
      rewrite_pieces(text, pieces, [&](Rewriter& rewriter, const Span& piece) {
        if (lacks_space(piece)) rewriter.prepend(" ");
        rewriter.keep(piece.end - piece.begin);
      });
    }
    if (regex_) SLUICE_OK(split(*regex_, false, Behavior::kIsolated, text.text(), pieces));
    if (!leave_bytes_) spell_bytes(text, pieces);
    return {};
  }
  bool leave_bytes() override { return leave_bytes_ = true; }

 private:
  static void spell_bytes(AlignedText& text, std::vector<Span>& pieces) {
    rewrite_pieces(text, pieces, [&](Rewriter& rewriter, const Span& piece) {
      for (std::size_t at = piece.begin; at < piece.end;) {
        const std::size_t begin = at;
        next_code_point(text.text(), at);
        rewriter.put(byte_alphabet()[static_cast<unsigned char>(text.text()[begin])]);
        for (std::size_t i = begin + 1; i < at; ++i)
          rewriter.insert(byte_alphabet()[static_cast<unsigned char>(text.text()[i])]);
      }
    });
  }

  const bool prefix_space_;
  const std::optional<Regex> regex_;
  bool leave_bytes_ = false;
};

class Metaspace : public PreTokenizer {
 public:
  enum class Prepend { kAlways, kFirst, kNever };
  Metaspace(char32_t replacement, Prepend prepend, bool split) : prepend_(prepend), split_(split) {
    append_utf8(replacement_, replacement);
  }

  bool needs_alignment() const override { return prepend_ == Prepend::kFirst; }

  base::Status apply(AlignedText& text, std::vector<Span>& pieces) const override {
    rewrite_pieces(text, pieces,
                   [&](Rewriter& rewriter, const Span& piece) { write(text, piece, rewriter); });
    if (!split_) return {};
    // Each replacement begins a piece.
    std::vector<Span> words;
    for (const Span& piece : pieces) {
      std::uint32_t begin = piece.begin;
      while (begin < piece.end) {
        const std::size_t found = text.text().substr(0, piece.end).find(replacement_, begin + 1);
        const std::uint32_t end =
            found == std::string_view::npos ? piece.end : static_cast<std::uint32_t>(found);
        words.push_back({begin, end});
        begin = end;
      }
    }
    pieces = std::move(words);
    return {};
  }

 private:
  void write(const AlignedText& text, const Span& piece, Rewriter& rewriter) const {
    const std::string_view part = text.text().substr(0, piece.end);
    const bool begins =
        part[piece.begin] == ' ' || part.substr(piece.begin, replacement_.size()) == replacement_;
    const bool wanted = prepend_ == Prepend::kAlways ||
                        (prepend_ == Prepend::kFirst && text.origin(piece.begin, piece.end).begin == 0);
    if (wanted && !begins) rewriter.prepend(replacement_);
    for (std::size_t at = piece.begin; at < piece.end;) {
      const std::size_t space = std::min(part.find(' ', at), static_cast<std::size_t>(piece.end));
      rewriter.keep(space - at);
      at = space;
      if (at == piece.end) break;
      rewriter.insert_at(replacement_, ++at);
      rewriter.drop(1);
    }
  }

  std::string replacement_;
  const Prepend prepend_;
  const bool split_;
};

class Sequence : public PreTokenizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<PreTokenizer>> parts) : parts_(std::move(parts)) {}
  base::Status apply(AlignedText& text, std::vector<Span>& pieces) const override {
    for (const auto& part : parts_) {
      SLUICE_OK(part->apply(text, pieces));
      SLUICE_OK(text.check_size());
    }
    return {};
  }
  bool needs_alignment() const override {
    return std::any_of(parts_.begin(), parts_.end(),
                       [](const auto& part) { return part->needs_alignment(); });
  }
  bool leave_bytes() override { return !parts_.empty() && parts_.back()->leave_bytes(); }

 private:
  const std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

base::Result<Behavior> read_behavior(const JsonObject& object) {
  SLUICE_TRY(const std::string name, object.text_or("behavior", "Isolated"));
  const std::array<const char*, 5> names = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                            "Contiguous"};
  for (std::size_t i = 0; i < names.size(); ++i)
    if (name == names[i]) return static_cast<Behavior>(i);
  return object.unknown("behavior", name, {names.begin(), names.end()});
}

Made read_byte_level(const JsonObject& object, int) {
  SLUICE_TRY(const bool prefix_space, object.flag("add_prefix_space"));
  SLUICE_TRY(const bool use_regex, object.flag_or("use_regex", true));
  if (!use_regex) return std::make_unique<ByteLevel>(prefix_space, std::nullopt);
  SLUICE_TRY(Regex regex, Regex::compile(kGpt2Pattern));
  return std::make_unique<ByteLevel>(prefix_space, std::move(regex));
}

Made read_metaspace(const JsonObject& object, int) {
  SLUICE_TRY(const char32_t replacement, object.character("replacement"));
  SLUICE_TRY(std::string scheme, object.text_or("prepend_scheme", "always"));
  SLUICE_TRY(const bool prefix_space, object.flag_or("add_prefix_space", true));
  if (!prefix_space && !object.has("prepend_scheme")) scheme = "never";
  if (!prefix_space && scheme != "never")
    return object.fail("add_prefix_space is false and prepend_scheme is '", scheme,
                       "': one of them is wrong");
  SLUICE_TRY(const bool split, object.flag_or("split", true));
  using Prepend = Metaspace::Prepend;
  if (scheme == "always") return std::make_unique<Metaspace>(replacement, Prepend::kAlways, split);
  if (scheme == "first") return std::make_unique<Metaspace>(replacement, Prepend::kFirst, split);
  if (scheme == "never") return std::make_unique<Metaspace>(replacement, Prepend::kNever, split);
  return object.unknown("prepend_scheme", scheme, {"always", "first", "never"});
}

Made read_split(const JsonObject& object, int) {
  SLUICE_TRY(Regex regex, read_pattern(object));
  SLUICE_TRY(const Behavior behavior, read_behavior(object));
  SLUICE_TRY(const bool invert, object.flag_or("invert", false));
  return std::make_unique<Split>(std::move(regex), behavior, invert);
}

Made read_sequence(const JsonObject& object, int depth) {
  SLUICE_TRY(auto parts, read_parts(object, "pretokenizers", depth, read_pre_tokenizer));
  return std::make_unique<Sequence>(std::move(parts));
}

struct Kind {
  const char* name;
  Made (*read)(const JsonObject&, int depth);
};
const Kind kKinds[] = {
    {"ByteLevel", read_byte_level},
    {"Split", read_split},
    {"Whitespace", [](const JsonObject&, int) -> Made { return std::make_unique<Whitespace>(); }},
    {"WhitespaceSplit",
     [](const JsonObject&, int) -> Made {
       return std::make_unique<Characters>(is_white_space, Behavior::kRemoved);
     }},
    {"BertPreTokenizer", [](const JsonObject&, int) -> Made { return std::make_unique<Bert>(); }},
    {"Digits",
     [](const JsonObject& object, int) -> Made {
       SLUICE_TRY(const bool each, object.flag("individual_digits"));
       return std::make_unique<Characters>(is_number, each ? Behavior::kIsolated : Behavior::kContiguous);
     }},
    {"Punctuation",
     [](const JsonObject& object, int) -> Made {
       SLUICE_TRY(const Behavior behavior, read_behavior(object));
       return std::make_unique<Characters>(is_any_punctuation, behavior);
     }},
    {"CharDelimiterSplit",
     [](const JsonObject& object, int) -> Made {
       SLUICE_TRY(const char32_t delimiter, object.character("delimiter"));
       return std::make_unique<Delimiter>(delimiter);
     }},
    {"UnicodeScripts", [](const JsonObject&, int) -> Made { return std::make_unique<UnicodeScripts>(); }},
    {"FixedLength",
     [](const JsonObject& object, int) -> Made {
       std::int64_t length = 5;
       if (object.has("length")) {
         SLUICE_TRY(length, object.number("length", 1, kMaxId));
       }
       return std::make_unique<FixedLength>(length);
     }},
    {"Metaspace", read_metaspace},
    {"Sequence", read_sequence},
};

}  // namespace

base::Result<std::unique_ptr<PreTokenizer>> read_pre_tokenizer(const Json& json, const std::string& where,
                                                               int depth) {
  if (json.is_null()) return std::unique_ptr<PreTokenizer>();
  SLUICE_TRY(const auto object, JsonObject::of(json, where));
  return read_kind<std::unique_ptr<PreTokenizer>>(object, "pre-tokenizer", kKinds, depth);
}

}  // namespace sluice::text
