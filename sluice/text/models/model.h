// Models: which tokens a word is made of.
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

// A part of a word while its parts are merged.
struct Symbol {
  TokenId id;
  std::int32_t before, behind;  // places of the neighbours, or −1
  std::uint32_t bytes;          // 0: merged into the one before it
};
struct MergeCandidate {
  std::uint32_t rank;
  std::uint32_t place;  // of the first symbol
  TokenId id;           // of both together
};
// The best way to the place of a byte.
struct PathNode {
  double score = 0;
  std::int64_t from = -1;  // −1: there is no way
  TokenId id = 0;
};

// What one thread needs to encode; models leave nothing in it that counts, but for the cache.
struct EncodeScratch {
  WordCache cache;
  std::vector<Symbol> symbols;
  std::vector<MergeCandidate> merges;
  std::vector<PathNode> path;
  std::vector<Span> parts;
};

// Where tokens go.
struct TokenSink {
  std::vector<TokenId>& ids;
  std::vector<Span>* places;  // of each token in the text; null: nobody asks
  std::uint32_t begin;        // where the word begins in the text

  void put(TokenId id, std::size_t from, std::size_t to) {
    ids.push_back(id);
    if (places != nullptr)
      places->push_back({begin + static_cast<std::uint32_t>(from), begin + static_cast<std::uint32_t>(to)});
  }
};

// Threads: any number of them, each with a scratch of its own; but for take_bytes().
class Model {
 public:
  virtual ~Model() = default;
  // A word that is not empty. kInvalidArgument where the model has no token for a part of it.
  virtual base::Status encode(std::string_view word, EncodeScratch& scratch, TokenSink& sink) const = 0;
  // Whether it can take words as bytes where its tokens are spelled in GPT-2's alphabet.
  virtual bool can_take_bytes() const { return false; }
  // From now on words come so.
  virtual void take_bytes() {}
  // Whether no token crosses a place where U+2581, which such models have for a blank, follows another
  // character: then a text has the same tokens in pieces that begin there.
  virtual bool can_cut_at_blanks() const { return false; }
  // The token that stands for any text.
  virtual std::optional<TokenId> wildcard() const { return std::nullopt; }
  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  Vocabulary vocabulary_;
};

// An unknown one is kUnimplemented.
base::Result<std::unique_ptr<Model>> read_model(const Json& json, const std::string& where);

base::Result<std::unique_ptr<Model>> read_bpe(const JsonObject& object);
base::Result<std::unique_ptr<Model>> read_word_piece(const JsonObject& object);
base::Result<std::unique_ptr<Model>> read_word_level(const JsonObject& object);
base::Result<std::unique_ptr<Model>> read_unigram(const JsonObject& object);

}  // namespace sluice::text
