// Packs texts into token files: PREFIX-0000.bin, PREFIX-0000.idx, PREFIX-0001.bin … (token_file.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/text/tokenizer.h"
#include "sluice/text/tools/document_reader.h"

namespace sluice::text {

// The location and the files of a set.
struct TokenSetOptions {
  std::string folder;  // created if it is missing
  std::string prefix = "train";
  std::uint64_t shard_tokens = 100'000'000;  // a file is full with this number; documents stay whole
  bool overwrite = false;                    // replaces a set of this prefix; else that is an error
};

struct TokenSetReport {
  std::uint64_t documents = 0, tokens = 0;
  std::vector<std::string> files;  // without .bin
  int width = 0;
  std::size_t continued = 0;  // files that an interrupted run had written
  std::uint64_t bytes = 0;    // bytes of text that this run has read
};

struct TokenPackOptions {
  std::vector<std::string> files;
  InputOptions input;
  TokenSetOptions set;
  std::optional<std::uint32_t> end;  // put after each document
  int workers = 0;                   // 0: one for each core
  std::function<void(std::uint64_t documents, std::uint64_t tokens)> progress = {};
};

// Encodes all documents, in the order of the files. The token files are written into the hidden folder
// FOLDER/.PREFIX.partial and moved to their place when all are complete; FOLDER/PREFIX.json, which lists them
// with their checksums, comes last. An interrupted run resumes after its last whole file if the same files
// are packed in the same way, and ends with the same bytes. Memory use does not grow with the files.
base::Result<TokenSetReport> pack_tokens(const Tokenizer& tokenizer, const TokenPackOptions& options);

// Formats of other programs.
enum class TokenFormat {
  kNanoGpt,   // uint16 without a header
  kLlmC,      // 256 × int32 (20240520, 1, tokens: uint16; or 20240801, 7, tokens: uint32), then the ids
  kMegatron,  // NAME.bin and NAME.idx
  kMds,       // a set of MosaicML's Streaming (data/tools/mds/mds.h): import only
};
base::Result<TokenFormat> token_format_of(const std::string& name);  // nanogpt, llmc, megatron, mds

struct TokenImportOptions {
  TokenFormat format = TokenFormat::kNanoGpt;
  std::vector<std::string> files;  // for kMds, folders
  TokenSetOptions set;
  std::size_t vocabulary = 65'536;  // all ids must be below
  // The id that begins or ends each document, in files without document boundaries. Without it each sample of
  // kMds is a document; with it the samples are read as one text.
  std::optional<std::uint32_t> begins_with, ends_with;
  std::string column = "tokens";  // for kMds
  std::string id_type = "";       // for kMds: the type of ids in bytes, "uint16", "int64", …
};
base::Result<TokenSetReport> import_tokens(const TokenImportOptions& options);

// Writes all documents of a set to one file (for Megatron-LM, two). kOutOfRange if an id does not fit the
// format.
base::Status export_tokens(const std::string& files, TokenFormat format, const std::string& path,
                           bool overwrite);

}  // namespace sluice::text
