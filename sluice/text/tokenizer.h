// Tokenizers, as Hugging Face's library `tokenizers` writes them into a tokenizer.json.
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
  bool special_tokens = true;  // those of the file's template, such as [CLS] … [SEP]
  bool limits = true;          // truncates and pads, if the file says so
  bool offsets = false;        // fills Encoding::offsets and Encoding::tokens
};

// Models BPE (of bytes, and with byte fallback), WordPiece and Unigram, with their normalizers,
// pre-tokenizers, post-processors and decoders. Ids, offsets and texts are those of `tokenizers` 0.23.
//
// Texts are UTF-8, at most 1 GiB; anything else is kInvalidArgument, which names the byte. Everything throws
// sluice::Error. A copy shares what was loaded. Threads: all members but assignment from any thread.
class Tokenizer {
 public:
  // A file or a folder with a tokenizer.json in it. kNotFound, or kInvalidArgument with the place in the
  // file; kUnimplemented names a component that is not known and lists those that are.
  static Tokenizer load(const std::string& path);
  // The file's text; `name` is for errors.
  static Tokenizer parse(std::string_view json, const std::string& name = "tokenizer.json");

  // A text, or two, as a model is fed with them.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options = {}) const;
  // Puts the ids of a text behind those that are there: no template, no truncation, no padding. The quickest
  // way.
  void append_ids(std::string_view text, std::vector<std::uint32_t>& ids) const;

  // kOutOfRange names the first id that no token has, and its place. Bytes that make no UTF-8 become U+FFFD.
  std::string decode(const std::uint32_t* ids, std::size_t count, bool skip_special_tokens = true) const;
  std::string decode(const std::vector<std::uint32_t>& ids, bool skip_special_tokens = true) const {
    return decode(ids.data(), ids.size(), skip_special_tokens);
  }

  // One more than the largest id: the rows that an embedding needs.
  std::size_t vocabulary_size() const;
  std::optional<std::uint32_t> id_of(std::string_view token) const;
  // As the file spells it: Ġbeginning. Nothing where no token has this id.
  std::optional<std::string> token_of(std::uint32_t id) const;
  bool is_special(std::uint32_t id) const;
  // SHA-256 of the file, in hexadecimal: what was encoded by equal ones is alike.
  const std::string& fingerprint() const;

  struct Parts;

 private:
  explicit Tokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace sluice::text
SLUICE_API_END
