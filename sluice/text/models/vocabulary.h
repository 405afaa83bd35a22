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

// More ids than any model has.
inline constexpr std::int64_t kMaxVocabulary = std::int64_t{1} << 24;

// Threads: any number of them may look.
class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  // {"token": id, …}. Several tokens may have one id, as in Hugging Face's tokenizers.
  static base::Result<Vocabulary> read(const JsonObject& object, const char* field);

  // The last of equal texts counts.
  void add(std::string text, TokenId id);
  std::optional<TokenId> find(std::string_view text) const;
  // Null: no token has this id. Of several the first in the order of bytes; which one Hugging Face's
  // tokenizers take differs from run to run.
  const std::string* text(TokenId id) const { return id < texts_.size() ? texts_[id] : nullptr; }
  // One more than the largest id.
  std::size_t size() const { return texts_.size(); }
  // How many texts it has, which is less where ids leave gaps.
  std::size_t count() const { return ids_.size(); }
  // Calls visit(text, id) for each token, in any order.
  template <typename Visit>
  void each(const Visit& visit) const {
    for (const auto& [text, id] : ids_) visit(text, id);
  }
  // Whether several tokens have one id.
  bool shares_ids() const { return shares_ids_; }
  // <0x00> … <0xFF>, as far as they are there.
  std::optional<TokenId> find_byte(unsigned char byte) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, TokenId, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> texts_;  // by id; the keys of ids_
  bool shares_ids_ = false;
};

}  // namespace sluice::text
