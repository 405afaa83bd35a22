// PNG: the quick decoder takes a file only when libspng gives the same pixels. Checksums of chunks are put
// right in a second pass, so that mutations get behind them.
#include <libdeflate.h>

#include <string>

#include "sluice/data/images/png_fast.h"
#include "tests/fuzz/demand.h"

namespace {

std::uint32_t big_endian(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

void put_checksums_right(std::string& file) {
  for (std::size_t at = 8; at + 12 <= file.size();) {
    const std::size_t size = big_endian(file, at);
    if (size > file.size() - at - 12) return;
    const std::uint32_t sum = libdeflate_crc32(0, file.data() + at + 4, size + 4);
    for (std::size_t i = 0; i < 4; ++i) file[at + 8 + size + i] = static_cast<char>(sum >> (24 - 8 * i));
    at += size + 12;
  }
}

void compare(const std::string& file) {
  using namespace sluice;
  for (const auto model : {data::ColorModel::kGray, data::ColorModel::kRgb, data::ColorModel::kRgba}) {
    const auto fast = data::decode_png_fast(file, model);
    if (!fast) {
      static_cast<void>(data::decode_png(file, model));
      continue;
    }
    const auto general = data::decode_png_general(file, model);
    fuzz::demand(general.has_value(), "libspng takes what the quick decoder takes");
    fuzz::demand(general->bytes == fast->bytes, "both give the same pixels");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  // Large images cost time and show nothing new.
  if (file.size() > 24 && (big_endian(file, 16) > 4096 || big_endian(file, 20) > 4096)) return 0;
  compare(file);
  put_checksums_right(file);
  compare(file);
  return 0;
}
