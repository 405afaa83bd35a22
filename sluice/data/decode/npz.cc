#include "sluice/data/decode/npz.h"

#include <libdeflate.h>

#include <memory>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/decode/npy.h"
#include "sluice/data/memory.h"

namespace sluice::data {
namespace {

constexpr std::size_t kEndSize = 22, kEntrySize = 46, kLocalSize = 30;

tl::unexpected<Error> npz_error(const std::string& cause) {
  return base::fail(Code::kDataLoss, "not a readable npz file: ", cause);
}

std::uint32_t number(std::string_view bytes, std::size_t at, int size) {
  std::uint32_t value = 0;
  for (int i = size; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[at + static_cast<std::size_t>(i)]);
  return value;
}

// One entry of the central directory.
struct Entry {
  std::uint32_t method = 0, sum = 0, packed = 0, size = 0, offset = 0;
  std::string name;
};

base::Result<std::string> unpack(const Entry& entry, std::string_view bytes) {
  if (entry.offset > bytes.size() || bytes.size() - entry.offset < kLocalSize ||
      bytes.substr(entry.offset, 4) != "PK\x03\x04")
    return npz_error(entry.name + " is not where the directory says");
  const std::size_t start =
      entry.offset + kLocalSize + number(bytes, entry.offset + 26, 2) + number(bytes, entry.offset + 28, 2);
  if (start > bytes.size() || bytes.size() - start < entry.packed)
    return npz_error(entry.name + " is cut off");
  const std::string_view packed = bytes.substr(start, entry.packed);
  // Deflate packs at most 1032 bytes into one: a false size must not claim memory for nothing.
  if (entry.size / 1032 > entry.packed) return npz_error(entry.name + " cannot be as large as it says");
  SLUICE_OK(claim_memory(entry.size, "an npz member"));
  std::string plain(entry.size, '\0');
  if (entry.method == 0 && entry.packed == entry.size) {
    plain = packed;
  } else if (entry.method == 8) {
    const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> inflate(
        libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
    if (!inflate || libdeflate_deflate_decompress(inflate.get(), packed.data(), packed.size(), plain.data(),
                                                  plain.size(), nullptr) != LIBDEFLATE_SUCCESS)
      return npz_error(entry.name + " is damaged");
  } else {
    return npz_error(base::str(entry.name, " is packed by method ", entry.method, ": expected 0 or 8"));
  }
  if (libdeflate_crc32(0, plain.data(), plain.size()) != entry.sum)
    return npz_error(entry.name + " does not have its checksum");
  return plain;
}

}  // namespace

base::Result<Arrays> parse_npz(std::string_view bytes) {
  const std::size_t end = bytes.rfind("PK\x05\x06");
  if (!base::starts_with(bytes, "PK") || end == std::string_view::npos || bytes.size() - end < kEndSize)
    return npz_error("it is not a zip archive, or cut off");
  const std::uint32_t count = number(bytes, end + 10, 2);
  std::size_t at = number(bytes, end + 16, 4);
  if (count == 0xFFFF || at == 0xFFFFFFFF) return npz_error("ZIP64 is not supported");
  Arrays result;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (at > end || end - at < kEntrySize || bytes.substr(at, 4) != "PK\x01\x02")
      return npz_error("its directory is damaged");
    Entry entry{number(bytes, at + 10, 2), number(bytes, at + 16, 4), number(bytes, at + 20, 4),
                number(bytes, at + 24, 4), number(bytes, at + 42, 4), {}};
    const std::size_t length = number(bytes, at + 28, 2);
    if (end - at - kEntrySize < length) return npz_error("its directory is damaged");
    entry.name = bytes.substr(at + kEntrySize, length);
    if ((number(bytes, at + 8, 2) & 1) != 0) return npz_error(entry.name + " is encrypted");
    if (entry.size == 0xFFFFFFFF || entry.packed == 0xFFFFFFFF || entry.offset == 0xFFFFFFFF)
      return npz_error("ZIP64 is not supported");
    SLUICE_TRY(const std::string plain, unpack(entry, bytes));
    auto array = parse_npy(plain);
    if (!array) return base::fail_at(array, entry.name);
    if (base::ends_with(entry.name, ".npy")) entry.name.resize(entry.name.size() - 4);
    result[entry.name] = std::move(*array);
    at += kEntrySize + length + number(bytes, at + 30, 2) + number(bytes, at + 32, 2);
  }
  return result;
}

}  // namespace sluice::data
