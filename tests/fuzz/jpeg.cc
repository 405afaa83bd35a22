// JPEG and WebP: decoded whole and in part. Where both succeed, the part is what the whole has there.
#include <string_view>

#include "sluice/data/images/image.h"
#include "sluice/data/images/resize.h"
#include "tests/fuzz/demand.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  // Large images cost time and show nothing new: the extents stand in the frame header.
  for (std::size_t at = 0; at + 9 <= size; ++at)
    if (data[at] == 0xff && data[at + 1] >= 0xc0 && data[at + 1] <= 0xc2 &&
        (data[at + 5] > 1 || data[at + 7] > 1))
      return 0;
  const auto whole = data::decode_image(file, data::ColorModel::kRgb);
  if (!data::is_jpeg(file)) return 0;
  data::Region region;
  const auto choose = [&](std::int64_t height, std::int64_t width) {
    region = {height / 3, width / 3, height - height / 3 - height / 4, width - width / 3 - width / 4};
    return region;
  };
  const auto part = data::decode_jpeg_region(file, data::ColorModel::kRgb, choose, 300, 300);
  if (whole && part)
    fuzz::demand(part->bytes == data::resize_region(*whole, region, 300, 300).bytes,
                 "a part is what the whole has there");
  fuzz::demand(part.has_value() || !whole.has_value(), "a part of a sound file is sound");
  return 0;
}
