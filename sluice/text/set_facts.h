// The facts that `sluice text pack` and `import` store next to a set: FOLDER/PREFIX.json and
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
  std::size_t vocabulary_size = 0;  // larger than all ids
  std::string tokenizer;            // the fingerprint of the tokenizer that made the set; "": unknown
};

// Returns the facts of the set that the first file belongs to; nullopt if there is no PREFIX.json. kDataLoss
// for a file that cannot be understood.
base::Result<std::optional<SetFacts>> set_facts(const TokenSet& set);
// Returns the path of the tokenizer.json in the first file's folder; "" if there is none.
std::string tokenizer_beside(const TokenSet& set);

// Returns `path` itself or, for a folder, the tokenizer.json in it.
std::string tokenizer_file(const std::string& path);
// Copies a tokenizer's file into the folder. kAlreadyExists if the folder has a different one, unless
// `overwrite`.
base::Status keep_tokenizer(const std::string& path, const std::string& folder, bool overwrite);

}  // namespace sluice::text
SLUICE_API_END
