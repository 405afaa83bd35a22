// AVIF through libavif; for a sequence, the first image.
#include <avif/avif.h>

#include <algorithm>
#include <memory>

#include "sluice/data/images/image.h"
#include "sluice/data/memory.h"

namespace sluice::data {
namespace {

tl::unexpected<Error> unsound_avif(avifResult result) {
  return base::fail(Code::kDataLoss, "not a valid AVIF: ", avifResultToString(result));
}

using AvifDecoder = std::unique_ptr<avifDecoder, decltype(&avifDecoderDestroy)>;

// Reads the header of an image of at most `pixels` pixels.
avifResult parse(avifDecoder& decoder, std::string_view bytes, std::int64_t pixels, bool metadata = false) {
  decoder.maxThreads = 1;
  decoder.ignoreExif = decoder.ignoreXMP = metadata ? AVIF_FALSE : AVIF_TRUE;
  decoder.imageSizeLimit =
      static_cast<std::uint32_t>(std::min<std::int64_t>(pixels, AVIF_DEFAULT_IMAGE_SIZE_LIMIT));
  decoder.imageCountLimit = 0;
  const auto result =
      avifDecoderSetIOMemory(&decoder, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return result == AVIF_RESULT_OK ? avifDecoderParse(&decoder) : result;
}

// Checks the size, because libavif calls an image above the limit damaged.
base::Status check_size(std::string_view bytes) {
  const AvifDecoder decoder(avifDecoderCreate(), &avifDecoderDestroy);
  if (!decoder || parse(*decoder, bytes, AVIF_DEFAULT_IMAGE_SIZE_LIMIT) != AVIF_RESULT_OK) return {};
  return check_pixels(decoder->image->width, decoder->image->height);
}

// Drops alpha as Pillow does: the stored colours stay, for any alpha.
void drop_alpha(Pixels& pixels) {
  const std::size_t area = pixels.bytes.size() / 4;
  for (std::size_t i = 0; i < area; ++i)
    for (std::size_t c = 0; c < 3; ++c) pixels.bytes[3 * i + c] = pixels.bytes[4 * i + c];
  pixels.bytes.resize(3 * area);
  pixels.channels = 3;
}

std::string text_of(const avifRWData& data) {
  return data.size == 0 ? std::string() : std::string(reinterpret_cast<const char*>(data.data), data.size);
}

// Returns the box imir: 0 exchanges top and bottom, 1 left and right. libavif has renamed its field.
template <typename Mirror>
auto mirror_of(const Mirror& imir, int) -> decltype(static_cast<int>(imir.axis)) {
  return imir.axis;
}
template <typename Mirror>
auto mirror_of(const Mirror& imir, long) -> decltype(static_cast<int>(imir.mode)) {
  return imir.mode;
}

// Returns the orientation. The image is first rotated counterclockwise by `quarters`, then mirrored.
int orientation_of(const avifImage& image) {
  const int quarters = (image.transformFlags & AVIF_TRANSFORM_IROT) != 0 ? image.irot.angle & 3 : 0;
  constexpr int kRotated[] = {1, 8, 3, 6}, kTopBottom[] = {4, 5, 2, 7}, kLeftRight[] = {2, 7, 4, 5};
  if ((image.transformFlags & AVIF_TRANSFORM_IMIR) == 0) return kRotated[quarters];
  return mirror_of(image.imir, 0) == 0 ? kTopBottom[quarters] : kLeftRight[quarters];
}

}  // namespace

AvifMetadata metadata_of_avif(std::string_view bytes) {
  // libavif 0.11 takes the image's rotation from its Exif when it reads Exif, so the boxes are read before.
  AvifMetadata found;
  for (const bool metadata : {false, true}) {
    const AvifDecoder decoder(avifDecoderCreate(), &avifDecoderDestroy);
    if (!decoder || parse(*decoder, bytes, memory_limits().pixels, metadata) != AVIF_RESULT_OK) break;
    const avifImage& image = *decoder->image;
    if (!metadata) found.orientation = orientation_of(image);
    if (metadata) found.exif = text_of(image.exif);
    if (metadata) found.xmp = text_of(image.xmp);
  }
  return found;
}

bool is_avif(std::string_view bytes) {
  const avifROData data{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
  return avifPeekCompatibleFileType(&data) != AVIF_FALSE;
}

base::Result<Pixels> decode_avif(std::string_view bytes, ColorModel model) {
  const AvifDecoder decoder(avifDecoderCreate(), &avifDecoderDestroy);
  if (!decoder) return base::fail(Code::kResourceExhausted, "no memory for an AVIF decoder");
  auto result = parse(*decoder, bytes, memory_limits().pixels);
  if (result != AVIF_RESULT_OK) {
    SLUICE_OK(check_size(bytes));
    return unsound_avif(result);
  }
  const std::int64_t width = decoder->image->width, height = decoder->image->height;
  SLUICE_OK(check_pixels(width, height));
  // Without room for alpha, libavif would multiply the colours by it.
  const bool alpha = model == ColorModel::kRgba || decoder->alphaPresent != AVIF_FALSE;
  const auto size = static_cast<std::size_t>(width * height * (alpha ? 4 : 3));
  // In addition to the pixels this counts three planes and alpha of up to two bytes, and the same size for
  // the AV1 decoder's references.
  SLUICE_OK(claim_memory(size + 16 * static_cast<std::uint64_t>(width * height), "the pixels of an AVIF"));
  result = avifDecoderNextImage(decoder.get());
  if (result != AVIF_RESULT_OK) return unsound_avif(result);
  if (decoder->image->width != width || decoder->image->height != height)
    return base::fail(Code::kDataLoss, "not a valid AVIF: its image is not as large as it says");
  Pixels pixels{height, width, alpha ? 4 : 3, {}};
  pixels.bytes.resize(size);
  avifRGBImage rgb;
  avifRGBImageSetDefaults(&rgb, decoder->image);
  rgb.depth = 8;
  rgb.format = alpha ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
  rgb.pixels = pixels.bytes.data();
  rgb.rowBytes = static_cast<std::uint32_t>(width * pixels.channels);
  result = avifImageYUVToRGB(decoder->image, &rgb);
  if (result != AVIF_RESULT_OK) return unsound_avif(result);
  if (model == ColorModel::kRgba) return pixels;
  if (alpha) drop_alpha(pixels);
  return convert_rgb(std::move(pixels), model);
}

}  // namespace sluice::data
