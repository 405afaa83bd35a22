// Checksums of whole objects that stores report besides CRC-32C.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace sluice::cloud {

enum class ChecksumKind { kCrc32, kCrc64Nvme, kMd5, kSha256 };

const char* name_of(ChecksumKind kind);  // "md5"

struct Checksum {
  ChecksumKind kind = ChecksumKind::kMd5;
  std::string value;  // in lower-case hexadecimal
};

// Computes the checksum of a content from front to back. MD5 processes 0.6 GB/s on one core, the others more.
// Threads: one at a time.
class Digest {
 public:
  explicit Digest(ChecksumKind kind);
  ~Digest();
  void add(const void* bytes, std::size_t size);
  // Returns the bytes of the checksum of all that was added; nothing can be added afterwards.
  std::string bytes();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// Converts base64 to hexadecimal; "" if the text is not valid.
std::string hexadecimal_of_base64(const std::string& text);

}  // namespace sluice::cloud
