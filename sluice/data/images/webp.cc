// WebP through libwebp.
#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>

#include "sluice/data/images/image.h"
#include "sluice/data/memory.h"

namespace sluice::data {

namespace {

// Decodes the first frame on its canvas.
base::Result<Pixels> decode_animation(std::string_view bytes, const WebPBitstreamFeatures& features,
                                      ColorModel model) {
  SLUICE_OK(check_pixels(features.width, features.height));
  const auto area = static_cast<std::size_t>(features.width) * static_cast<std::size_t>(features.height);
  // The claim covers the animation's two canvases, the lossless decoder's pixels, and the result.
  SLUICE_OK(claim_memory(area * 16, "the pixels of an animated WebP"));
  const WebPData data{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
  WebPAnimDecoderOptions options;
  WebPAnimDecoderOptionsInit(&options);
  options.color_mode = MODE_RGBA;
  const std::unique_ptr<WebPAnimDecoder, decltype(&WebPAnimDecoderDelete)> decoder(
      WebPAnimDecoderNew(&data, &options), &WebPAnimDecoderDelete);
  std::uint8_t* canvas = nullptr;
  int time = 0;
  if (!decoder || WebPAnimDecoderGetNext(decoder.get(), &canvas, &time) == 0)
    return base::fail(Code::kDataLoss, "not a valid WebP: it is damaged or cut off");
  const bool alpha = model == ColorModel::kRgba;
  Pixels pixels{features.height, features.width, alpha ? 4 : 3, {}};
  pixels.bytes.resize(area * static_cast<std::size_t>(pixels.channels));
  std::uint8_t* out = pixels.bytes.data();
  for (std::size_t i = 0; i < area; ++i, canvas += 4)
    for (std::int64_t c = 0; c < pixels.channels; ++c) *out++ = canvas[c];
  if (alpha) return pixels;
  return convert_rgb(std::move(pixels), model);
}

}  // namespace

base::Result<Pixels> decode_webp(std::string_view bytes, ColorModel model) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  const auto status = WebPGetFeatures(data, bytes.size(), &features);
  if (status != VP8_STATUS_OK)
    return base::fail(Code::kDataLoss, "not a valid WebP: ",
                      status == VP8_STATUS_NOT_ENOUGH_DATA ? "it is cut off" : "its header is damaged");
  if (features.has_animation != 0) return decode_animation(bytes, features, model);
  SLUICE_OK(check_pixels(features.width, features.height));
  const bool alpha = model == ColorModel::kRgba;
  Pixels pixels{features.height, features.width, alpha ? 4 : 3, {}};
  const auto size = static_cast<std::size_t>(pixels.height * pixels.width * pixels.channels);
  // The lossless decoder has 4 bytes more for each pixel.
  const auto area = static_cast<std::size_t>(pixels.height * pixels.width);
  SLUICE_OK(claim_memory(size + 4 * area, "the pixels of a WebP"));
  pixels.bytes.resize(size);
  const int stride = features.width * static_cast<int>(pixels.channels);
  const auto* done = (alpha ? WebPDecodeRGBAInto : WebPDecodeRGBInto)(data, bytes.size(), pixels.bytes.data(),
                                                                      pixels.bytes.size(), stride);
  if (done == nullptr) return base::fail(Code::kDataLoss, "not a valid WebP: it is damaged or cut off");
  if (alpha) return pixels;
  return convert_rgb(std::move(pixels), model);
}

}  // namespace sluice::data
