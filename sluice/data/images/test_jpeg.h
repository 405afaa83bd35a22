// JPEG files for tests.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
// jpeglib.h needs cstdio before it.
#include <jpeglib.h>

#include "sluice/base/random.h"

namespace sluice::data {

struct JpegKind {
  int across = 1, down = 1;  // chroma subsampling
  bool progressive = false;
  int restart = 0;  // rows of blocks between restart markers
};

// Returns an image of smooth and rough parts.
inline std::string make_jpeg(std::int64_t height, std::int64_t width, const JpegKind& kind) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  constexpr std::int64_t kChannels = 3;
  info.input_components = kChannels;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 85, TRUE);
  info.comp_info[0].h_samp_factor = kind.across;
  info.comp_info[0].v_samp_factor = kind.down;
  info.restart_in_rows = kind.restart;
  if (kind.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  base::Random random({static_cast<std::uint64_t>(height), static_cast<std::uint64_t>(width)});
  std::vector<std::uint8_t> row(static_cast<std::size_t>(width * kChannels));
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t c = 0; c < kChannels; ++c)
        row[static_cast<std::size_t>(x * kChannels + c)] = static_cast<std::uint8_t>(
            128 + (x * (c + 1) + y) % 90 - 45 + static_cast<std::int64_t>(random.below(40)));
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&info, &rows, 1);
  }
  jpeg_finish_compress(&info);
  std::string bytes(reinterpret_cast<char*>(buffer), size);
  jpeg_destroy_compress(&info);
  std::free(buffer);
  return bytes;
}

}  // namespace sluice::data
