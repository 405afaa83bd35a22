// Reads the documents of text files one by one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::text {

// Longer documents, and lines of JSON, are an error: they probably lack line ends.
inline constexpr std::size_t kMaxDocument = std::size_t{64} << 20;

enum class InputFormat {
  kAuto,  // by name: .jsonl, .ndjson and .json are JSON lines, .tar is shards, else text
  kText,
  kJsonLines,
  kShards,  // WebDataset's: each document is a member of a sample
};
// The unit of text files that is a document (sample_by in Hugging Face's datasets).
enum class SampleBy { kLine, kParagraph, kDocument };

struct InputOptions {
  InputFormat format = InputFormat::kAuto;
  SampleBy sample_by = SampleBy::kLine;
  std::string field = "text";   // in a JSON line, or in a member .json
  std::string member = "txt";   // the extension of the sample's member
  bool keep_line_ends = false;  // for lines: keep the line's end as a part of it
};
// kInvalidArgument lists the known names.
base::Result<InputFormat> input_format_of(const std::string& name);
base::Result<SampleBy> sample_by_of(const std::string& name);

// A document as its file stores it; text_of() returns its text.
struct RawDocument {
  std::string bytes;
  std::uint64_t begin = 0, end = 0;  // bytes of the unpacked file; a reader may begin at `end`
  bool is_json = false;
};

// Returns the text: the line itself, or the JSON's field. kInvalidArgument names the file, the place and the
// fault: no UTF-8, no JSON, no such field. Threads: any.
base::Result<std::string> text_of(RawDocument document, const std::string& file, const InputOptions& options);

// Reads the documents of one file, which may be packed (gzip, zstd) or remote (data::open_source). Empty
// documents are left out. Threads: one at a time.
class DocumentReader {
 public:
  virtual ~DocumentReader() = default;
  // Returns false at the end.
  virtual base::Result<bool> next(RawDocument& document) = 0;
};
// Begins at the byte `begin` of the unpacked file, where a document must begin.
base::Result<std::unique_ptr<DocumentReader>> open_documents(const std::string& file,
                                                             const InputOptions& options,
                                                             std::uint64_t begin = 0);

// Consecutive documents of one file.
struct DocumentBatch {
  std::size_t file = 0;
  std::vector<RawDocument> documents;
  std::size_t bytes = 0;  // in memory
  std::size_t size() const { return bytes; }
};

// Reads the documents of several files in order, in batches of at least `bytes`, or the rest of a file. Keeps
// references to its arguments. Threads: one at a time.
class BatchReader {
 public:
  // Begins at the byte `begin` of the file with the number `file`.
  BatchReader(const std::vector<std::string>& files, const InputOptions& options, std::size_t bytes,
              std::size_t file = 0, std::uint64_t begin = 0)
      : files_(files), options_(options), bytes_(bytes), file_(file), begin_(begin) {}
  // Returns false at the end.
  base::Result<bool> next(DocumentBatch& batch);

 private:
  const std::vector<std::string>& files_;
  const InputOptions& options_;
  const std::size_t bytes_;
  std::size_t file_;
  std::uint64_t begin_;
  std::unique_ptr<DocumentReader> reader_;
};

}  // namespace sluice::text
