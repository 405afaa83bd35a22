// GIF, BMP, TIFF, AVIF, animated WebP and what Exif says of a photograph, each from a corpus of its own: a
// decoder may refuse a file, under a small budget, but must not fail otherwise.
#include <string_view>

#include "sluice/data/images/image.h"
#include "sluice/data/memory.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice::data;
  memory_limits().sample = 32 << 20;
  memory_limits().pixels = 1 << 18;
  const SampleMemory memory;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const auto model = size % 3 == 0 ? ColorModel::kGray : size % 3 == 1 ? ColorModel::kRgb : ColorModel::kRgba;
  if (auto pixels = decode_image(file, model))
    static_cast<void>(upright(std::move(*pixels), orientation_of(file)));
  return 0;
}
