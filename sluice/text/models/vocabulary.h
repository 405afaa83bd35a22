// The tokens of a model and their ids.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/text/json_object.h"

namespace sluice::text {

using TokenId = std::uint32_t;

// A limit above the number of ids of any model.
inline constexpr std::int64_t kMaxVocabulary = std::int64_t{1} << 24;

// Threads: any number of them may search.
class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  // Reads {"token": id, …}. Several tokens may share an id, as in Hugging Face's tokenizers.
  static base::Result<Vocabulary> read(const JsonObject& object, const char* field);

  // A later text replaces an equal one.
  void add(std::string text, TokenId id);
  std::optional<TokenId> find(std::string_view text) const;
  // Returns the text of an id, or null. If several texts share the id, it is the first in byte order; Hugging
  // Face's tokenizers choose a different one from run to run.
  const std::string* text(TokenId id) const { return id < texts_.size() ? texts_[id] : nullptr; }
  // The largest id + 1.
  std::size_t size() const { return texts_.size(); }
  // The number of texts, which is less than size() if ids have gaps.
  std::size_t count() const { return ids_.size(); }
  // Calls visit(text, id) for each token, in any order.
  template <typename Visit>
  void each(const Visit& visit) const {
    for (const auto& [text, id] : ids_) visit(text, id);
  }
  // Whether several tokens share an id.
  bool shares_ids() const { return shares_ids_; }
  // Finds a token <0x00> … <0xFF>, if it exists.
  std::optional<TokenId> find_byte(unsigned char byte) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, TokenId, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> texts_;  // [id], pointing to the keys of ids_
  bool shares_ids_ = false;
};

}  // namespace sluice::text
