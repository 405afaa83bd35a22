// Tokenizers in the format of Hugging Face's library `tokenizers`, tokenizer.json.
//
//   auto tokenizer = sluice::text::Tokenizer::load("tokenizer.json");
//   auto encoding = tokenizer.encode("In the beginning");
//   std::string text = tokenizer.decode(encoding.ids);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/text/encoding.h"

SLUICE_API_BEGIN
namespace sluice::text {

struct EncodeOptions {
  bool special_tokens = true;  // adds the tokens of the file's template, such as [CLS] … [SEP]
  bool limits = true;          // truncates and pads, if the file says so
  bool offsets = false;        // fills Encoding::offsets and Encoding::tokens
};

// The models are BPE (of bytes, and with byte fallback), WordPiece and Unigram, with their normalizers,
// pre-tokenizers, post-processors and decoders. Ids, offsets and texts equal those from `tokenizers` 0.23.
//
// Texts are UTF-8, at most 1 GiB; any other text is kInvalidArgument, which names the byte. All members throw
// sluice::Error. A copy shares the loaded file. Threads: all members except assignment, from any thread.
class Tokenizer {
 public:
  // Loads a file, or the tokenizer.json in a folder. kNotFound; kInvalidArgument with the place in the file;
  // kUnimplemented names an unknown component and lists the known ones.
  static Tokenizer load(const std::string& path);
  // Parses the text of a file; `name` is for errors.
  static Tokenizer parse(std::string_view json, const std::string& name = "tokenizer.json");

  // Encode one text, or two, as input for a model.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options = {}) const;
  // Appends the ids of a text: no template, no truncation, no padding. This is the fastest way.
  void append_ids(std::string_view text, std::vector<std::uint32_t>& ids) const;

  // kOutOfRange names the first id without a token, and its place. Bytes that make no UTF-8 become U+FFFD.
  std::string decode(const std::uint32_t* ids, std::size_t count, bool skip_special_tokens = true) const;
  std::string decode(const std::vector<std::uint32_t>& ids, bool skip_special_tokens = true) const {
    return decode(ids.data(), ids.size(), skip_special_tokens);
  }

  // The largest id + 1: the number of rows of an embedding.
  std::size_t vocabulary_size() const;
  std::optional<std::uint32_t> id_of(std::string_view token) const;
  // Returns the token as the file spells it: Ġbeginning. nullopt if no token has this id.
  std::optional<std::string> token_of(std::uint32_t id) const;
  bool is_special(std::uint32_t id) const;
  // The SHA-256 of the file, in hexadecimal: equal fingerprints encode alike.
  const std::string& fingerprint() const;

  struct Parts;

 private:
  explicit Tokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace sluice::text
SLUICE_API_END
