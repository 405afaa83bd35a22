// WordPiece: takes the longest token that begins a word, then repeatedly the longest that continues it.
#include "sluice/base/text/strings.h"
#include "sluice/text/byte_trie.h"
#include "sluice/text/models/model.h"

namespace sluice::text {
namespace {

class WordPiece : public Model {
 public:
  static base::Result<std::unique_ptr<Model>> read(const JsonObject& object) {
    auto model = std::make_unique<WordPiece>();
    SLUICE_TRY(model->vocabulary_, Vocabulary::read(object, "vocab"));
    SLUICE_TRY(model->unknown_token_, object.text_or("unk_token", "[UNK]"));
    SLUICE_TRY(const std::string prefix, object.text_or("continuing_subword_prefix", "##"));
    if (object.has("max_input_chars_per_word")) {
      SLUICE_TRY(model->max_characters_, object.number("max_input_chars_per_word", 0, kMaxId));
    }
    model->unknown_ = model->vocabulary_.find(model->unknown_token_);
    model->vocabulary_.each([&](const std::string& text, TokenId id) {
      if (text.empty()) return;
      model->first_.add(text, id);
      if (base::starts_with(text, prefix) && text.size() > prefix.size())
        model->next_.add(std::string_view(text).substr(prefix.size()), id);
    });
    return std::unique_ptr<Model>(std::move(model));
  }

  base::Status encode(std::string_view word, EncodeScratch& scratch, TokenSink& sink) const override {
    const auto characters = static_cast<std::int64_t>(count_code_points(word));
    scratch.parts.clear();
    scratch.symbols.clear();
    for (std::size_t at = 0; at < word.size();) {
      std::size_t length = 0;
      TokenId id = 0;
      if (characters <= max_characters_)
        (at == 0 ? first_ : next_).each(word, at, [&](std::size_t bytes, TokenId token) {
          length = bytes;
          id = token;
        });
      if (length == 0) return put_unknown(word, sink);
      scratch.symbols.push_back({id, 0, 0, static_cast<std::uint32_t>(length)});
      at += length;
    }
    std::size_t at = 0;
    for (const Symbol& symbol : scratch.symbols) {
      sink.put(symbol.id, at, at + symbol.bytes);
      at += symbol.bytes;
    }
    return {};
  }

 private:
  base::Status put_unknown(std::string_view word, TokenSink& sink) const {
    if (!unknown_)
      return base::fail(Code::kInvalidArgument, "no token for '", word.substr(0, 100), "', and unk_token '",
                        unknown_token_, "' is not in the vocabulary");
    sink.put(*unknown_, 0, word.size());
    return {};
  }

  ByteTrie first_, next_;  // next_ has the tokens without their prefix
  std::string unknown_token_;
  std::optional<TokenId> unknown_;
  std::int64_t max_characters_ = 100;
};

}  // namespace

base::Result<std::unique_ptr<Model>> read_word_piece(const JsonObject& object) {
  return WordPiece::read(object);
}

}  // namespace sluice::text
