// BMP: the headers from OS/2's to Windows' fifth, 1 to 32 bits, RLE of 4 and 8 bits. Debian has no library
// that reads only BMP.
#include <algorithm>
#include <cstring>

#include "sluice/data/images/image.h"
#include "sluice/data/memory.h"

namespace sluice::data {
namespace {

enum Compression : std::uint32_t { kRaw = 0, kRle8 = 1, kRle4 = 2, kBitFields = 3, kAlphaBitFields = 6 };

struct Header {
  std::int64_t width = 0, height = 0;
  bool top_down = false;
  std::uint32_t bits = 0, compression = kRaw, colors = 0, color_bytes = 4;
  std::uint32_t masks[4] = {};  // red, green, blue, alpha
  std::size_t palette_at = 0, pixels_at = 0;
};

std::uint32_t little(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < size; ++i)
    value |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

tl::unexpected<Error> unsound_bmp(const char* why) {
  return base::fail(Code::kDataLoss, "not a valid BMP: ", why);
}

base::Result<Header> parse_header(std::string_view bytes) {
  if (bytes.size() < 26) return unsound_bmp("it is cut off");
  Header header;
  header.pixels_at = little(bytes, 10, 4);
  const std::uint32_t size = little(bytes, 14, 4);
  if (bytes.size() < 14 + std::size_t{size}) return unsound_bmp("its header is cut off");
  if (size == 12) {
    header.width = little(bytes, 18, 2);
    header.height = little(bytes, 20, 2);
    header.bits = little(bytes, 24, 2);
    header.color_bytes = 3;
  } else if (size == 40 || size == 52 || size == 56 || size == 64 || size == 108 || size == 124) {
    const auto rows = static_cast<std::int32_t>(little(bytes, 22, 4));
    header.width = static_cast<std::int32_t>(little(bytes, 18, 4));
    header.top_down = rows < 0;
    header.height = rows < 0 ? -std::int64_t{rows} : rows;
    header.bits = little(bytes, 28, 2);
    header.compression = little(bytes, 30, 4);
    header.colors = little(bytes, 46, 4);
  } else {
    return unsound_bmp("its header has an unknown size");
  }
  header.palette_at = 14 + std::size_t{size};
  if (header.width < 1 || header.height < 1) return unsound_bmp("it has no pixels");
  const bool fields = header.compression == kBitFields || header.compression == kAlphaBitFields;
  if (fields) {
    // The masks are after a short header, or within a longer one.
    const std::size_t count = size >= 56 || header.compression == kAlphaBitFields ? 4 : 3;
    if (size == 40) header.palette_at += 4 * count;
    if (bytes.size() < 54 + 4 * count) return unsound_bmp("its masks are cut off");
    for (std::size_t i = 0; i < count; ++i) header.masks[i] = little(bytes, 54 + 4 * i, 4);
  }
  const bool known = header.compression == kRle8   ? header.bits == 8
                     : header.compression == kRle4 ? header.bits == 4
                     : fields                      ? header.bits == 16 || header.bits == 32
                     : header.compression == kRaw
                         ? header.bits == 1 || header.bits == 4 || header.bits == 8 || header.bits == 16 ||
                               header.bits == 24 || header.bits == 32
                         : false;
  if (!known)
    return base::fail(Code::kUnimplemented, "a BMP of ", header.bits, " bits with compression ",
                      header.compression, ": expected 1, 4, 8, 16, 24 or 32 bits, plain, with masks or RLE");
  return header;
}

// Unpacks runs of indices into an image whose first row is the lowest.
base::Status unpack_rle(std::string_view in, const Header& header, std::vector<std::uint8_t>& out) {
  const bool nibbles = header.compression == kRle4;
  const auto width = static_cast<std::size_t>(header.width), height = static_cast<std::size_t>(header.height);
  std::size_t at = 0, x = 0, y = 0;
  const auto put = [&](std::uint8_t value) {
    if (x < width && y < height) out[y * width + x] = value;
    ++x;
  };
  const auto index_of = [&](std::uint8_t byte, std::size_t i) {
    return nibbles ? static_cast<std::uint8_t>(i % 2 == 0 ? byte >> 4 : byte & 15) : byte;
  };
  while (at + 1 < in.size() && y < height) {
    const auto first = static_cast<std::uint8_t>(in[at]), second = static_cast<std::uint8_t>(in[at + 1]);
    at += 2;
    if (first > 0) {
      for (std::size_t i = 0; i < first; ++i) put(index_of(second, i));
    } else if (second == 0) {
      x = 0;
      ++y;
    } else if (second == 1) {
      return {};
    } else if (second == 2) {
      if (at + 2 > in.size()) break;
      x += static_cast<std::uint8_t>(in[at]);
      y += static_cast<std::uint8_t>(in[at + 1]);
      at += 2;
    } else {
      const std::size_t size = nibbles ? (second + 1u) / 2 : second;
      if (at + size > in.size()) break;
      for (std::size_t i = 0; i < second; ++i)
        put(index_of(static_cast<std::uint8_t>(in[at + (nibbles ? i / 2 : i)]), i));
      at += size + size % 2;
    }
  }
  return y >= height ? base::Status() : unsound_bmp("it is cut off");
}

std::uint8_t masked(std::uint32_t pixel, std::uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = __builtin_ctz(mask);
  const std::uint32_t max_value = mask >> shift;
  return static_cast<std::uint8_t>(std::uint64_t{(pixel & mask) >> shift} * 255 / max_value);
}

struct Color {
  std::uint8_t red = 0, green = 0, blue = 0, alpha = 255;
};

void put_color(std::uint8_t* out, const Color& color, ColorModel model) {
  if (model == ColorModel::kGray) {
    out[0] = luma(color.red, color.green, color.blue);
    return;
  }
  out[0] = color.red;
  out[1] = color.green;
  out[2] = color.blue;
  if (model == ColorModel::kRgba) out[3] = color.alpha;
}

std::vector<Color> read_palette(std::string_view bytes, const Header& header) {
  std::vector<Color> palette(256);
  for (int i = 0; i < 256; ++i)
    palette[i].red = palette[i].green = palette[i].blue = static_cast<std::uint8_t>(i);
  const std::size_t max_count = std::size_t{1} << header.bits;
  const std::size_t count = header.colors > 0 ? std::min<std::size_t>(header.colors, max_count) : max_count;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = header.palette_at + i * header.color_bytes;
    if (at + 3 > bytes.size()) break;
    const auto byte = [&](std::size_t k) { return static_cast<std::uint8_t>(bytes[at + k]); };
    palette[i] = {byte(2), byte(1), byte(0), 255};
  }
  return palette;
}

}  // namespace

base::Result<Pixels> decode_bmp(std::string_view bytes, ColorModel model) {
  SLUICE_TRY(Header header, parse_header(bytes));
  SLUICE_OK(check_pixels(header.width, header.height));
  const auto width = static_cast<std::size_t>(header.width), height = static_cast<std::size_t>(header.height);
  const auto channels = static_cast<std::size_t>(model);
  const bool rle = header.compression == kRle8 || header.compression == kRle4;
  SLUICE_OK(claim_memory(width * height * (channels + (rle ? 1 : 0)), "the pixels of a BMP"));
  if (header.pixels_at > bytes.size()) return unsound_bmp("it is cut off");
  std::string_view data = bytes.substr(header.pixels_at);
  std::size_t stride = (width * header.bits + 31) / 32 * 4;
  std::vector<std::uint8_t> indices;
  if (rle) {
    indices.resize(width * height);
    SLUICE_OK(unpack_rle(data, header, indices));
    data = {reinterpret_cast<const char*>(indices.data()), indices.size()};
    header.bits = 8;
    stride = width;
  }
  if (data.size() < stride * (height - 1) + (width * header.bits + 7) / 8)
    return unsound_bmp("it is cut off");
  const auto palette = header.bits <= 8 ? read_palette(bytes, header) : std::vector<Color>();
  if (header.bits == 16 && header.masks[0] == 0 && header.masks[1] == 0 && header.masks[2] == 0) {
    header.masks[0] = 0x7C00;
    header.masks[1] = 0x3E0;
    header.masks[2] = 0x1F;
  }
  const bool masks = header.masks[0] != 0 || header.masks[1] != 0 || header.masks[2] != 0;
  Pixels pixels{header.height, header.width, static_cast<std::int64_t>(channels), {}};
  pixels.bytes.resize(width * height * channels);
  for (std::size_t row = 0; row < height; ++row) {
    const std::string_view line = data.substr(row * stride);
    std::uint8_t* out = pixels.bytes.data() + (header.top_down ? row : height - 1 - row) * width * channels;
    for (std::size_t x = 0; x < width; ++x, out += channels) {
      Color color;
      if (header.bits <= 8) {
        const std::size_t bit = x * header.bits;
        const auto byte = static_cast<unsigned char>(line[bit / 8]);
        color = palette[byte >> (8 - header.bits - bit % 8) & ((1u << header.bits) - 1)];
      } else if (header.bits == 24 || !masks) {
        const std::size_t at = x * header.bits / 8;
        color = {static_cast<std::uint8_t>(line[at + 2]), static_cast<std::uint8_t>(line[at + 1]),
                 static_cast<std::uint8_t>(line[at]), 255};
      } else {
        const std::uint32_t pixel = little(line, x * header.bits / 8, header.bits / 8);
        color = {masked(pixel, header.masks[0]), masked(pixel, header.masks[1]),
                 masked(pixel, header.masks[2]),
                 header.masks[3] != 0 ? masked(pixel, header.masks[3]) : std::uint8_t{255}};
      }
      put_color(out, color, model);
    }
  }
  return pixels;
}

}  // namespace sluice::data
