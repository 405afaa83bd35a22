#include "sluice/text/tokenizer.h"

#include <algorithm>
#include <mutex>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/base/formats/unique_json.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/text/models/model.h"
#include "sluice/text/steps/added_tokens.h"
#include "sluice/text/steps/decoder.h"
#include "sluice/text/steps/limits.h"
#include "sluice/text/steps/normalizer.h"
#include "sluice/text/steps/post_processor.h"
#include "sluice/text/steps/pre_tokenizer.h"

namespace sluice::text {
namespace {

constexpr std::size_t kMaxText = std::size_t{1} << 30;

// The scratches that no thread uses at the moment.
class ScratchPool {
 public:
  std::unique_ptr<EncodeScratch> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        auto scratch = std::move(free_.back());
        free_.pop_back();
        return scratch;
      }
    }
    return std::make_unique<EncodeScratch>();
  }
  void give_back(std::unique_ptr<EncodeScratch> scratch) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<EncodeScratch>> free_;
};

// The tokens of a text. Offsets and tokens are filled if `tracked`.
struct Output {
  std::vector<TokenId>& ids;
  bool tracked = false;
  std::vector<Span> offsets = {};
  std::vector<std::string> tokens = {};
};

}  // namespace

struct Tokenizer::Parts {
  std::string name, fingerprint;
  std::unique_ptr<const Normalizer> normalizer;
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  std::unique_ptr<Model> model;
  std::unique_ptr<const PostProcessor> post_processor;
  std::unique_ptr<const Decoder> decoder;
  AddedTokens added;
  std::optional<Truncation> truncation;
  std::optional<Padding> padding;
  bool needs_alignment = false;
  mutable ScratchPool scratches;

  base::Status read(std::string_view json);
  base::Status tokenize(std::string_view text, Output& out) const;
  base::Result<Encoding> encode_one(std::string_view text, std::uint32_t type, bool offsets) const;
  base::Result<Encoding> encode(std::string_view first, const std::string_view* second,
                                const EncodeOptions& options) const;
  base::Result<std::string> decode(const TokenId* ids, std::size_t count, bool skip_special) const;
  const std::string* text_of(TokenId id) const;
  std::size_t size() const { return std::max(model->vocabulary().size(), added.size()); }

 private:
  base::Status tokenize_part(AlignedText& text, EncodeScratch& scratch, Output& out) const;
  base::Status tokenize_words(AlignedText& text, EncodeScratch& scratch, Output& out) const;
  base::Status encode_word(std::string_view word, EncodeScratch& scratch, std::vector<TokenId>& ids) const;
  base::Status encode_pieces(std::string_view word, EncodeScratch& scratch, std::vector<TokenId>& ids) const;
  base::Status encode_tracked(const AlignedText& text, const Span& word, EncodeScratch& scratch,
                              Output& out) const;
};

base::Status Tokenizer::Parts::read(std::string_view json) {
  fingerprint = base::hexadecimal(base::sha256(json));
  const auto parsed = base::parse_unique_json(json);
  if (!parsed) return base::fail_at(parsed, name);
  const Json& document = *parsed;
  if (document.is_discarded())
    return base::fail(Code::kInvalidArgument, name, ": expected a tokenizer as JSON, found something else");
  SLUICE_TRY(const auto object, JsonObject::of(document, name));
  const auto part = [&](const char* field) -> const Json& {
    static const Json null;
    const auto found = document.find(field);
    return found == document.end() ? null : *found;
  };
  SLUICE_TRY(const Json* const model_json, object.field("model"));
  SLUICE_TRY(model, read_model(*model_json, name + ": model"));
  SLUICE_TRY(normalizer, read_normalizer(part("normalizer"), name + ": normalizer"));
  SLUICE_TRY(pre_tokenizer, read_pre_tokenizer(part("pre_tokenizer"), name + ": pre_tokenizer"));
  SLUICE_TRY(post_processor, read_post_processor(part("post_processor"), name + ": post_processor"));
  SLUICE_TRY(decoder, read_decoder(part("decoder"), name + ": decoder"));
  SLUICE_TRY(added, AddedTokens::read(part("added_tokens"), name + ": added_tokens", model->vocabulary(),
                                      normalizer.get()));
  SLUICE_TRY(truncation, read_truncation(part("truncation"), name + ": truncation"));
  SLUICE_TRY(padding, read_padding(part("padding"), name + ": padding"));
  if (!pre_tokenizer) return {};
  needs_alignment = pre_tokenizer->needs_alignment();
  // A byte-level model takes the bytes directly: GPT-2's alphabet is only another spelling of them.
  if (model->can_take_bytes() && pre_tokenizer->leave_bytes()) model->take_bytes();
  return {};
}

base::Status Tokenizer::Parts::encode_word(std::string_view word, EncodeScratch& scratch,
                                           std::vector<TokenId>& ids) const {
  if (word.size() > WordCache::kMaxWord) {
    TokenSink sink{ids, nullptr, 0};
    return model->encode(word, scratch, sink);
  }
  const std::uint64_t hash = WordCache::hash(word);
  const WordCache::Found found = scratch.cache.find(word, hash);
  if (found.count == 1) {
    ids.push_back(*found.ids);
    return {};
  }
  if (found.count > 0) {
    ids.insert(ids.end(), found.ids, found.ids + found.count);
    return {};
  }
  const std::size_t before = ids.size();
  TokenSink sink{ids, nullptr, 0};
  SLUICE_OK(model->encode(word, scratch, sink));
  const std::size_t count = ids.size() - before;
  if (count > 0 && count <= WordCache::kMaxIds) scratch.cache.put(word, hash, ids.data() + before, count);
  return {};
}

// Without a pre-tokenizer a word is a whole line, which is not cached; its pieces are.
base::Status Tokenizer::Parts::encode_pieces(std::string_view word, EncodeScratch& scratch,
                                             std::vector<TokenId>& ids) const {
  for (std::size_t begin = 0; begin < word.size();) {
    std::size_t end = begin;
    while (base::starts_with(word.substr(end), kBlank)) end += kBlank.size();
    end = std::min(word.find(kBlank, end), word.size());
    SLUICE_OK(encode_word(word.substr(begin, end - begin), scratch, ids));
    begin = end;
  }
  return {};
}

base::Status Tokenizer::Parts::encode_tracked(const AlignedText& text, const Span& word,
                                              EncodeScratch& scratch, Output& out) const {
  const std::size_t before = out.ids.size();
  std::vector<Span> places;
  TokenSink sink{out.ids, &places, word.begin};
  SLUICE_OK(model->encode(text.text().substr(word.begin, word.end - word.begin), scratch, sink));
  for (std::size_t i = 0; i < places.size(); ++i) {
    const TokenId id = out.ids[before + i];
    const Span place{places[i].begin, std::min(places[i].end, word.end)};
    out.offsets.push_back(place.begin < place.end ? text.origin(place.begin, place.end) : place);
    const Vocabulary& vocabulary = model->vocabulary();
    const std::string* const name = vocabulary.text(id);
    const std::string_view piece = text.text().substr(place.begin, place.end - place.begin);
    const bool is_piece = name == nullptr || model->wildcard() == id ||
                          (vocabulary.shares_ids() && vocabulary.find(piece) == id);
    out.tokens.emplace_back(is_piece ? piece : std::string_view(*name));
  }
  return {};
}

base::Status Tokenizer::Parts::tokenize_words(AlignedText& text, EncodeScratch& scratch, Output& out) const {
  if (text.text().empty()) return {};
  std::vector<Span> words = {{0, static_cast<std::uint32_t>(text.text().size())}};
  if (pre_tokenizer) SLUICE_OK(pre_tokenizer->apply(text, words));
  for (const Span& word : words) {
    if (out.tracked) {
      SLUICE_OK(encode_tracked(text, word, scratch, out));
    } else if (model->can_cut_at_blanks()) {
      SLUICE_OK(encode_pieces(text.text().substr(word.begin, word.end - word.begin), scratch, out.ids));
    } else {
      SLUICE_OK(encode_word(text.text().substr(word.begin, word.end - word.begin), scratch, out.ids));
    }
  }
  return {};
}

// Encodes a part of the text between the tokens that are looked for before normalization.
base::Status Tokenizer::Parts::tokenize_part(AlignedText& text, EncodeScratch& scratch, Output& out) const {
  if (normalizer) SLUICE_OK(normalizer->apply(text));
  SLUICE_OK(text.check_size());
  if (added.empty(/*normalized=*/true)) return tokenize_words(text, scratch, out);
  const auto parts = added.split(text.text(), /*normalized=*/true);
  if (parts.size() == 1 && parts[0].token == nullptr) return tokenize_words(text, scratch, out);
  for (const AddedTokens::Part& part : parts) {
    if (part.token == nullptr) {
      AlignedText own(text, part.begin, part.end);
      SLUICE_OK(tokenize_words(own, scratch, out));
      continue;
    }
    out.ids.push_back(part.token->id);
    if (!out.tracked) continue;
    out.offsets.push_back(
        text.origin(static_cast<std::uint32_t>(part.begin), static_cast<std::uint32_t>(part.end)));
    out.tokens.emplace_back(text.text().substr(part.begin, part.end - part.begin));
  }
  return {};
}

base::Status Tokenizer::Parts::tokenize(std::string_view text, Output& out) const {
  if (text.size() > kMaxText)
    return base::fail(Code::kInvalidArgument, "a text of ", text.size(), " bytes: expected at most ",
                      kMaxText);
  SLUICE_OK(check_utf8(text, "the text"));
  std::unique_ptr<EncodeScratch> scratch = scratches.take();
  const bool tracked = out.tracked || needs_alignment;
  for (const AddedTokens::Part& part : added.split(text, /*normalized=*/false)) {
    const std::string_view bytes = text.substr(part.begin, part.end - part.begin);
    if (part.token == nullptr) {
      AlignedText aligned(bytes, static_cast<std::uint32_t>(part.begin), tracked);
      SLUICE_OK(tokenize_part(aligned, *scratch, out));
      continue;
    }
    out.ids.push_back(part.token->id);
    if (!out.tracked) continue;
    out.offsets.push_back({static_cast<std::uint32_t>(part.begin), static_cast<std::uint32_t>(part.end)});
    out.tokens.emplace_back(bytes);
  }
  scratches.give_back(std::move(scratch));
  return {};
}

base::Result<Encoding> Tokenizer::Parts::encode_one(std::string_view text, std::uint32_t type,
                                                    bool offsets) const {
  Encoding made;
  Output out{made.ids, offsets};
  SLUICE_OK(tokenize(text, out));
  made.type_ids.assign(made.ids.size(), type);
  made.special.assign(made.ids.size(), 0);
  made.attention.assign(made.ids.size(), 1);
  made.offsets = std::move(out.offsets);
  made.tokens = std::move(out.tokens);
  return made;
}

base::Result<Encoding> Tokenizer::Parts::encode(std::string_view first, const std::string_view* second,
                                                const EncodeOptions& options) const {
  std::vector<EncodedPart> parts;
  SLUICE_TRY(Encoding one, encode_one(first, 0, options.offsets));
  parts.push_back({std::move(one), first});
  if (second != nullptr) {
    SLUICE_TRY(Encoding two, encode_one(*second, 1, options.offsets));
    parts.push_back({std::move(two), *second});
  }
  if (truncation && options.limits) {
    const bool adds = options.special_tokens && post_processor;
    SLUICE_OK(truncate(*truncation, adds ? post_processor->added(second != nullptr) : 0, parts[0].tokens,
                       second != nullptr ? &parts[1].tokens : nullptr));
  }
  if (post_processor)
    parts = post_processor->apply(std::move(parts), {options.special_tokens, options.offsets});
  Encoding joined = join_parts(std::move(parts));
  if (padding && options.limits) pad(*padding, options.offsets, joined);
  return joined;
}

const std::string* Tokenizer::Parts::text_of(TokenId id) const {
  const AddedTokens::Token* const token = added.find(id);
  return token != nullptr ? &token->content : model->vocabulary().text(id);
}

base::Result<std::string> Tokenizer::Parts::decode(const TokenId* ids, std::size_t count,
                                                   bool skip_special) const {
  std::vector<std::string> tokens;
  tokens.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const AddedTokens::Token* const token = added.find(ids[i]);
    const std::string* const text = token != nullptr ? &token->decoded : model->vocabulary().text(ids[i]);
    if (text == nullptr)
      return base::fail(Code::kOutOfRange, "the id ", ids[i], " at place ", i, " is not a token of ", name,
                        ", whose ids are below ", size(), ": was it made with another tokenizer?");
    if (skip_special && added.is_special(*text)) continue;
    tokens.push_back(*text);
  }
  if (!decoder) return base::join(tokens, " ");
  SLUICE_OK(decoder->apply(tokens));
  return base::join(tokens, "");
}

Tokenizer Tokenizer::load(const std::string& path) {
  const std::string file = base::is_directory(path) ? base::join_path(path, "tokenizer.json") : path;
  return parse(base::value_or_throw(base::read_file(file)), file);
}

Tokenizer Tokenizer::parse(std::string_view json, const std::string& name) {
  auto parts = std::make_shared<Parts>();
  parts->name = name;
  base::value_or_throw(parts->read(json));
  return Tokenizer(std::move(parts));
}

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  return base::value_or_throw(parts_->encode(text, nullptr, options));
}

Encoding Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                const EncodeOptions& options) const {
  return base::value_or_throw(parts_->encode(first, &second, options));
}

void Tokenizer::append_ids(std::string_view text, std::vector<std::uint32_t>& ids) const {
  Output out{ids};
  base::value_or_throw(parts_->tokenize(text, out));
}

std::string Tokenizer::decode(const std::uint32_t* ids, std::size_t count, bool skip_special_tokens) const {
  return base::value_or_throw(parts_->decode(ids, count, skip_special_tokens));
}

std::size_t Tokenizer::vocabulary_size() const { return parts_->size(); }

std::optional<std::uint32_t> Tokenizer::id_of(std::string_view token) const {
  if (const auto* const added = parts_->added.find(token)) return added->id;
  return parts_->model->vocabulary().find(token);
}

std::optional<std::string> Tokenizer::token_of(std::uint32_t id) const {
  const std::string* const text = parts_->text_of(id);
  return text == nullptr ? std::nullopt : std::optional(*text);
}

bool Tokenizer::is_special(std::uint32_t id) const {
  const auto* const token = parts_->added.find(id);
  return token != nullptr && token->special;
}

const std::string& Tokenizer::fingerprint() const { return parts_->fingerprint; }

}  // namespace sluice::text
