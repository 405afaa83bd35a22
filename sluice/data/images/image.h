// Decoders of images: bytes of a file → pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::data {

// Pixels in uint8, row by row, with interleaved channels: [height, width, channels].
struct Pixels {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> bytes;
};

// The most that a thread keeps of one buffer between images; memory.h does not count it.
constexpr std::size_t kKeptBytes = 16 << 20;

// Memory for pixels, with any contents. keep_pixel_memory() returns memory that is no longer needed: each
// thread keeps the largest block, up to kKeptBytes, and hands it out again, because it is then in that core's
// cache. A decoder that writes to memory which another core had last waits for each cache line: small images
// take libjpeg-turbo half as long again.
std::vector<std::uint8_t> pixel_memory(std::size_t bytes);
void keep_pixel_memory(std::vector<std::uint8_t> memory);

// Frees a buffer that its thread keeps, at the end of its use, if it is larger than kKeptBytes.
class KeptBuffer {
 public:
  explicit KeptBuffer(std::vector<std::uint8_t>& buffer) : buffer_(buffer) {}
  ~KeptBuffer() {
    if (buffer_.capacity() > kKeptBytes) std::vector<std::uint8_t>().swap(buffer_);
  }
  KeptBuffer(const KeptBuffer&) = delete;
  KeptBuffer& operator=(const KeptBuffer&) = delete;

 private:
  std::vector<std::uint8_t>& buffer_;
};

// A view of pixels in memory, with rows `stride` bytes apart.
struct PixelView {
  const std::uint8_t* data = nullptr;
  std::int64_t height = 0, width = 0, channels = 0, stride = 0;

  PixelView() = default;
  PixelView(const Pixels& pixels)  // NOLINT: the same thing seen otherwise
      : PixelView(pixels.bytes.data(), pixels.height, pixels.width, pixels.channels) {}
  PixelView(const std::uint8_t* bytes, std::int64_t rows, std::int64_t columns, std::int64_t planes)
      : data(bytes), height(rows), width(columns), channels(planes), stride(columns * planes) {}
};

// A part of an image, in pixels.
struct Region {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};

enum class ColorModel { kGray = 1, kRgb = 3, kRgba = 4 };

// Returns the grey level of an RGB colour, as Pillow computes it.
inline std::uint8_t luma(unsigned red, unsigned green, unsigned blue) {
  return static_cast<std::uint8_t>((19595u * red + 38470u * green + 7471u * blue + 32768u) >> 16);
}

// Decoders of one format each. Grey is the luma of RGB; alpha is 255 if the file has no alpha; 16-bit samples
// keep their upper byte; palette indices are looked up. A damaged or cut-off file is an error with the
// decoder's reason, but without a name: the caller knows it. Images larger than memory.h allows are refused.
base::Result<Pixels> decode_jpeg(std::string_view bytes, ColorModel model);
// Decodes only a part and resizes it to height × width, as resize_bilinear does. `choose` gets the image's
// height and width and returns the part. The pixels are the same as of decode, crop, resize; but a part of at
// least twice the new size is read at 1/2, 1/4 or 1/8 in the JPEG's own way, which gives a few levels of
// difference. Rows below the part are not read if the file has its end marker.
base::Result<Pixels> decode_jpeg_region(std::string_view bytes, ColorModel model,
                                        const std::function<Region(std::int64_t, std::int64_t)>& choose,
                                        std::int64_t height, std::int64_t width);
base::Result<Pixels> decode_png(std::string_view bytes, ColorModel model);
base::Result<Pixels> decode_pnm(std::string_view bytes, ColorModel model);  // P1 … P6
base::Result<Pixels> decode_webp(std::string_view bytes,
                                 ColorModel model);                         // the first frame of an animation
base::Result<Pixels> decode_gif(std::string_view bytes, ColorModel model);  // the first frame
base::Result<Pixels> decode_bmp(std::string_view bytes, ColorModel model);
base::Result<Pixels> decode_tiff(std::string_view bytes, ColorModel model);  // the first page
base::Result<Pixels> decode_avif(std::string_view bytes, ColorModel model);  // the first image of a sequence

bool is_jpeg(std::string_view bytes);  // by its first bytes
bool is_avif(std::string_view bytes);
bool is_tiff(std::string_view bytes);

// The metadata of an AVIF for displaying it; the defaults if the file cannot be read.
struct AvifMetadata {
  int orientation = 1;  // from its boxes irot and imir, 1 … 8 as in Exif
  std::string exif, xmp;
};
AvifMetadata metadata_of_avif(std::string_view bytes);

// Returns how the camera was held, 1 … 8 as in Exif, for JPEG, PNG, WebP, TIFF and AVIF: from Exif or the
// format's own tags, else from XMP, as Pillow reads it. 1 if the file does not say it.
int orientation_of(std::string_view bytes);
// Rotates and mirrors an image so that it is upright, as Pillow's ImageOps.exif_transpose does.
Pixels upright(Pixels pixels, int orientation);

// Decodes an image whose format is recognised by the file's first bytes, not by its name.
base::Result<Pixels> decode_image(std::string_view bytes, ColorModel model);

// Encodes 8-bit grey (1 channel), RGB (3) or RGBA (4) as a PNG file.
base::Result<std::string> encode_png(const Pixels& pixels);

// Converts RGB to another model. kResourceExhausted if the result has more bytes than a sample may have.
base::Result<Pixels> convert_rgb(Pixels rgb, ColorModel model);

}  // namespace sluice::data
