// Unigram, SentencePiece's model: finds the tokens with the greatest sum of scores.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sluice/text/byte_trie.h"
#include "sluice/text/models/model.h"

namespace sluice::text {
namespace {

constexpr double kUnknownPenalty = 10;  // subtracted from the lowest score, as in SentencePiece

class Unigram : public Model {
 public:
  static base::Result<std::unique_ptr<Model>> read(const JsonObject& object);

  base::Status encode(std::string_view word, EncodeScratch& scratch, TokenSink& sink) const override {
    SLUICE_OK(find_path(word, scratch.path));
    // The path is read from back to front; adjacent parts without a token are joined.
    std::vector<Span>& parts = scratch.parts;
    parts.clear();
    bool unknown_before = false;
    for (auto end = static_cast<std::int64_t>(word.size()); end > 0;) {
      const PathNode& node = scratch.path[static_cast<std::size_t>(end)];
      const bool unknown = unknown_ && node.id == *unknown_;
      if (unknown && unknown_before) {
        parts.back().begin = static_cast<std::uint32_t>(node.from);
      } else {
        parts.push_back({static_cast<std::uint32_t>(node.from), static_cast<std::uint32_t>(end)});
      }
      unknown_before = unknown;
      end = node.from;
    }
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      const std::string_view text = word.substr(part->begin, part->end - part->begin);
      if (const auto id = vocabulary_.find(text)) {
        sink.put(*id, part->begin, part->end);
      } else if (!byte_fallback_ || !put_bytes(text, *part, sink)) {
        if (!unknown_) return no_unknown(text);
        sink.put(*unknown_, part->begin, part->end);
      }
    }
    return {};
  }

  std::optional<TokenId> wildcard() const override { return unknown_; }

 private:
  base::Status find_path(std::string_view word, std::vector<PathNode>& path) const {
    path.assign(word.size() + 1, PathNode());
    const auto offer = [&](std::size_t from, std::size_t to, TokenId id, double score) {
      const double sum = path[from].score + score;
      PathNode& node = path[to];
      if (node.from >= 0 && !(sum > node.score)) return;
      node = {sum, static_cast<std::int64_t>(from), id};
    };
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t character = utf8_length(word[at]);
      bool alone = false;  // whether a token is exactly this character
      trie_.each(word, at, [&](std::size_t bytes, TokenId id) {
        offer(at, at + bytes, id, scores_[id]);
        alone = alone || bytes == character;
      });
      if (!alone) {
        if (!unknown_) return no_unknown(word.substr(at, character));
        offer(at, at + character, *unknown_, lowest_ - kUnknownPenalty);
      }
      at += character;
    }
    return {};
  }

  bool put_bytes(std::string_view text, Span part, TokenSink& sink) const {
    const auto known = [this](char c) { return byte_ids_[static_cast<unsigned char>(c)].has_value(); };
    if (!std::all_of(text.begin(), text.end(), known)) return false;
    for (const char c : text) sink.put(*byte_ids_[static_cast<unsigned char>(c)], part.begin, part.end);
    return true;
  }

  static base::Status no_unknown(std::string_view text) {
    return base::fail(Code::kInvalidArgument, "no token for '", text.substr(0, 100),
                      "', and the model has no unk_id");
  }

  ByteTrie trie_;
  std::vector<double> scores_;  // [id]
  double lowest_ = std::numeric_limits<double>::infinity();
  std::optional<TokenId> unknown_;
  bool byte_fallback_ = false;
  std::array<std::optional<TokenId>, 256> byte_ids_;
};

base::Result<std::unique_ptr<Model>> Unigram::read(const JsonObject& object) {
  auto model = std::make_unique<Unigram>();
  SLUICE_TRY(const Json* const list, object.list("vocab"));
  if (static_cast<std::int64_t>(list->size()) > kMaxVocabulary)
    return object.fail("expected at most ", kMaxVocabulary, " tokens, found ", list->size());
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Json& entry = (*list)[i];
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number() ||
        !std::isfinite(entry[1].get<double>()))
      return object.fail("token ", i, ": expected [text, score], found ", entry.type_name());
    const auto id = static_cast<TokenId>(i);
    const auto& text = entry[0].get_ref<const std::string&>();
    model->scores_.push_back(entry[1].get<double>());
    model->lowest_ = std::min(model->lowest_, model->scores_.back());
    model->vocabulary_.add(text, id);
    if (!text.empty()) model->trie_.add(text, id);
  }
  for (const char* const name : {"alpha", "nbest_size"})
    if (object.has(name))
      return base::fail(Code::kUnimplemented, object.where(), ": ", name,
                        " draws tokens at random, which is not supported: set it to null");
  SLUICE_TRY(model->byte_fallback_, object.flag_or("byte_fallback", false));
  if (object.has("unk_id")) {
    SLUICE_TRY(const std::int64_t id,
               object.number("unk_id", 0, static_cast<std::int64_t>(list->size()) - 1));
    model->unknown_ = static_cast<TokenId>(id);
  }
  for (std::size_t byte = 0; model->byte_fallback_ && byte < 256; ++byte)
    model->byte_ids_[byte] = model->vocabulary_.find_byte(static_cast<unsigned char>(byte));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace

base::Result<std::unique_ptr<Model>> read_unigram(const JsonObject& object) { return Unigram::read(object); }

}  // namespace sluice::text
