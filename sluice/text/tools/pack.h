// Texts as token files: PREFIX-0000.bin, PREFIX-0000.idx, PREFIX-0001.bin … (token_file.h).
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

// Where a set goes and how it is cut.
struct TokenSetOptions {
  std::string folder;  // made when it is missing
  std::string prefix = "train";
  std::uint64_t shard_tokens = 100'000'000;  // a file is full when it has so many; documents stay whole
  bool overwrite = false;                    // replaces a set of this prefix; without it that is an error
};

struct TokenSetReport {
  std::uint64_t documents = 0, tokens = 0;
  std::vector<std::string> files;  // without .bin
  int width = 0;
  std::size_t continued = 0;  // files that a run which was stopped had written
  std::uint64_t bytes = 0;    // of text that was read by this run
};

struct TokenPackOptions {
  std::vector<std::string> files;
  InputOptions input;
  TokenSetOptions set;
  std::optional<std::uint32_t> end;  // put behind each document
  int workers = 0;                   // 0: one for each core
  std::function<void(std::uint64_t documents, std::uint64_t tokens)> progress = {};
};

// Encodes all documents, in the order of the files. The token files are written into the hidden folder
// FOLDER/.PREFIX.partial and moved to their place when all are there; FOLDER/PREFIX.json, which lists them
// with their checksums, comes last. A run that was stopped goes on behind its last whole file when the same
// files are packed in the same way, and ends with the same bytes. Memory does not grow with the files.
base::Result<TokenSetReport> pack_tokens(const Tokenizer& tokenizer, const TokenPackOptions& options);

// Files of others.
enum class TokenFormat {
  kNanoGpt,   // uint16 without a header
  kLlmC,      // 256 × int32 (20240520, 1, tokens: uint16; or 20240801, 7, tokens: uint32), then the ids
  kMegatron,  // NAME.bin and NAME.idx
  kMds,       // a set of MosaicML's Streaming (data/tools/mds.h): only to be imported
};
base::Result<TokenFormat> token_format_of(const std::string& name);  // nanogpt, llmc, megatron, mds

struct TokenImportOptions {
  TokenFormat format = TokenFormat::kNanoGpt;
  std::vector<std::string> files;  // of kMds folders
  TokenSetOptions set;
  std::size_t vocabulary = 65'536;  // ids must be below
  // How documents are told apart, of files that do not say it: by an id that each begins with, or ends with.
  // Without them each sample of kMds is a document; with them its samples are read as one text.
  std::optional<std::uint32_t> begins_with, ends_with;
  std::string column = "tokens";  // of kMds
  std::string id_type = "";       // of kMds: of ids in bytes, "uint16", "int64", …
};
base::Result<TokenSetReport> import_tokens(const TokenImportOptions& options);

// One file (of Megatron-LM, two) with all documents of a set. kOutOfRange where an id does not fit the
// format.
base::Status export_tokens(const std::string& files, TokenFormat format, const std::string& path,
                           bool overwrite);

}  // namespace sluice::text
