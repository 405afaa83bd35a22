// Tokenized texts on a disk: Megatron-LM's indexed data sets, NAME.bin and NAME.idx, mapped into memory.
//
// NAME.bin contains the ids of all documents in sequence, as uint16 or int32, little-endian. NAME.idx
// contains, little-endian: "MMIDIDX\0\0", 1 (uint64), the element's code (uint8: 8 is uint16, 4 is int32),
// the number of sequences n (uint64) and the length d of the last list (uint64); then the sequences' lengths
// in ids (n × int32), their places in NAME.bin in bytes (n × int64), and the number of each document's first
// sequence, followed by n (d × int64). Sluice writes one sequence for each document.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/export.h"

SLUICE_API_BEGIN
namespace sluice::text {

// One pair of files, to read. All members throw sluice::Error: kNotFound; kDataLoss for a file that is cut
// off or an index that points past its end. A copy shares the mapping. Threads: any number of them.
class TokenFile {
 public:
  // `path` is NAME, NAME.bin or NAME.idx.
  static TokenFile open(const std::string& path);

  const std::string& name() const;  // without .bin
  std::size_t documents() const;
  std::uint64_t tokens() const;
  int width() const;  // bytes an id: 2 or 4
  // Returns where a document begins, counted in tokens of the file; begin(documents()) is tokens().
  std::uint64_t begin(std::size_t document) const;
  std::uint64_t length(std::size_t document) const { return begin(document + 1) - begin(document); }
  // Copies tokens from `begin` on, from one or several documents. kOutOfRange past the end.
  void copy(std::uint64_t begin, std::size_t count, std::uint32_t* ids) const;
  // kOutOfRange names the first id that is not below `vocabulary`, with its document and its place there.
  void check(std::size_t vocabulary) const { check(vocabulary, 0, tokens()); }
  // Checks `count` tokens from `begin` on.
  void check(std::size_t vocabulary, std::uint64_t begin, std::uint64_t count) const;

 private:
  struct Mapping;
  explicit TokenFile(std::shared_ptr<const Mapping> mapping) : mapping_(std::move(mapping)) {}
  std::shared_ptr<const Mapping> mapping_;
};

// Several token files as one, in sequence. Threads: any number of them.
class TokenSet {
 public:
  // `files` as data sets name them: 'tokens/train-*.bin', braces, lists, several joined by '::'.
  static TokenSet open(const std::string& files);
  explicit TokenSet(std::vector<TokenFile> files);

  const std::vector<TokenFile>& files() const { return files_; }
  std::size_t documents() const { return first_.back(); }
  std::uint64_t tokens() const { return begins_.back(); }
  std::uint64_t length(std::size_t document) const;
  // Returns where a document begins, counted in tokens of the set.
  std::uint64_t begin(std::size_t document) const;
  std::vector<std::uint32_t> document(std::size_t document) const;
  // Copies tokens from `begin` on, from one or several documents and files. kOutOfRange past the end.
  void copy(std::uint64_t begin, std::size_t count, std::uint32_t* ids) const;
  // Checks as TokenFile::check does.
  void check(std::size_t vocabulary, std::uint64_t begin, std::uint64_t count) const;

 private:
  std::pair<std::size_t, std::size_t> find(std::size_t document) const;  // its file, and its number in it
  // Calls use(file, begin, count) for each part of a file in the tokens of the set from `begin` on.
  template <typename Use>
  void for_parts(std::uint64_t begin, std::uint64_t count, const Use& use) const;
  std::vector<TokenFile> files_;
  std::vector<std::size_t> first_ = {0};     // [file]: the number of its first document; then that of all
  std::vector<std::uint64_t> begins_ = {0};  // [file]: its first token; then the number of all
};

}  // namespace sluice::text
SLUICE_API_END
