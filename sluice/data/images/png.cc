// PNG through libspng.
#include <spng.h>

#include <cstdlib>
#include <memory>

#include "sluice/data/images/png_fast.h"
#include "sluice/data/memory.h"

namespace sluice::data {
namespace {

// The limits of texts and profiles, which may be packed: for one, and for all of a file.
constexpr std::size_t kMaxChunk = std::size_t{16} << 20, kMaxChunks = std::size_t{64} << 20;

using Context = std::unique_ptr<spng_ctx, decltype(&spng_ctx_free)>;

tl::unexpected<Error> png_error(int status) {
  return base::fail(Code::kDataLoss, "not a valid PNG: ", spng_strerror(status));
}

}  // namespace

base::Result<Pixels> decode_png_general(std::string_view bytes, ColorModel model) {
  const Context context(spng_ctx_new(0), &spng_ctx_free);
  if (!context) return base::fail(Code::kResourceExhausted, "no memory to decode a PNG");
  spng_ihdr header{};
  if (int status = spng_set_chunk_limits(context.get(), kMaxChunk, kMaxChunks)) return png_error(status);
  if (int status = spng_set_png_buffer(context.get(), bytes.data(), bytes.size())) return png_error(status);
  if (int status = spng_get_ihdr(context.get(), &header)) return png_error(status);
  SLUICE_OK(check_pixels(header.width, header.height));
  const bool alpha = model == ColorModel::kRgba;
  Pixels pixels{header.height, header.width, alpha ? 4 : 3, {}};
  std::size_t size = 0;
  const int format = alpha ? SPNG_FMT_RGBA8 : SPNG_FMT_RGB8;
  if (int status = spng_decoded_image_size(context.get(), format, &size)) return png_error(status);
  SLUICE_OK(claim_memory(size, "the pixels of a PNG"));
  pixels.bytes.resize(size);
  const int flags = alpha ? SPNG_DECODE_TRNS : 0;
  if (int status = spng_decode_image(context.get(), pixels.bytes.data(), size, format, flags))
    return png_error(status);
  // Reads to the end marker, to detect a file that is cut off after its pixels; but libspng does not check
  // the marker's own checksum.
  if (int status = spng_decode_chunks(context.get())) return png_error(status);
  if (bytes.rfind("IEND\xae\x42\x60\x82") == std::string_view::npos)
    return base::fail(Code::kDataLoss, "not a valid PNG: it is cut off inside its end marker");
  if (alpha) return pixels;
  return convert_rgb(std::move(pixels), model);
}

base::Result<Pixels> decode_png(std::string_view bytes, ColorModel model) {
  if (auto pixels = decode_png_fast(bytes, model)) return std::move(*pixels);
  return decode_png_general(bytes, model);
}

base::Result<std::string> encode_png(const Pixels& pixels) {
  const Context context(spng_ctx_new(SPNG_CTX_ENCODER), &spng_ctx_free);
  if (!context) return base::fail(Code::kResourceExhausted, "no memory to encode a PNG");
  spng_ihdr header{};
  header.width = static_cast<std::uint32_t>(pixels.width);
  header.height = static_cast<std::uint32_t>(pixels.height);
  header.bit_depth = 8;
  header.color_type = pixels.channels == 1   ? SPNG_COLOR_TYPE_GRAYSCALE
                      : pixels.channels == 3 ? SPNG_COLOR_TYPE_TRUECOLOR
                                             : SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
  spng_set_option(context.get(), SPNG_ENCODE_TO_BUFFER, 1);
  int status = spng_set_ihdr(context.get(), &header);
  if (status == 0)
    status = spng_encode_image(context.get(), pixels.bytes.data(), pixels.bytes.size(), SPNG_FMT_PNG,
                               SPNG_ENCODE_FINALIZE);
  std::size_t size = 0;
  void* buffer = status == 0 ? spng_get_png_buffer(context.get(), &size, &status) : nullptr;
  const std::unique_ptr<void, decltype(&std::free)> guard(buffer, std::free);
  if (status != 0 || buffer == nullptr)
    return base::fail(Code::kInternal, "cannot encode a PNG: ", spng_strerror(status));
  return std::string(static_cast<const char*>(buffer), size);
}

}  // namespace sluice::data
