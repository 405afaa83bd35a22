// The documents of text files, one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::text {

// Longer documents, and lines of JSON, are an error: somebody forgot their ends.
inline constexpr std::size_t kMaxDocument = std::size_t{64} << 20;

enum class InputFormat {
  kAuto,  // by the name: .jsonl, .ndjson and .json are JSON lines, .tar is shards, anything else is text
  kText,
  kJsonLines,
  kShards,  // WebDataset's: a document is a sample's member
};
// What a document of a text file is: HF's datasets call it sample_by.
enum class SampleBy { kLine, kParagraph, kDocument };

struct InputOptions {
  InputFormat format = InputFormat::kAuto;
  SampleBy sample_by = SampleBy::kLine;
  std::string field = "text";   // of a JSON line, or of a member .json
  std::string member = "txt";   // of a sample: the extension
  bool keep_line_ends = false;  // of lines: the line's end is a part of it
};
// kInvalidArgument names those that are known.
base::Result<InputFormat> input_format_of(const std::string& name);
base::Result<SampleBy> sample_by_of(const std::string& name);

// A document as it stands in its file: text(document) makes the text of it.
struct RawDocument {
  std::string bytes;
  std::uint64_t begin = 0, end = 0;  // in the file, after unpacking; a reader may begin at `end`
  bool is_json = false;
};

// The text: the line itself, or what the JSON says. kInvalidArgument names the file, the place and what is
// wrong: no UTF-8, no JSON, no such field. Threads: any.
base::Result<std::string> text_of(RawDocument document, const std::string& file, const InputOptions& options);

// The documents of one file, which may be packed (gzip, zstd) or remote (data::open_source). Empty ones are
// left out. Threads: one at a time.
class DocumentReader {
 public:
  virtual ~DocumentReader() = default;
  // False at the end.
  virtual base::Result<bool> next(RawDocument& document) = 0;
};
// From the byte `begin` of the unpacked file, where a document begins.
base::Result<std::unique_ptr<DocumentReader>> open_documents(const std::string& file,
                                                             const InputOptions& options,
                                                             std::uint64_t begin = 0);

// Documents of one file.
struct DocumentBatch {
  std::size_t file = 0;
  std::vector<RawDocument> documents;
  std::size_t bytes = 0;  // in memory
  std::size_t size() const { return bytes; }
};

// The documents of several files in order, in batches of at least `bytes` where a file has so many. Keeps
// references. Threads: one at a time.
class BatchReader {
 public:
  // From the byte `begin` of the file number `file` on.
  BatchReader(const std::vector<std::string>& files, const InputOptions& options, std::size_t bytes,
              std::size_t file = 0, std::uint64_t begin = 0)
      : files_(files), options_(options), bytes_(bytes), file_(file), begin_(begin) {}
  // False at the end.
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
