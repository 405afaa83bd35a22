// TIFF through libtiff: the first page.
#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>

#include "sluice/data/images/image.h"
#include "sluice/data/memory.h"

namespace sluice::data {
namespace {

struct TiffMemory {
  std::string_view bytes;
  std::uint64_t position = 0;
  std::string reason = {};  // libtiff's first error
};

TiffMemory& memory_of(thandle_t handle) { return *static_cast<TiffMemory*>(handle); }

tmsize_t read_tiff(thandle_t handle, void* out, tmsize_t size) {
  TiffMemory& memory = memory_of(handle);
  const std::uint64_t left =
      memory.bytes.size() - std::min<std::uint64_t>(memory.position, memory.bytes.size());
  const auto step = static_cast<std::size_t>(
      std::min<std::uint64_t>(left, static_cast<std::uint64_t>(std::max<tmsize_t>(size, 0))));
  if (step > 0) std::memcpy(out, memory.bytes.data() + memory.position, step);
  memory.position += step;
  return static_cast<tmsize_t>(step);
}

tmsize_t write_tiff(thandle_t, void*, tmsize_t) { return 0; }

toff_t seek_tiff(thandle_t handle, toff_t offset, int origin) {
  TiffMemory& memory = memory_of(handle);
  if (origin == SEEK_CUR) offset += memory.position;
  if (origin == SEEK_END) offset += memory.bytes.size();
  return memory.position = offset;
}

int close_tiff(thandle_t) { return 0; }
toff_t size_of_tiff(thandle_t handle) { return memory_of(handle).bytes.size(); }

int on_tiff_error(TIFF*, void* context, const char*, const char* format, va_list arguments) {
  auto& reason = static_cast<TiffMemory*>(context)->reason;
  if (!reason.empty()) return 1;
  char text[256];
  std::vsnprintf(text, sizeof text, format, arguments);
  for (const char* c = text; *c != '\0'; ++c) reason += *c >= ' ' && *c <= '~' ? *c : '?';
  return 1;
}

int on_tiff_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

tl::unexpected<Error> unsound_tiff(const TiffMemory& memory) {
  return base::fail(Code::kDataLoss,
                    "not a valid TIFF: ", memory.reason.empty() ? "it is damaged or cut off" : memory.reason);
}

}  // namespace

base::Result<Pixels> decode_tiff(std::string_view bytes, ColorModel model) {
  TiffMemory memory{bytes};
  const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> options(TIFFOpenOptionsAlloc(),
                                                                                 &TIFFOpenOptionsFree);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_tiff_error, &memory);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_tiff_warning, nullptr);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), static_cast<tmsize_t>(memory_limits().sample));
  const std::unique_ptr<TIFF, decltype(&TIFFClose)> tiff(
      TIFFClientOpenExt("sample", "rm", &memory, read_tiff, write_tiff, seek_tiff, close_tiff, size_of_tiff,
                        nullptr, nullptr, options.get()),
      &TIFFClose);
  if (!tiff) return unsound_tiff(memory);
  std::uint32_t width = 0, height = 0;
  TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height);
  SLUICE_OK(check_pixels(width, height));
  const std::size_t area = std::size_t{width} * height;
  // The claim covers the pixels, libtiff's four bytes for each, and its strip or tile with the source bytes.
  const auto piece = static_cast<std::uint64_t>(std::max<tmsize_t>(
      TIFFIsTiled(tiff.get()) != 0 ? TIFFTileSize(tiff.get()) : TIFFStripSize(tiff.get()), 0));
  SLUICE_OK(claim_memory(area * (4 + static_cast<std::size_t>(model)) + 2 * piece, "the pixels of a TIFF"));
  // Colours stay as they are stored: they are not multiplied by their alpha.
  std::uint16_t extras = 0, *kinds = nullptr;
  const std::uint16_t associated = EXTRASAMPLE_ASSOCALPHA;
  if (TIFFGetField(tiff.get(), TIFFTAG_EXTRASAMPLES, &extras, &kinds) == 1 && extras == 1 &&
      kinds[0] == EXTRASAMPLE_UNASSALPHA)
    TIFFSetField(tiff.get(), TIFFTAG_EXTRASAMPLES, 1, &associated);
  std::vector<std::uint32_t> raster(area);
  // Pixels stay as stored: libtiff rotates nothing if it is asked for the file's own orientation.
  std::uint16_t orientation = ORIENTATION_TOPLEFT;
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_ORIENTATION, &orientation);
  if (TIFFReadRGBAImageOriented(tiff.get(), width, height, raster.data(), orientation, /*stop_on_error=*/1) ==
      0)
    return unsound_tiff(memory);
  Pixels pixels{height, width, static_cast<std::int64_t>(model), {}};
  pixels.bytes.resize(area * static_cast<std::size_t>(model));
  std::uint8_t* out = pixels.bytes.data();
  for (const std::uint32_t pixel : raster) {
    const auto red = static_cast<std::uint8_t>(TIFFGetR(pixel)),
               green = static_cast<std::uint8_t>(TIFFGetG(pixel)),
               blue = static_cast<std::uint8_t>(TIFFGetB(pixel));
    if (model == ColorModel::kGray) {
      *out++ = luma(red, green, blue);
      continue;
    }
    *out++ = red;
    *out++ = green;
    *out++ = blue;
    if (model == ColorModel::kRgba) *out++ = static_cast<std::uint8_t>(TIFFGetA(pixel));
  }
  return pixels;
}

}  // namespace sluice::data
