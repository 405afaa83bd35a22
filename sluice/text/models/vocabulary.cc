#include "sluice/text/models/vocabulary.h"

#include <cstdio>

namespace sluice::text {

base::Result<Vocabulary> Vocabulary::read(const JsonObject& object, const char* field) {
  SLUICE_TRY(const auto list, object.object(field));
  SLUICE_TRY(const Json* const tokens, object.field(field));
  Vocabulary vocabulary;
  vocabulary.ids_.reserve(tokens->size());
  for (const auto& [text, number] : tokens->items()) {
    const bool whole = number.is_number_unsigned() && number.get<std::uint64_t>() < kMaxVocabulary;
    if (!whole)
      return list.fail("expected an id below ", kMaxVocabulary, " for the token '", text, "', found ",
                       number.dump());
    vocabulary.add(text, number.get<TokenId>());
  }
  return vocabulary;
}

void Vocabulary::add(std::string text, TokenId id) {
  const auto place = ids_.insert_or_assign(std::move(text), id).first;
  if (id >= texts_.size()) texts_.resize(id + std::size_t{1});
  if (texts_[id] != nullptr) shares_ids_ = true;
  if (texts_[id] == nullptr || place->first < *texts_[id]) texts_[id] = &place->first;
}

std::optional<TokenId> Vocabulary::find(std::string_view text) const {
  const auto found = ids_.find(text);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::optional<TokenId> Vocabulary::find_byte(unsigned char byte) const {
  char text[8];
  std::snprintf(text, sizeof text, "<0x%02X>", byte);
  return find(text);
}

}  // namespace sluice::text
