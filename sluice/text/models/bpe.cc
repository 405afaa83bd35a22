// Byte-pair encoding.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "sluice/base/text/strings.h"
#include "sluice/text/characters/byte_alphabet.h"
#include "sluice/text/flat_map.h"
#include "sluice/text/models/model.h"

namespace sluice::text {
namespace {

struct Merge {
  std::uint32_t rank = 0;
  TokenId id = 0;
};

std::uint64_t pair_of(TokenId first, TokenId second) {
  return static_cast<std::uint64_t>(first) << 32 | second;
}

// Orders the heap: the lowest rank comes first, and among equal ranks the leftmost.
bool later(const MergeCandidate& a, const MergeCandidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.place > b.place;
}

// The token for parts of a word that have no token of their own; `fuse` joins neighbouring parts to one.
struct Unknown {
  TokenId id;
  std::uint32_t bytes;
};

class Bpe : public Model {
 public:
  static base::Result<std::unique_ptr<Model>> read(const JsonObject& object);

  bool can_take_bytes() const override { return prefix_.empty() && suffix_.empty() && !byte_fallback_; }

  void take_bytes() override {
    bytes_ = true;
    can_cut_ = false;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      byte_ids_[byte] = vocabulary_.find(to_byte_alphabet(std::string(1, static_cast<char>(byte))));
    }
    if (!ignore_merges_) return;
    vocabulary_.each([&](const std::string& text, TokenId id) {
      if (auto bytes = from_byte_alphabet(text)) words_.add(*std::move(bytes), id);
    });
  }

  bool can_cut_at_blanks() const override { return can_cut_; }

  base::Status encode(std::string_view word, EncodeScratch& scratch, TokenSink& sink) const override {
    if (ignore_merges_) {
      if (const auto id = (bytes_ ? words_ : vocabulary_).find(word)) {
        sink.put(*id, 0, word.size());
        return {};
      }
    }
    scratch.symbols.clear();
    if (bytes_) {
      split_bytes(word, scratch.symbols);
    } else {
      split_characters(word, scratch.symbols);
    }
    merge(scratch);
    std::size_t at = 0;
    for (const Symbol& symbol : scratch.symbols) {
      if (symbol.bytes == 0) continue;
      sink.put(symbol.id, at, at + symbol.bytes);
      at += symbol.bytes;
    }
    return {};
  }

 private:
  static void add(std::vector<Symbol>& symbols, TokenId id, std::uint32_t bytes) {
    const auto place = static_cast<std::int32_t>(symbols.size());
    if (place > 0) symbols.back().behind = place;
    symbols.push_back({id, place - 1, -1, bytes});
  }

  void add_unknown(std::vector<Symbol>& symbols, std::optional<Unknown>& unknown, std::uint32_t bytes) const {
    if (!unknown_) return;
    if (unknown && fuse_unknown_) {
      unknown->bytes += bytes;
      return;
    }
    flush(symbols, unknown);
    unknown = Unknown{*unknown_, bytes};
  }
  static void flush(std::vector<Symbol>& symbols, std::optional<Unknown>& unknown) {
    if (unknown) add(symbols, unknown->id, unknown->bytes);
    unknown.reset();
  }

  void split_bytes(std::string_view word, std::vector<Symbol>& symbols) const {
    std::optional<Unknown> unknown;
    for (const char c : word) {
      if (const auto& id = byte_ids_[static_cast<unsigned char>(c)]) {
        flush(symbols, unknown);
        add(symbols, *id, 1);
      } else {
        add_unknown(symbols, unknown, 1);
      }
    }
    flush(symbols, unknown);
  }

  void split_characters(std::string_view word, std::vector<Symbol>& symbols) const {
    std::optional<Unknown> unknown;
    std::string text;
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t bytes = utf8_length(word[at]);
      text.clear();
      if (at > 0) text += prefix_;
      text += word.substr(at, bytes);
      at += bytes;
      if (at == word.size()) text += suffix_;
      if (const auto id = vocabulary_.find(text)) {
        flush(symbols, unknown);
        add(symbols, *id, static_cast<std::uint32_t>(bytes));
      } else if (!byte_fallback_ || !add_bytes(symbols, text)) {
        add_unknown(symbols, unknown, static_cast<std::uint32_t>(bytes));
      }
    }
    flush(symbols, unknown);
  }

  // Adds the byte tokens of a text; if one of them is missing, adds nothing and returns false.
  bool add_bytes(std::vector<Symbol>& symbols, std::string_view text) const {
    const auto known = [this](char c) { return byte_ids_[static_cast<unsigned char>(c)].has_value(); };
    if (!std::all_of(text.begin(), text.end(), known)) return false;
    for (const char c : text) add(symbols, *byte_ids_[static_cast<unsigned char>(c)], 1);
    return true;
  }

  void merge(EncodeScratch& scratch) const {
    std::vector<Symbol>& symbols = scratch.symbols;
    std::vector<MergeCandidate>& heap = scratch.merges;
    heap.clear();
    const auto candidate = [&](std::int32_t place) {
      const Symbol& first = symbols[static_cast<std::size_t>(place)];
      const Symbol& second = symbols[static_cast<std::size_t>(first.behind)];
      const Merge* const found = merges_.find(pair_of(first.id, second.id));
      if (found == nullptr) return false;
      heap.push_back({found->rank, static_cast<std::uint32_t>(place), found->id});
      return true;
    };
    for (std::size_t place = 0; place + 1 < symbols.size(); ++place)
      candidate(static_cast<std::int32_t>(place));
    std::make_heap(heap.begin(), heap.end(), later);
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), later);
      const MergeCandidate top = heap.back();
      heap.pop_back();
      Symbol& first = symbols[top.place];
      if (first.bytes == 0 || first.behind < 0) continue;
      Symbol& second = symbols[static_cast<std::size_t>(first.behind)];
      const Merge* const found = merges_.find(pair_of(first.id, second.id));
      if (found == nullptr || found->id != top.id) continue;  // one of the two was merged in the meantime
      first.id = top.id;
      first.bytes += second.bytes;
      first.behind = second.behind;
      second.bytes = 0;
      if (first.behind >= 0)
        symbols[static_cast<std::size_t>(first.behind)].before = static_cast<std::int32_t>(top.place);
      if (first.before >= 0 && candidate(first.before)) std::push_heap(heap.begin(), heap.end(), later);
      if (first.behind >= 0 && candidate(static_cast<std::int32_t>(top.place)))
        std::push_heap(heap.begin(), heap.end(), later);
    }
  }

  base::Status read_merges(const JsonObject& object);

  // Whether a blank and the character before it are symbols of their own before anything is merged. An
  // omitted character would join its neighbours, and an unknown blank would join others.
  bool keeps_characters_apart() const {
    const bool has_all =
        unknown_ || (byte_fallback_ && std::all_of(byte_ids_.begin(), byte_ids_.end(),
                                                   [](const auto& id) { return id.has_value(); }));
    return has_all && prefix_.empty() && suffix_.empty() && !ignore_merges_ && vocabulary_.find(kBlank);
  }

  FlatMap<Merge> merges_;  // by pair_of
  std::string prefix_, suffix_;
  std::optional<TokenId> unknown_;
  bool fuse_unknown_ = false, byte_fallback_ = false, ignore_merges_ = false;
  bool bytes_ = false;    // the model takes words as bytes
  bool can_cut_ = false;  // words can be cut at blanks
  std::array<std::optional<TokenId>, 256> byte_ids_;
  Vocabulary words_;  // with bytes_: the tokens as bytes
};

base::Status Bpe::read_merges(const JsonObject& object) {
  SLUICE_TRY(const Json* const list, object.list("merges"));
  std::uint32_t rank = 0;
  can_cut_ = keeps_characters_apart();
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Json& merge = (*list)[i];
    std::string first, second;
    if (merge.is_string()) {
      const auto& both = merge.get_ref<const std::string&>();
      if (base::starts_with(both, "#version")) continue;
      const std::size_t space = both.find(' ');
      if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos)
        return object.fail("merge ", i, ": expected two tokens with a space between them, found '", both,
                           "'");
      first = both.substr(0, space);
      second = both.substr(space + 1);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      first = merge[0].get<std::string>();
      second = merge[1].get<std::string>();
    } else {
      return object.fail("merge ", i, ": expected a list of two tokens, found ", merge.type_name());
    }
    const auto first_id = vocabulary_.find(first), second_id = vocabulary_.find(second);
    if (second.size() < prefix_.size())
      return object.fail("merge ", i, ": '", second, "' is shorter than continuing_subword_prefix");
    const auto both_id = vocabulary_.find(first + second.substr(prefix_.size()));
    if (!first_id || !second_id || !both_id)
      return object.fail("merge ", i, ": '", first, "', '", second,
                         "' or both together are not a token of the vocabulary");
    merges_[pair_of(*first_id, *second_id)] = {rank++, *both_id};
    if (base::starts_with(second, kBlank) && !base::ends_with(first, kBlank)) can_cut_ = false;
  }
  return {};
}

base::Result<std::unique_ptr<Model>> Bpe::read(const JsonObject& object) {
  auto bpe = std::make_unique<Bpe>();
  if (object.has("dropout") &&
      !(object.field("dropout").value()->is_number() && object.field("dropout").value()->get<double>() == 0))
    return base::fail(Code::kUnimplemented, object.where(),
                      ": dropout leaves out merges at random, which is not supported: set it to null");
  SLUICE_TRY(bpe->vocabulary_, Vocabulary::read(object, "vocab"));
  SLUICE_TRY(bpe->prefix_, object.text_or("continuing_subword_prefix", ""));
  SLUICE_TRY(bpe->suffix_, object.text_or("end_of_word_suffix", ""));
  SLUICE_TRY(bpe->fuse_unknown_, object.flag_or("fuse_unk", false));
  SLUICE_TRY(bpe->byte_fallback_, object.flag_or("byte_fallback", false));
  SLUICE_TRY(bpe->ignore_merges_, object.flag_or("ignore_merges", false));
  if (object.has("unk_token")) {
    SLUICE_TRY(const std::string token, object.text("unk_token"));
    bpe->unknown_ = bpe->vocabulary_.find(token);
    if (!bpe->unknown_) return object.fail("unk_token '", token, "' is not a token of the vocabulary");
  }
  for (std::size_t byte = 0; bpe->byte_fallback_ && byte < 256; ++byte)
    bpe->byte_ids_[byte] = bpe->vocabulary_.find_byte(static_cast<unsigned char>(byte));
  SLUICE_OK(bpe->read_merges(object));
  return std::unique_ptr<Model>(std::move(bpe));
}

}  // namespace

base::Result<std::unique_ptr<Model>> read_bpe(const JsonObject& object) { return Bpe::read(object); }

}  // namespace sluice::text
