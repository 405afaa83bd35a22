// Models, which divide a word into tokens.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "sluice/text/characters/aligned_text.h"
#include "sluice/text/json_object.h"
#include "sluice/text/models/vocabulary.h"
#include "sluice/text/models/word_cache.h"

namespace sluice::text {

inline constexpr std::string_view kBlank = "\u2581";

// A part of a word during merging.
struct Symbol {
  TokenId id;
  std::int32_t before, behind;  // the indices of the neighbours, or −1
  std::uint32_t bytes;          // 0: merged into the symbol before it
};
struct MergeCandidate {
  std::uint32_t rank;
  std::uint32_t place;  // the index of the first symbol
  TokenId id;           // the merged token
};
// The best path to a place in the word.
struct PathNode {
  double score = 0;
  std::int64_t from = -1;  // −1: there is no path
  TokenId id = 0;
};

// The memory with which one thread encodes. Only the cache matters to later calls.
struct EncodeScratch {
  WordCache cache;
  std::vector<Symbol> symbols;
  std::vector<MergeCandidate> merges;
  std::vector<PathNode> path;
  std::vector<Span> parts;
};

// Collects the tokens of a word.
struct TokenSink {
  std::vector<TokenId>& ids;
  std::vector<Span>* places;  // the part of the text for each token; null: not requested
  std::uint32_t begin;        // the place in the text where the word begins

  void put(TokenId id, std::size_t from, std::size_t to) {
    ids.push_back(id);
    if (places != nullptr)
      places->push_back({begin + static_cast<std::uint32_t>(from), begin + static_cast<std::uint32_t>(to)});
  }
};

// Threads: any number of them, each with its own scratch; take_bytes() is not thread-safe.
class Model {
 public:
  virtual ~Model() = default;
  // Encodes a non-empty word. kInvalidArgument if the model has no token for a part of it.
  virtual base::Status encode(std::string_view word, EncodeScratch& scratch, TokenSink& sink) const = 0;
  // Whether the model, whose tokens are spelled in GPT-2's alphabet, can take words as plain bytes.
  virtual bool can_take_bytes() const { return false; }
  // From now on the model gets words as plain bytes.
  virtual void take_bytes() {}
  // Whether no token crosses a place at which U+2581, these models' blank, follows another character. A text
  // then has the same tokens if it is encoded in pieces that begin at such places.
  virtual bool can_cut_at_blanks() const { return false; }
  // The token that can stand for any text.
  virtual std::optional<TokenId> wildcard() const { return std::nullopt; }
  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  Vocabulary vocabulary_;
};

// kUnimplemented for an unknown model.
base::Result<std::unique_ptr<Model>> read_model(const Json& json, const std::string& where);

base::Result<std::unique_ptr<Model>> read_bpe(const JsonObject& object);
base::Result<std::unique_ptr<Model>> read_word_piece(const JsonObject& object);
base::Result<std::unique_ptr<Model>> read_word_level(const JsonObject& object);
base::Result<std::unique_ptr<Model>> read_unigram(const JsonObject& object);

}  // namespace sluice::text
