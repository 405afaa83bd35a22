#include "sluice/text/steps/added_tokens.h"

#include <algorithm>

#include "sluice/base/log.h"

namespace sluice::text {
namespace {

// Returns where the white space that ends at `end` begins.
std::size_t space_before(std::string_view text, std::size_t end) {
  while (end > 0) {
    const std::size_t begin = previous_begin(text, end);
    std::size_t at = begin;
    if (!is_white_space(next_code_point(text, at))) break;
    end = begin;
  }
  return end;
}

std::size_t space_behind(std::string_view text, std::size_t begin) {
  for (std::size_t at = begin; at < text.size() && is_white_space(next_code_point(text, at));) begin = at;
  return begin;
}

bool word_before(std::string_view text, std::size_t end) {
  if (end == 0) return false;
  std::size_t at = previous_begin(text, end);
  return is_word(next_code_point(text, at));
}

bool word_behind(std::string_view text, std::size_t begin) {
  return begin < text.size() && is_word(next_code_point(text, begin));
}

}  // namespace

base::Result<AddedTokens> AddedTokens::read(const Json& list, const std::string& where,
                                            const Vocabulary& model, const Normalizer* normalizer) {
  AddedTokens added;
  auto next = static_cast<TokenId>(model.count());
  if (list.is_null()) return added;
  if (!list.is_array())
    return base::fail(Code::kInvalidArgument, where, ": expected a list, found ", list.type_name());
  for (std::size_t i = 0; i < list.size(); ++i) {
    SLUICE_TRY(const auto object, JsonObject::of(list[i], base::str(where, "[", i, "]")));
    Token token;
    SLUICE_TRY(const std::int64_t id, object.number("id", 0, kMaxVocabulary - 1));
    token.id = static_cast<TokenId>(id);
    SLUICE_TRY(token.content, object.text("content"));
    if (token.content.empty()) continue;
    SLUICE_TRY(token.special, object.flag_or("special", false));
    SLUICE_TRY(token.single_word, object.flag_or("single_word", false));
    SLUICE_TRY(token.left_strip, object.flag_or("lstrip", false));
    SLUICE_TRY(token.right_strip, object.flag_or("rstrip", false));
    SLUICE_TRY(token.normalized, object.flag_or("normalized", !token.special));
    const auto in_model = model.find(token.content);
    const auto before = added.by_content_.find(token.content);
    // The file's number is ignored: a known text keeps its id, and a new one gets the next id.
    if (before != added.by_content_.end()) {
      token.id = added.tokens_[before->second].id;
    } else if (in_model) {
      token.id = *in_model;
    } else {
      token.id = next++;
    }
    if (token.id != id)
      base::warn(object.where(), ": '", token.content, "' has the id ", token.id, ", where the file says ",
                 id, ": ids are counted from the model's vocabulary on, as Hugging Face does");
    token.decoded = token.content;
    if (token.normalized && normalizer != nullptr) {
      AlignedText text(token.content, 0, true);
      SLUICE_OK(normalizer->apply(text));
      token.decoded = std::string(text.text());
      if (token.decoded.empty())
        base::warn(object.where(), ": the normalizer leaves nothing of '", token.content,
                   "': no text will contain it");
    }
    const std::size_t place = added.tokens_.size();
    added.by_id_[token.id] = place;
    added.by_content_[token.content] = place;
    added.size_ = std::max(added.size_, token.id + std::size_t{1});
    added.tokens_.push_back(std::move(token));
  }
  // Among tokens that the same text finds, the first wins.
  std::unordered_map<std::string, std::size_t> looked_for[2];
  for (const Token& token : added.tokens_) {
    if (token.decoded.empty()) continue;
    const std::size_t place = added.by_content_[token.content];
    if (looked_for[token.normalized].emplace(token.decoded, place).second)
      added.tries_[token.normalized].add(token.decoded, static_cast<std::uint32_t>(place));
  }
  return added;
}

std::vector<AddedTokens::Part> AddedTokens::split(std::string_view text, bool normalized) const {
  const ByteTrie& trie = tries_[normalized];
  std::vector<Part> parts;
  std::size_t reached = 0;
  for (std::size_t at = 0; !trie.empty() && at < text.size();) {
    std::size_t length = 0;
    const Token* token = nullptr;
    if (trie.begins(text[at]))
      trie.each(text, at, [&](std::size_t bytes, std::uint32_t place) {
        length = bytes;
        token = &tokens_[place];
      });
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + length;
    at = end;
    if (token->single_word && (word_before(text, begin) || word_behind(text, end))) continue;
    if (token->left_strip) begin = std::max(space_before(text, begin), reached);
    if (token->right_strip) end = space_behind(text, end);
    if (reached < begin) parts.push_back({reached, begin, nullptr});
    // White space that the previous token took does not make another token.
    if (begin < end) parts.push_back({begin, end, token});
    reached = end;
  }
  if (reached < text.size()) parts.push_back({reached, text.size(), nullptr});
  return parts;
}

const AddedTokens::Token* AddedTokens::find(TokenId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

const AddedTokens::Token* AddedTokens::find(std::string_view content) const {
  const auto found = by_content_.find(std::string(content));
  return found == by_content_.end() ? nullptr : &tokens_[found->second];
}

bool AddedTokens::is_special(std::string_view content) const {
  const Token* const token = find(content);
  return token != nullptr && token->special;
}

}  // namespace sluice::text
