#include "sluice/data/images/image.h"

#include <cctype>
#include <utility>

#include "sluice/base/formats/sha256.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/memory.h"

namespace sluice::data {
namespace {

// Returns "89 50 4e 47 …", for messages about files of another format.
std::string first_bytes(std::string_view bytes) {
  std::vector<std::string> texts;
  for (const char& c : bytes.substr(0, 8)) texts.push_back(base::hexadecimal({&c, 1}));
  return base::join(texts, " ");
}

std::vector<std::uint8_t>& kept_memory() {
  thread_local std::vector<std::uint8_t> memory;
  return memory;
}

}  // namespace

std::vector<std::uint8_t> pixel_memory(std::size_t bytes) {
  std::vector<std::uint8_t> memory = std::move(kept_memory());
  memory.resize(bytes);
  return memory;
}

void keep_pixel_memory(std::vector<std::uint8_t> memory) {
  if (memory.capacity() > kKeptBytes) return;
  if (memory.capacity() > kept_memory().capacity()) kept_memory() = std::move(memory);
}

bool is_jpeg(std::string_view bytes) { return base::starts_with(bytes, "\xff\xd8"); }

// Recognises both byte orders, and BigTIFF.
bool is_tiff(std::string_view bytes) {
  const std::string_view four = bytes.substr(0, 4);
  return four == std::string_view("II*\0", 4) || four == std::string_view("MM\0*", 4) ||
         four == std::string_view("II+\0", 4) || four == std::string_view("MM\0+", 4);
}

base::Result<Pixels> decode_image(std::string_view bytes, ColorModel model) {
  if (bytes.empty()) return base::fail(Code::kDataLoss, "not an image: the member is empty");
  if (is_jpeg(bytes)) return decode_jpeg(bytes, model);
  if (base::starts_with(bytes, "\x89PNG")) return decode_png(bytes, model);
  if (bytes.size() > 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6')
    return decode_pnm(bytes, model);
  if (bytes.size() > 12 && base::starts_with(bytes, "RIFF") && bytes.substr(8, 4) == "WEBP")
    return decode_webp(bytes, model);
  if (base::starts_with(bytes, "GIF87a") || base::starts_with(bytes, "GIF89a"))
    return decode_gif(bytes, model);
  if (base::starts_with(bytes, "BM")) return decode_bmp(bytes, model);
  if (is_tiff(bytes)) return decode_tiff(bytes, model);
  if (is_avif(bytes)) return decode_avif(bytes, model);
  return base::fail(Code::kDataLoss,
                    "not an image: expected JPEG, PNG, WebP, PNM, GIF, BMP, TIFF or AVIF, found ",
                    bytes.size(), " bytes that begin with ", first_bytes(bytes));
}

base::Result<Pixels> convert_rgb(Pixels rgb, ColorModel model) {
  if (model == ColorModel::kRgb) return rgb;
  const std::size_t count = static_cast<std::size_t>(rgb.height * rgb.width);
  Pixels result{rgb.height, rgb.width, static_cast<std::int64_t>(model), {}};
  const std::size_t bytes = count * static_cast<std::size_t>(result.channels);
  SLUICE_OK(claim_memory(bytes, "the pixels of an image in another colour model"));
  result.bytes.resize(bytes);
  const std::uint8_t* in = rgb.bytes.data();
  std::uint8_t* out = result.bytes.data();
  for (std::size_t i = 0; i < count; ++i, in += 3) {
    if (model == ColorModel::kGray) {
      *out++ = luma(in[0], in[1], in[2]);
    } else {
      *out++ = in[0];
      *out++ = in[1];
      *out++ = in[2];
      *out++ = 255;
    }
  }
  return result;
}

}  // namespace sluice::data
