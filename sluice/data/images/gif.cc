// GIF through giflib: the first frame, on its screen, as Pillow shows it.
#include <gif_lib.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "sluice/data/images/image.h"
#include "sluice/data/memory.h"

namespace sluice::data {
namespace {

constexpr int kInterlaceStart[] = {0, 4, 2, 1}, kInterlaceStep[] = {8, 8, 4, 2};

int read_gif(GifFileType* gif, GifByteType* out, int size) {
  auto& left = *static_cast<std::string_view*>(gif->UserData);
  const std::size_t step = std::min(left.size(), static_cast<std::size_t>(size));
  std::memcpy(out, left.data(), step);
  left.remove_prefix(step);
  return static_cast<int>(step);
}

tl::unexpected<Error> unsound_gif(int error) {
  const char* reason = GifErrorString(error);
  return base::fail(Code::kDataLoss,
                    "not a valid GIF: ", reason != nullptr ? reason : "it is damaged or cut off");
}

// Reads up to the first frame and returns the index of its transparent colour, or −1.
base::Result<int> find_frame(GifFileType* gif) {
  int transparent = -1;
  while (true) {
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(gif, &type) == GIF_ERROR) return unsound_gif(gif->Error);
    if (type == IMAGE_DESC_RECORD_TYPE) {
      if (DGifGetImageDesc(gif) == GIF_ERROR) return unsound_gif(gif->Error);
      return transparent;
    }
    if (type == TERMINATE_RECORD_TYPE) return base::fail(Code::kDataLoss, "not a valid GIF: it has no image");
    if (type != EXTENSION_RECORD_TYPE) continue;
    int code = 0;
    GifByteType* block = nullptr;
    int status = DGifGetExtension(gif, &code, &block);
    while (status != GIF_ERROR && block != nullptr) {
      GraphicsControlBlock control;
      if (code == GRAPHICS_EXT_FUNC_CODE && DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
        transparent = control.TransparentColor;
      status = DGifGetExtensionNext(gif, &block);
    }
    if (status == GIF_ERROR) return unsound_gif(gif->Error);
  }
}

// Returns the colour indices of the whole screen: outside the frame `transparent`, or else the first colour.
base::Result<std::vector<std::uint8_t>> read_frame(GifFileType* gif, int transparent) {
  const GifImageDesc& frame = gif->Image;
  const int width = gif->SWidth, height = gif->SHeight;
  std::vector<std::uint8_t> indices(static_cast<std::size_t>(width) * static_cast<std::size_t>(height),
                                    static_cast<std::uint8_t>(std::max(transparent, 0)));
  std::vector<std::uint8_t> line(static_cast<std::size_t>(frame.Width));
  for (int pass = frame.Interlace ? 0 : 3; pass < 4; ++pass) {
    const int start = frame.Interlace ? kInterlaceStart[pass] : 0,
              step = frame.Interlace ? kInterlaceStep[pass] : 1;
    for (int row = start; row < frame.Height; row += step) {
      if (DGifGetLine(gif, line.data(), frame.Width) == GIF_ERROR) return unsound_gif(gif->Error);
      std::memcpy(indices.data() +
                      static_cast<std::size_t>(frame.Top + row) * static_cast<std::size_t>(width) +
                      frame.Left,
                  line.data(), line.size());
    }
  }
  return indices;
}

}  // namespace

base::Result<Pixels> decode_gif(std::string_view bytes, ColorModel model) {
  std::string_view left = bytes;
  int error = 0;
  const std::unique_ptr<GifFileType, void (*)(GifFileType*)> gif(
      DGifOpen(&left, read_gif, &error), [](GifFileType* file) { DGifCloseFile(file, nullptr); });
  if (!gif) return unsound_gif(error);
  SLUICE_TRY(const int transparent, find_frame(gif.get()));
  const GifImageDesc& frame = gif->Image;
  if (frame.Width < 1 || frame.Height < 1 || frame.Left < 0 || frame.Top < 0)
    return base::fail(Code::kDataLoss, "not a valid GIF: a frame of ", frame.Width, "×", frame.Height);
  // A frame that is larger than the screen enlarges it, as in Pillow.
  gif->SWidth = std::max(gif->SWidth, frame.Left + frame.Width);
  gif->SHeight = std::max(gif->SHeight, frame.Top + frame.Height);
  SLUICE_OK(check_pixels(gif->SWidth, gif->SHeight));
  const std::int64_t height = gif->SHeight, width = gif->SWidth, channels = static_cast<std::int64_t>(model);
  SLUICE_OK(claim_memory(static_cast<std::uint64_t>(height * width * (channels + 1)), "the pixels of a GIF"));
  SLUICE_TRY(const auto indices, read_frame(gif.get(), transparent));

  // A colour that is in no table is a grey of its index.
  const ColorMapObject* colors = frame.ColorMap != nullptr ? frame.ColorMap : gif->SColorMap;
  std::uint8_t table[256][4];
  for (int i = 0; i < 256; ++i) {
    const auto grey = static_cast<std::uint8_t>(i);
    const bool known = colors != nullptr && i < colors->ColorCount;
    const GifColorType color = known ? colors->Colors[i] : GifColorType{grey, grey, grey};
    const std::uint8_t rgba[4] = {color.Red, color.Green, color.Blue,
                                  static_cast<std::uint8_t>(i == transparent ? 0 : 255)};
    std::memcpy(table[i], rgba, 4);
    if (model == ColorModel::kGray) table[i][0] = luma(color.Red, color.Green, color.Blue);
  }
  Pixels pixels{height, width, channels, {}};
  pixels.bytes.resize(indices.size() * static_cast<std::size_t>(channels));
  std::uint8_t* out = pixels.bytes.data();
  for (const std::uint8_t index : indices)
    for (std::int64_t c = 0; c < channels; ++c) *out++ = table[index][c];
  return pixels;
}

}  // namespace sluice::data
