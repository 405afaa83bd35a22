// JPEG through libjpeg-turbo.
#include <csetjmp>
#include <cstdio>
#include <cstring>
// jpeglib.h needs cstdio before it.
#include <jerror.h>
#include <jpeglib.h>

#include "sluice/data/image.h"

namespace sluice::data {
namespace {

struct JpegErrors {
  jpeg_error_mgr manager;  // first: libjpeg hands out a pointer to it
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void jpeg_leave(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->message);
  std::longjmp(errors->escape, 1);
}

// libjpeg calls these warnings and paints the rest of the picture grey. Data is missing, so they are errors
// here. Others (stray bytes between markers, unknown Adobe versions) lose nothing and are common in real data
// sets.
bool jpeg_loses_data(int code) {
  return code == JWRN_HIT_MARKER || code == JWRN_JPEG_EOF || code == JWRN_HUFF_BAD_CODE ||
         code == JWRN_MUST_RESYNC;
}

void jpeg_message(j_common_ptr info, int level) {
  if (level < 0 && jpeg_loses_data(info->err->msg_code)) jpeg_leave(info);
}

void jpeg_silent(j_common_ptr) {}

// (255 − ink) of CMYK, as Adobe's files store it, to RGB in place of the first three quarters.
void jpeg_cmyk_to_rgb(Pixels& pixels, bool inverted) {
  const std::size_t count = static_cast<std::size_t>(pixels.height * pixels.width);
  const std::uint8_t flip = inverted ? 0 : 255;
  const std::uint8_t* in = pixels.bytes.data();
  std::uint8_t* out = pixels.bytes.data();
  for (std::size_t i = 0; i < count; ++i, in += 4) {
    const unsigned light = in[3] ^ flip;
    for (int c = 0; c < 3; ++c) {
      const unsigned product = (in[c] ^ flip) * light + 128;
      *out++ = static_cast<std::uint8_t>((product + (product >> 8)) >> 8);
    }
  }
  pixels.channels = 3;
  pixels.bytes.resize(count * 3);
}

// Everything between setjmp and a possible longjmp lives outside of this function.
bool jpeg_read(jpeg_decompress_struct& info, JpegErrors& errors, std::string_view bytes, Pixels& pixels) {
  if (setjmp(errors.escape) != 0) return false;
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  if (static_cast<std::int64_t>(info.image_width) * info.image_height > kMaxPixels) {
    std::snprintf(errors.message, sizeof errors.message, "%u × %u pixels are too many", info.image_width,
                  info.image_height);
    return false;
  }
  const bool inks = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(&info);
  pixels.height = info.output_height;
  pixels.width = info.output_width;
  pixels.channels = info.output_components;
  const std::size_t stride = static_cast<std::size_t>(pixels.width * pixels.channels);
  pixels.bytes.resize(stride * static_cast<std::size_t>(pixels.height));
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels.bytes.data() + stride * info.output_scanline;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

}  // namespace

base::Result<Pixels> decode_jpeg(std::string_view bytes, ColorModel model) {
  Pixels pixels;
  jpeg_decompress_struct info{};
  JpegErrors errors{};
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = jpeg_leave;
  errors.manager.emit_message = jpeg_message;
  errors.manager.output_message = jpeg_silent;
  jpeg_create_decompress(&info);
  const bool done = jpeg_read(info, errors, bytes, pixels);
  const bool inks = info.out_color_space == JCS_CMYK;
  const bool inverted = info.saw_Adobe_marker != 0;
  jpeg_destroy_decompress(&info);
  if (!done) return base::fail(Code::kDataLoss, "not a sound JPEG: ", errors.message);
  if (inks) jpeg_cmyk_to_rgb(pixels, inverted);
  return convert_rgb(std::move(pixels), model);
}

}  // namespace sluice::data
