// PNG over libdeflate: one call inflates the whole image, then each row's filter is undone.
#include "sluice/data/images/png_fast.h"

#include <libdeflate.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "sluice/base/text/strings.h"
#include "sluice/data/images/png_filter.h"
#include "sluice/data/memory.h"

namespace sluice::data {
namespace {

using Byte = std::uint8_t;

constexpr std::uint32_t chunk_name(const char (&name)[5]) {
  return static_cast<std::uint32_t>(name[0]) << 24 | static_cast<std::uint32_t>(name[1]) << 16 |
         static_cast<std::uint32_t>(name[2]) << 8 | static_cast<std::uint32_t>(name[3]);
}

std::uint32_t big_endian(const Byte* bytes) {
  return static_cast<std::uint32_t>(bytes[0]) << 24 | static_cast<std::uint32_t>(bytes[1]) << 16 |
         static_cast<std::uint32_t>(bytes[2]) << 8 | bytes[3];
}

struct Chunk {
  std::uint32_t name = 0, size = 0;
  const Byte* data = nullptr;
};

// Reads the chunks one after the other, each with its checksum verified.
class Chunks {
 public:
  explicit Chunks(std::string_view bytes)
      : at_(reinterpret_cast<const Byte*>(bytes.data())), left_(bytes.size()) {}

  bool next(Chunk& chunk) {
    if (left_ < 12) return false;
    chunk = {big_endian(at_ + 4), big_endian(at_), at_ + 8};
    if (chunk.size > left_ - 12) return false;
    if (libdeflate_crc32(0, at_ + 4, chunk.size + 4) != big_endian(chunk.data + chunk.size)) return false;
    at_ += chunk.size + 12;
    left_ -= chunk.size + 12;
    return true;
  }
  bool ended() const { return left_ == 0; }

 private:
  const Byte* at_;
  std::size_t left_;
};

struct PngImage {
  std::int64_t height = 0, width = 0;
  int color = 0;
  std::size_t pixel = 0;  // bytes
  int entries = 0;        // of the palette
  bool keyed = false;     // one colour is transparent
  std::array<std::array<Byte, 4>, 256> palette{};
  const Byte* packed = nullptr;
  std::size_t packed_size = 0;
};

// The buffers that a thread keeps from image to image.
struct Scratch {
  std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> inflate{
      libdeflate_alloc_decompressor(), &libdeflate_free_decompressor};
  std::vector<Byte> joined, raw, pixels, zeros;
};

bool read_header(const Chunk& chunk, PngImage& image) {
  if (chunk.name != chunk_name("IHDR") || chunk.size != 13) return false;
  const std::uint32_t width = big_endian(chunk.data), height = big_endian(chunk.data + 4);
  if (width == 0 || height == 0 || width > 1u << 28 || height > 1u << 28) return false;
  image.width = width;
  image.height = height;
  if (!check_pixels(image.width, image.height)) return false;
  const Byte* rest = chunk.data + 8;  // depth, colour, compression, filter, interlace
  image.color = rest[1];
  static constexpr std::size_t kPixelBytes[] = {1, 0, 3, 1, 2, 0, 4};
  if (rest[0] != 8 || image.color > 6 || rest[2] != 0 || rest[3] != 0 || rest[4] != 0) return false;
  image.pixel = kPixelBytes[image.color];
  return image.pixel != 0;
}

bool read_palette(const Chunk& chunk, PngImage& image) {
  if (image.color != 3 || image.entries != 0 || chunk.size % 3 != 0 || chunk.size == 0 || chunk.size > 768)
    return false;
  image.entries = static_cast<int>(chunk.size / 3);
  for (std::size_t i = 0; i < chunk.size / 3; ++i)
    image.palette[i] = {chunk.data[3 * i], chunk.data[3 * i + 1], chunk.data[3 * i + 2], 255};
  return true;
}

bool read_transparency(const Chunk& chunk, PngImage& image) {
  if (image.keyed) return false;
  image.keyed = true;
  if (image.color == 0) return chunk.size == 2;
  if (image.color == 2) return chunk.size == 6;
  if (image.color != 3 || image.entries == 0 || chunk.size == 0 ||
      chunk.size > static_cast<std::uint32_t>(image.entries))
    return false;
  for (std::size_t i = 0; i < chunk.size; ++i) image.palette[i][3] = chunk.data[i];
  return true;
}

// Finds the compressed pixels; several IDAT chunks are joined in the scratch.
bool read_pixels(Chunks& chunks, Chunk& chunk, PngImage& image, Scratch& scratch) {
  if (chunk.name != chunk_name("IDAT")) return false;
  image.packed = chunk.data;
  image.packed_size = chunk.size;
  if (!chunks.next(chunk)) return false;
  if (chunk.name != chunk_name("IDAT")) return true;
  scratch.joined.assign(image.packed, image.packed + image.packed_size);
  while (chunk.name == chunk_name("IDAT")) {
    scratch.joined.insert(scratch.joined.end(), chunk.data, chunk.data + chunk.size);
    if (!chunks.next(chunk)) return false;
  }
  image.packed = scratch.joined.data();
  image.packed_size = scratch.joined.size();
  return true;
}

bool read_chunks(std::string_view bytes, PngImage& image, Scratch& scratch) {
  if (!base::starts_with(bytes, "\x89PNG\r\n\x1a\n")) return false;
  Chunks chunks(bytes.substr(8));
  Chunk chunk;
  if (!chunks.next(chunk) || !read_header(chunk, image) || !chunks.next(chunk)) return false;
  if (chunk.name == chunk_name("PLTE") && (!read_palette(chunk, image) || !chunks.next(chunk))) return false;
  if (chunk.name == chunk_name("tRNS") && (!read_transparency(chunk, image) || !chunks.next(chunk)))
    return false;
  if (image.color == 3 && image.entries == 0) return false;
  if (!read_pixels(chunks, chunk, image, scratch)) return false;
  return chunk.name == chunk_name("IEND") && chunk.size == 0 && chunks.ended();
}

bool inflate_rows(const PngImage& image, Scratch& scratch) {
  const std::size_t stride = static_cast<std::size_t>(image.width) * image.pixel;
  const std::size_t need = (stride + 1) * static_cast<std::size_t>(image.height);
  // Deflate packs at most 1032 bytes into one: a false header must not claim memory for nothing.
  if (need / 1032 > image.packed_size || !claim_memory(need + scratch.joined.size(), "the rows of a PNG"))
    return false;
  if (scratch.raw.size() < need + kPngFilterSlack) scratch.raw.resize(need + kPngFilterSlack);
  if (scratch.zeros.size() < stride + kPngFilterSlack) scratch.zeros.resize(stride + kPngFilterSlack);
  std::size_t used = 0;
  // Without a place for the actual size, any size but exactly this one is an error.
  const auto status = libdeflate_zlib_decompress_ex(scratch.inflate.get(), image.packed, image.packed_size,
                                                    scratch.raw.data(), need, &used, nullptr);
  return status == LIBDEFLATE_SUCCESS && used == image.packed_size;
}

// Undoes the rows' filters. `pixels` has no room after its rows: bytes read after a row belong to the next
// one, and the last row is only written.
bool unfilter_rows(const PngImage& image, const Scratch& scratch, Byte* pixels) {
  const std::size_t stride = static_cast<std::size_t>(image.width) * image.pixel;
  const Byte* raw = scratch.raw.data();
  const Byte* above = scratch.zeros.data();
  for (std::int64_t y = 0; y < image.height; ++y, raw += stride + 1) {
    Byte* row = pixels + static_cast<std::size_t>(y) * stride;
    if (!png_unfilter(raw[0], image.pixel, raw + 1, above, row, stride)) return false;
    above = row;
  }
  return true;
}

// Converts any colour type to any model, by way of RGBA; false for an index outside the palette.
bool convert(const PngImage& image, const Byte* in, ColorModel model, Byte* out) {
  const std::int64_t count = image.height * image.width;
  for (std::int64_t i = 0; i < count; ++i, in += image.pixel) {
    std::array<Byte, 4> c{in[0], in[0], in[0], 255};
    if (image.color == 3) {
      if (in[0] >= image.entries) return false;
      c = image.palette[in[0]];
    } else if (image.color == 4) {
      c[3] = in[1];
    } else if (image.pixel >= 3) {
      c = {in[0], in[1], in[2], image.pixel == 4 ? in[3] : Byte{255}};
    }
    if (model == ColorModel::kGray) {
      *out++ = luma(c[0], c[1], c[2]);
      continue;
    }
    *out++ = c[0];
    *out++ = c[1];
    *out++ = c[2];
    if (model == ColorModel::kRgba) *out++ = c[3];
  }
  return true;
}

}  // namespace

std::optional<Pixels> decode_png_fast(std::string_view bytes, ColorModel model) {
  thread_local Scratch scratch;
  scratch.joined.clear();
  const KeptBuffer joined(scratch.joined), raw(scratch.raw), converted(scratch.pixels);
  PngImage image;
  if (!scratch.inflate || !read_chunks(bytes, image, scratch)) return std::nullopt;
  // The transparent colour of grey and RGB files is rare: the general decoder handles it.
  if (image.keyed && image.color != 3 && model == ColorModel::kRgba) return std::nullopt;
  if (!inflate_rows(image, scratch)) return std::nullopt;
  const auto channels = static_cast<std::int64_t>(model);
  Pixels pixels{image.height, image.width, channels, {}};
  const auto area = static_cast<std::size_t>(image.height * image.width);
  if (!claim_memory(area * static_cast<std::size_t>(channels), "the pixels of a PNG")) return std::nullopt;
  pixels.bytes = pixel_memory(area * static_cast<std::size_t>(channels));
  const bool direct =
      image.color != 3 && image.color != 4 && image.pixel == static_cast<std::size_t>(channels);
  if (direct) {
    if (!unfilter_rows(image, scratch, pixels.bytes.data())) return std::nullopt;
    return pixels;
  }
  if (!claim_memory(area * image.pixel, "the pixels of a PNG")) return std::nullopt;
  scratch.pixels.resize(area * image.pixel);
  if (!unfilter_rows(image, scratch, scratch.pixels.data())) return std::nullopt;
  if (!convert(image, scratch.pixels.data(), model, pixels.bytes.data())) return std::nullopt;
  return pixels;
}

}  // namespace sluice::data
