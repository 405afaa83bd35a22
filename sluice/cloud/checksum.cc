#include "sluice/cloud/checksum.h"

#include <openssl/evp.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "sluice/base/formats/base64.h"
#include "sluice/base/formats/sha256.h"

namespace sluice::cloud {
namespace {

using Tables = std::array<std::array<std::uint64_t, 256>, 8>;

// Computes the tables for eight bytes a step ("slicing by 8"), for a reflected polynomial of at most 64 bits.
constexpr Tables tables_of(std::uint64_t polynomial) {
  Tables tables{};
  for (std::uint64_t byte = 0; byte < 256; ++byte) {
    std::uint64_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? polynomial : 0);
    tables[0][byte] = value;
  }
  for (std::size_t i = 1; i < 8; ++i)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[i][byte] = (tables[i - 1][byte] >> 8) ^ tables[0][tables[i - 1][byte] & 255];
  return tables;
}

constexpr Tables kCrc32 = tables_of(0xEDB88320);
constexpr Tables kCrc64Nvme = tables_of(0x9A6C9329AC4BC9B5);

std::uint64_t add_to(std::uint64_t crc, const Tables& tables, const unsigned char* bytes, std::size_t size) {
  static_assert(std::endian::native == std::endian::little);
  for (; size >= 8; bytes += 8, size -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, 8);
    word ^= crc;
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= tables[7 - i][word >> (8 * i) & 255];
  }
  for (; size > 0; ++bytes, --size) crc = (crc >> 8) ^ tables[0][(crc ^ *bytes) & 255];
  return crc;
}

}  // namespace

struct Digest::State {
  ChecksumKind kind;
  std::uint64_t crc = 0;  // inverted
  EVP_MD_CTX* context = nullptr;
};

const char* name_of(ChecksumKind kind) {
  switch (kind) {
    case ChecksumKind::kCrc32:
      return "crc32";
    case ChecksumKind::kCrc64Nvme:
      return "crc64nvme";
    case ChecksumKind::kMd5:
      return "md5";
    case ChecksumKind::kSha256:
      return "sha256";
  }
  return "";
}

Digest::Digest(ChecksumKind kind) : state_(new State{kind}) {
  if (kind == ChecksumKind::kCrc32) state_->crc = 0xFFFFFFFF;
  if (kind == ChecksumKind::kCrc64Nvme) state_->crc = ~std::uint64_t{0};
  if (kind != ChecksumKind::kMd5 && kind != ChecksumKind::kSha256) return;
  state_->context = EVP_MD_CTX_new();
  EVP_DigestInit_ex(state_->context, kind == ChecksumKind::kMd5 ? EVP_md5() : EVP_sha256(), nullptr);
}

Digest::~Digest() { EVP_MD_CTX_free(state_->context); }

void Digest::add(const void* bytes, std::size_t size) {
  if (state_->context != nullptr)
    EVP_DigestUpdate(state_->context, bytes, size);
  else
    state_->crc = add_to(state_->crc, state_->kind == ChecksumKind::kCrc32 ? kCrc32 : kCrc64Nvme,
                         static_cast<const unsigned char*>(bytes), size);
}

std::string Digest::bytes() {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = state_->kind == ChecksumKind::kCrc32 ? 4 : 8;
  if (state_->context != nullptr)
    EVP_DigestFinal_ex(state_->context, bytes, &size);
  else
    for (unsigned i = 0; i < size; ++i)
      bytes[i] = static_cast<unsigned char>(~state_->crc >> (8 * (size - 1 - i)));
  return {reinterpret_cast<const char*>(bytes), size};
}

std::string hexadecimal_of_base64(const std::string& text) {
  return base::hexadecimal(base::bytes_of_base64(text).value_or(""));
}

}  // namespace sluice::cloud
