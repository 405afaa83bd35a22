#include "sluice/text/steps/post_processor.h"

#include <algorithm>
#include <map>

#include "sluice/text/characters/byte_alphabet.h"
#include "sluice/text/characters/unicode.h"

namespace sluice::text {
namespace {

using Made = base::Result<std::unique_ptr<const PostProcessor>>;

// Constant tokens.
struct FixedTokens {
  std::vector<std::uint32_t> ids;
  std::vector<std::string> names;
};

template <typename T>
void append(std::vector<T>& to, std::vector<T> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

void append(Encoding& to, Encoding more) {
  append(to.ids, std::move(more.ids));
  append(to.type_ids, std::move(more.type_ids));
  append(to.special, std::move(more.special));
  append(to.attention, std::move(more.attention));
  append(to.offsets, std::move(more.offsets));
  append(to.tokens, std::move(more.tokens));
}

Encoding fixed(const FixedTokens& tokens, std::uint32_t type, bool with_offsets) {
  const std::size_t count = tokens.ids.size();
  Encoding made{tokens.ids,
                std::vector<std::uint32_t>(count, type),
                std::vector<std::uint32_t>(count, 1),
                std::vector<std::uint32_t>(count, 1),
                {},
                {}};
  if (with_offsets) {
    made.offsets.resize(count);
    made.tokens = tokens.names;
  }
  return made;
}

// White space of a token, by characters. GPT-2's alphabet spells the space Ġ.
bool is_space(char32_t code) { return code == byte_alphabet()[' '] || is_white_space(code); }

std::size_t leading_spaces(std::string_view token) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < token.size() && is_space(next_code_point(token, at));) ++count;
  return count;
}

std::size_t trailing_spaces(std::string_view token) {
  std::size_t count = 0;
  for (std::size_t end = token.size(); end > 0; ++count) {
    end = previous_begin(token, end);
    std::size_t at = end;
    if (!is_space(next_code_point(token, at))) break;
  }
  return count;
}

// Removes the white space of the tokens from their offsets.
void trim_offsets(EncodedPart& part, bool prefix_space) {
  for (std::size_t i = 0; i < part.tokens.offsets.size(); ++i) {
    const std::string& token = part.tokens.tokens[i];
    Span& offset = part.tokens.offsets[i];
    std::size_t leading = leading_spaces(token);
    // The offsets do not include a space that was put before the text.
    if (leading == 1 && prefix_space && (i == 0 || offset.begin == 0)) leading = 0;
    for (; leading > 0 && offset.begin < offset.end; --leading)
      offset.begin += static_cast<std::uint32_t>(utf8_length(part.text[offset.begin]));
    for (std::size_t trailing = trailing_spaces(token); trailing > 0 && offset.end > offset.begin; --trailing)
      offset.end = static_cast<std::uint32_t>(previous_begin(part.text, offset.end));
  }
}

class ByteLevel : public PostProcessor {
 public:
  ByteLevel(bool trim, bool prefix_space) : trim_(trim), prefix_space_(prefix_space) {}
  std::vector<EncodedPart> apply(std::vector<EncodedPart> parts, const PostProcessing&) const override {
    if (trim_)
      for (EncodedPart& part : parts) trim_offsets(part, prefix_space_);
    return parts;
  }
  std::size_t added(bool) const override { return 0; }

 private:
  const bool trim_, prefix_space_;
};

class Template : public PostProcessor {
 public:
  struct Piece {
    int text = -1;  // 0 or 1; −1: special tokens
    FixedTokens tokens;
    std::uint32_t type = 0;
  };
  Template(std::vector<Piece> single, std::vector<Piece> pair)
      : pieces_{std::move(single), std::move(pair)} {}

  std::vector<EncodedPart> apply(std::vector<EncodedPart> parts,
                                 const PostProcessing& wanted) const override {
    std::vector<EncodedPart> out;
    for (const Piece& piece : pieces_[parts.size() == 2]) {
      if (piece.text >= 0) {
        out.push_back(parts[static_cast<std::size_t>(piece.text)]);
        std::fill(out.back().tokens.type_ids.begin(), out.back().tokens.type_ids.end(), piece.type);
      } else if (wanted.special_tokens) {
        out.push_back({fixed(piece.tokens, piece.type, wanted.offsets), {}});
      }
    }
    return out;
  }

  std::size_t added(bool pair) const override {
    std::size_t count = 0;
    for (const Piece& piece : pieces_[pair]) count += piece.tokens.ids.size();
    return count;
  }

 private:
  const std::vector<Piece> pieces_[2];
};

// BERT writes CLS text SEP, and for a second text adds text SEP. RoBERTa adds SEP text SEP for it.
class Around : public PostProcessor {
 public:
  FixedTokens cls, sep;
  bool roberta = false, trim = false, prefix_space = false;

  std::vector<EncodedPart> apply(std::vector<EncodedPart> parts,
                                 const PostProcessing& wanted) const override {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EncodedPart& part = parts[i];
      if (trim) trim_offsets(part, prefix_space);
      if (roberta) std::fill(part.tokens.type_ids.begin(), part.tokens.type_ids.end(), 0u);
      if (!wanted.special_tokens) continue;
      const std::uint32_t type = i > 0 && !roberta ? 1 : 0;
      Encoding tokens;
      if (i == 0 || roberta) append(tokens, fixed(i == 0 ? cls : sep, type, wanted.offsets));
      append(tokens, std::move(part.tokens));
      append(tokens, fixed(sep, type, wanted.offsets));
      part.tokens = std::move(tokens);
    }
    return parts;
  }
  std::size_t added(bool pair) const override { return !pair ? 2 : roberta ? 4 : 3; }
};

class Sequence : public PostProcessor {
 public:
  explicit Sequence(std::vector<std::unique_ptr<const PostProcessor>> steps) : steps_(std::move(steps)) {}
  std::vector<EncodedPart> apply(std::vector<EncodedPart> parts,
                                 const PostProcessing& wanted) const override {
    for (const auto& step : steps_) parts = step->apply(std::move(parts), wanted);
    return parts;
  }
  std::size_t added(bool pair) const override {
    std::size_t count = 0;
    for (const auto& step : steps_) count += step->added(pair);
    return count;
  }
  // A template makes new parts, which a second template could not use.
  static bool ends_parts(const PostProcessor& step) {
    return dynamic_cast<const Template*>(&step) != nullptr;
  }

 private:
  const std::vector<std::unique_ptr<const PostProcessor>> steps_;
};

base::Result<std::uint32_t> read_id(const JsonObject& object, const Json& number) {
  if (!number.is_number_unsigned() || number.get<std::uint64_t>() > static_cast<std::uint64_t>(kMaxId))
    return object.fail("expected an id, found ", number.dump());
  return number.get<std::uint32_t>();
}

// Reads ["[CLS]", 101].
base::Result<FixedTokens> read_token(const JsonObject& object, const char* name) {
  SLUICE_TRY(const Json* const pair, object.list(name));
  if (pair->size() != 2 || !(*pair)[0].is_string())
    return object.fail("expected [token, id] as '", name, "'");
  SLUICE_TRY(const std::uint32_t id, read_id(object, (*pair)[1]));
  return FixedTokens{{id}, {(*pair)[0].get<std::string>()}};
}

base::Result<std::map<std::string, FixedTokens>> read_special_tokens(const JsonObject& object) {
  std::map<std::string, FixedTokens> special;
  SLUICE_TRY(const auto list, object.object("special_tokens"));
  SLUICE_TRY(const Json* const tokens, object.field("special_tokens"));
  for (const auto& [name, json] : tokens->items()) {
    SLUICE_TRY(const auto entry, JsonObject::of(json, list.where() + "." + name));
    SLUICE_TRY(const Json* const ids, entry.list("ids"));
    SLUICE_TRY(const Json* const names, entry.list("tokens"));
    if (ids->size() != names->size())
      return entry.fail("expected the same number of ids and tokens, found ", ids->size(), " and ",
                        names->size());
    FixedTokens& made = special[name];
    for (std::size_t i = 0; i < ids->size(); ++i) {
      SLUICE_TRY(const std::uint32_t id, read_id(entry, (*ids)[i]));
      if (!(*names)[i].is_string()) return entry.fail("expected texts as 'tokens'");
      made.ids.push_back(id);
      made.names.push_back((*names)[i].get<std::string>());
    }
  }
  return special;
}

base::Result<std::vector<Template::Piece>> read_pieces(const JsonObject& object, const char* name, int texts,
                                                       const std::map<std::string, FixedTokens>& special) {
  SLUICE_TRY(const Json* const list, object.list(name));
  std::vector<Template::Piece> pieces;
  for (const Json& json : *list) {
    SLUICE_TRY(const auto entry,
               JsonObject::of(json, base::str(object.where(), ".", name, "[", pieces.size(), "]")));
    const bool is_text = entry.has("Sequence");
    SLUICE_TRY(const auto inner, entry.object(is_text ? "Sequence" : "SpecialToken"));
    SLUICE_TRY(const std::string id, inner.text("id"));
    SLUICE_TRY(const std::int64_t type, inner.number("type_id", 0, kMaxId));
    Template::Piece piece;
    piece.type = static_cast<std::uint32_t>(type);
    if (is_text) {
      piece.text = id == "A" ? 0 : id == "B" ? 1 : texts;
      if (piece.text >= texts)
        return inner.fail("expected A", texts > 1 ? " or B" : "", " as 'id' of a Sequence, found '", id, "'");
    } else {
      const auto found = special.find(id);
      if (found == special.end()) return inner.fail("'", id, "' is not among the special_tokens");
      piece.tokens = found->second;
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

Made read_template(const JsonObject& object, int) {
  SLUICE_TRY(const auto special, read_special_tokens(object));
  SLUICE_TRY(auto single, read_pieces(object, "single", 1, special));
  SLUICE_TRY(auto pair, read_pieces(object, "pair", 2, special));
  return std::make_unique<const Template>(std::move(single), std::move(pair));
}

Made read_around(const JsonObject& object, bool roberta) {
  auto around = std::make_unique<Around>();
  SLUICE_TRY(around->cls, read_token(object, "cls"));
  SLUICE_TRY(around->sep, read_token(object, "sep"));
  around->roberta = roberta;
  if (roberta) {
    SLUICE_TRY(around->trim, object.flag_or("trim_offsets", true));
    SLUICE_TRY(around->prefix_space, object.flag_or("add_prefix_space", true));
  }
  return std::unique_ptr<const PostProcessor>(std::move(around));
}

Made read_sequence(const JsonObject& object, int depth) {
  SLUICE_TRY(const Json* const list, object.list("processors"));
  std::vector<std::unique_ptr<const PostProcessor>> steps;
  bool ended = false;
  for (std::size_t i = 0; i < list->size(); ++i) {
    SLUICE_TRY(auto step,
               read_post_processor((*list)[i], base::str(object.where(), ".processors[", i, "]"), depth + 1));
    if (!step) continue;
    if (ended && step->added(false) + step->added(true) > 0)
      return object.fail("processor ", i,
                         " adds special tokens after a TemplateProcessing: expected only one such processor");
    ended = ended || Sequence::ends_parts(*step) || dynamic_cast<const Sequence*>(step.get()) != nullptr;
    steps.push_back(std::move(step));
  }
  return std::make_unique<const Sequence>(std::move(steps));
}

struct Kind {
  const char* name;
  Made (*read)(const JsonObject&, int depth);
};
const Kind kKinds[] = {
    {"TemplateProcessing", read_template},
    {"ByteLevel",
     [](const JsonObject& object, int) -> Made {
       SLUICE_TRY(const bool trim, object.flag_or("trim_offsets", true));
       SLUICE_TRY(const bool prefix_space, object.flag_or("add_prefix_space", true));
       return std::make_unique<const ByteLevel>(trim, prefix_space);
     }},
    {"BertProcessing", [](const JsonObject& object, int) { return read_around(object, false); }},
    {"RobertaProcessing", [](const JsonObject& object, int) { return read_around(object, true); }},
    {"Sequence", read_sequence},
};

}  // namespace

Encoding join_parts(std::vector<EncodedPart> parts) {
  Encoding joined;
  for (EncodedPart& part : parts) append(joined, std::move(part.tokens));
  return joined;
}

base::Result<std::unique_ptr<const PostProcessor>> read_post_processor(const Json& json,
                                                                       const std::string& where, int depth) {
  if (json.is_null()) return std::unique_ptr<const PostProcessor>();
  SLUICE_TRY(const auto object, JsonObject::of(json, where));
  return read_kind<std::unique_ptr<const PostProcessor>>(object, "post-processor", kKinds, depth);
}

}  // namespace sluice::text
