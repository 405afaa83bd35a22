// What `sluice text pack` and `import` say of a set beside its files: FOLDER/PREFIX.json and
// FOLDER/tokenizer.json.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "sluice/base/export.h"
#include "sluice/base/result.h"
#include "sluice/text/token_file.h"

SLUICE_API_BEGIN
namespace sluice::text {

struct SetFacts {
  std::size_t vocabulary_size = 0;  // all ids are below
  std::string tokenizer;            // the fingerprint of the one that it was made with; "": not known
};

// Of the set that the first file belongs to; nothing where there is no PREFIX.json. kDataLoss for one that
// cannot be understood.
base::Result<std::optional<SetFacts>> set_facts(const TokenSet& set);
// The tokenizer.json in the first file's folder; "" where there is none.
std::string tokenizer_beside(const TokenSet& set);

// `path` itself, or the tokenizer.json in this folder.
std::string tokenizer_file(const std::string& path);
// Has the folder hold a copy of a tokenizer's file. kAlreadyExists where it has another one, unless
// `overwrite`.
base::Status keep_tokenizer(const std::string& path, const std::string& folder, bool overwrite);

}  // namespace sluice::text
SLUICE_API_END
