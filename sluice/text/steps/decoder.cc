#include "sluice/text/steps/decoder.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/text/characters/byte_alphabet.h"
#include "sluice/text/characters/regex.h"
#include "sluice/text/characters/unicode.h"

namespace sluice::text {
namespace {

using Made = base::Result<std::unique_ptr<const Decoder>>;
using Tokens = std::vector<std::string>;

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

// A decoder without settings.
class Plain : public Decoder {
 public:
  explicit Plain(void (*change)(Tokens&)) : change_(change) {}
  base::Status apply(Tokens& tokens) const override {
    change_(tokens);
    return {};
  }

 private:
  void (*const change_)(Tokens&);
};

void bytes_of_alphabet(Tokens& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) bytes += from_byte_alphabet(token).value_or(token);
  tokens = {replace_invalid_utf8(bytes)};
}

// Returns the byte of a token such as <0x41>, or −1.
int byte_of_token(const std::string& token) {
  if (token.size() != 6 || !base::starts_with(token, "<0x") || token[5] != '>') return -1;
  // Rust's from_str_radix, which tokenizers uses, accepts a sign.
  const char* const begin = token.data() + (token[3] == '+' ? 4 : 3);
  unsigned byte = 0;
  const auto [end, error] = std::from_chars(begin, token.data() + 5, byte, 16);
  return error == std::errc() && end == token.data() + 5 ? static_cast<int>(byte) : -1;
}

void join_bytes(Tokens& tokens) {
  Tokens out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (first_invalid_utf8(bytes) == std::string_view::npos) {
      out.push_back(bytes);
    } else {
      out.insert(out.end(), bytes.size(), kReplacement);
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const int byte = byte_of_token(token); byte >= 0) {
      bytes += static_cast<char>(byte);
      continue;
    }
    flush();
    out.push_back(std::move(token));
  }
  flush();
  tokens = std::move(out);
}

void fuse(Tokens& tokens) { tokens = {base::join(tokens, "")}; }

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

// Makes the text readable: removes blanks before punctuation and joins contractions.
void clean_up(std::string& token) {
  static constexpr const char* kPairs[][2] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [what, with] : kPairs) replace_all(token, what, with);
}

class WordPiece : public Decoder {
 public:
  WordPiece(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  base::Status apply(Tokens& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0 && base::starts_with(token, prefix_)) {
        token.erase(0, prefix_.size());
      } else if (i > 0) {
        token.insert(0, " ");
      }
      if (cleanup_) clean_up(token);
    }
    return {};
  }

 private:
  const std::string prefix_;
  const bool cleanup_;
};

class Metaspace : public Decoder {
 public:
  Metaspace(char32_t replacement, bool strip_first) : strip_first_(strip_first) {
    append_utf8(replacement_, replacement);
  }
  base::Status apply(Tokens& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], replacement_, i == 0 && strip_first_ ? "" : " ");
    return {};
  }

 private:
  std::string replacement_;
  const bool strip_first_;
};

// For networks that output a token for each moment: immediate repetitions count as one token.
class Ctc : public Decoder {
 public:
  Ctc(std::string pad, std::string delimiter, bool cleanup)
      : pad_(std::move(pad)), delimiter_(std::move(delimiter)), cleanup_(cleanup) {}
  base::Status apply(Tokens& tokens) const override {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& token : tokens) {
      if (!pad_.empty()) replace_all(token, pad_, "");
      if (!cleanup_) continue;
      clean_up(token);
      if (!delimiter_.empty()) replace_all(token, delimiter_, " ");
    }
    tokens.erase(std::remove(tokens.begin(), tokens.end(), ""), tokens.end());
    return {};
  }

 private:
  const std::string pad_, delimiter_;
  const bool cleanup_;
};

class Suffix : public Decoder {
 public:
  explicit Suffix(std::string suffix) : suffix_(std::move(suffix)) {}
  base::Status apply(Tokens& tokens) const override {
    for (std::size_t i = 0; i < tokens.size() && !suffix_.empty(); ++i)
      replace_all(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
    return {};
  }

 private:
  const std::string suffix_;
};

class Replace : public Decoder {
 public:
  Replace(Regex pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  base::Status apply(Tokens& tokens) const override {
    for (std::string& token : tokens) {
      if (token.empty()) continue;  // an empty token has no matches
      std::string out;
      std::size_t reached = 0;
      SLUICE_OK(pattern_.each(token, [&](std::size_t begin, std::size_t end) {
        out.append(token, reached, begin - reached);
        out += content_;
        reached = end;
      }));
      out.append(token, reached);
      token = std::move(out);
    }
    return {};
  }

 private:
  const Regex pattern_;
  const std::string content_;
};

class Strip : public Decoder {
 public:
  Strip(char32_t content, std::int64_t start, std::int64_t stop) : start_(start), stop_(stop) {
    append_utf8(content_, content);
  }
  base::Status apply(Tokens& tokens) const override {
    for (std::string& token : tokens) {
      for (std::int64_t i = 0; i < start_ && base::starts_with(token, content_); ++i)
        token.erase(0, content_.size());
      for (std::int64_t i = 0; i < stop_ && base::ends_with(token, content_); ++i)
        token.resize(token.size() - content_.size());
    }
    return {};
  }

 private:
  std::string content_;
  const std::int64_t start_, stop_;
};

class Sequence : public Decoder {
 public:
  explicit Sequence(std::vector<std::unique_ptr<const Decoder>> steps) : steps_(std::move(steps)) {}
  base::Status apply(Tokens& tokens) const override {
    for (const auto& step : steps_) SLUICE_OK(step->apply(tokens));
    return {};
  }

 private:
  const std::vector<std::unique_ptr<const Decoder>> steps_;
};

template <void (*change)(Tokens&)>
Made plain(const JsonObject&, int) {
  return std::make_unique<const Plain>(change);
}

Made read_sequence(const JsonObject& object, int depth) {
  SLUICE_TRY(auto parts, read_parts(object, "decoders", depth, read_decoder));
  return std::make_unique<const Sequence>(std::move(parts));
}

struct Kind {
  const char* name;
  Made (*read)(const JsonObject&, int depth);
};
const Kind kKinds[] = {
    {"ByteLevel", plain<bytes_of_alphabet>},
    {"ByteFallback", plain<join_bytes>},
    {"Fuse", plain<fuse>},
    {"WordPiece",
     [](const JsonObject& object, int) -> Made {
       SLUICE_TRY(std::string prefix, object.text_or("prefix", "##"));
       SLUICE_TRY(const bool cleanup, object.flag_or("cleanup", true));
       return std::make_unique<const WordPiece>(std::move(prefix), cleanup);
     }},
    {"Metaspace",
     [](const JsonObject& object, int) -> Made {
       SLUICE_TRY(const char32_t replacement, object.character("replacement"));
       SLUICE_TRY(const bool prefix_space, object.flag_or("add_prefix_space", true));
       SLUICE_TRY(const std::string scheme,
                  object.text_or("prepend_scheme", prefix_space ? "always" : "never"));
       return std::make_unique<const Metaspace>(replacement, scheme != "never");
     }},
    {"BPEDecoder",
     [](const JsonObject& object, int) -> Made {
       SLUICE_TRY(std::string suffix, object.text_or("suffix", "</w>"));
       return std::make_unique<const Suffix>(std::move(suffix));
     }},
    {"CTC",
     [](const JsonObject& object, int) -> Made {
       SLUICE_TRY(std::string pad, object.text_or("pad_token", "<pad>"));
       SLUICE_TRY(std::string delimiter, object.text_or("word_delimiter_token", "|"));
       SLUICE_TRY(const bool cleanup, object.flag_or("cleanup", true));
       return std::make_unique<const Ctc>(std::move(pad), std::move(delimiter), cleanup);
     }},
    {"Replace",
     [](const JsonObject& object, int) -> Made {
       SLUICE_TRY(Regex pattern, read_pattern(object));
       SLUICE_TRY(std::string content, object.text("content"));
       return std::make_unique<const Replace>(std::move(pattern), std::move(content));
     }},
    {"Strip",
     [](const JsonObject& object, int) -> Made {
       SLUICE_TRY(const char32_t content, object.character("content"));
       SLUICE_TRY(const std::int64_t start, object.number("start", 0, kMaxId));
       SLUICE_TRY(const std::int64_t stop, object.number("stop", 0, kMaxId));
       return std::make_unique<const Strip>(content, start, stop);
     }},
    {"Sequence", read_sequence},
};

}  // namespace

base::Result<std::unique_ptr<const Decoder>> read_decoder(const Json& json, const std::string& where,
                                                          int depth) {
  if (json.is_null()) return std::unique_ptr<const Decoder>();
  SLUICE_TRY(const auto object, JsonObject::of(json, where));
  return read_kind<std::unique_ptr<const Decoder>>(object, "decoder", kKinds, depth);
}

}  // namespace sluice::text
