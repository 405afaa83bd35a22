// Writes NAME.bin and NAME.idx (token_file.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/base/result.h"

namespace sluice::text {

// Returns the bytes of an id: 2 for a vocabulary of at most 65,536 tokens, else 4.
int token_width(std::size_t vocabulary);

// Both files appear when commit() succeeds, the index last. Threads: one at a time.
class TokenWriter {
 public:
  static base::Result<TokenWriter> create(const std::string& name, int width);

  // Adds a document. kOutOfRange if an id does not fit the width.
  base::Status add(const std::uint32_t* ids, std::size_t count);
  base::Status commit();
  std::size_t documents() const { return lengths_.size(); }
  std::uint64_t tokens() const { return tokens_; }
  // The checksum of the bytes of NAME.bin, after commit().
  std::uint32_t crc32c() const { return crc_; }

 private:
  TokenWriter(std::string name, int width, base::AtomicFile file)
      : name_(std::move(name)), width_(width), file_(std::move(file)) {}
  base::Status write();

  std::string name_;
  int width_;
  base::AtomicFile file_;
  std::vector<std::int32_t> lengths_;
  std::uint64_t tokens_ = 0;
  std::uint32_t crc_ = 0;
  std::string bytes_;
};

}  // namespace sluice::text
