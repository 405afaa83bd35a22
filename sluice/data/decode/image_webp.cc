// WebP through libwebp.
#include <webp/decode.h>

#include "sluice/data/decode/image.h"
#include "sluice/data/memory.h"

namespace sluice::data {

base::Result<Pixels> decode_webp(std::string_view bytes, ColorModel model) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  const auto status = WebPGetFeatures(data, bytes.size(), &features);
  if (status != VP8_STATUS_OK)
    return base::fail(Code::kDataLoss, "not a sound WebP: ",
                      status == VP8_STATUS_NOT_ENOUGH_DATA ? "it is cut off" : "its header is damaged");
  if (features.has_animation != 0)
    return base::fail(Code::kUnimplemented, "an animated WebP: expected one image");
  SLUICE_OK(check_pixels(features.width, features.height));
  const bool alpha = model == ColorModel::kRgba;
  Pixels pixels{features.height, features.width, alpha ? 4 : 3, {}};
  const auto size = static_cast<std::size_t>(pixels.height * pixels.width * pixels.channels);
  // The lossless decoder has 4 bytes for each pixel besides.
  const auto area = static_cast<std::size_t>(pixels.height * pixels.width);
  SLUICE_OK(claim_memory(size + 4 * area, "the pixels of a WebP"));
  pixels.bytes.resize(size);
  const int stride = features.width * static_cast<int>(pixels.channels);
  const auto* done = (alpha ? WebPDecodeRGBAInto : WebPDecodeRGBInto)(data, bytes.size(), pixels.bytes.data(),
                                                                      pixels.bytes.size(), stride);
  if (done == nullptr) return base::fail(Code::kDataLoss, "not a sound WebP: it is damaged or cut off");
  return alpha ? std::move(pixels) : convert_rgb(std::move(pixels), model);
}

}  // namespace sluice::data
