// JPEG through libjpeg-turbo.
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <optional>
// jpeglib.h needs cstdio before it.
#include <jerror.h>
#include <jpeglib.h>

#include "sluice/base/text/strings.h"
#include "sluice/data/images/image.h"
#include "sluice/data/images/resize.h"
#include "sluice/data/memory.h"

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

// libjpeg calls these warnings and paints the rest of the image grey. Data is missing, so they are errors
// here. Other warnings (stray bytes between markers, unknown Adobe versions) lose nothing and are common in
// real data sets.
bool jpeg_loses_data(int code) {
  return code == JWRN_HIT_MARKER || code == JWRN_JPEG_EOF || code == JWRN_HUFF_BAD_CODE ||
         code == JWRN_MUST_RESYNC;
}

void jpeg_message(j_common_ptr info, int level) {
  if (level < 0 && jpeg_loses_data(info->err->msg_code)) jpeg_leave(info);
}

void jpeg_silent(j_common_ptr) {}

// Limits the scans: each scan of a progressive file costs a whole image's time; real files have about ten.
void jpeg_limit_scans(j_common_ptr info) {
  constexpr int kMaxScans = 500;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  std::snprintf(errors->message, JMSG_LENGTH_MAX, "it has more than %d scans", kMaxScans);
  std::longjmp(errors->escape, 1);
}

// The tables that libjpeg-turbo uses for files without Huffman tables of their own (frames of Motion JPEG).
struct JpegDefaults {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};

  JpegDefaults() {
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    info.in_color_space = JCS_RGB;
    info.input_components = 3;
    jpeg_set_defaults(&info);
  }
  ~JpegDefaults() { jpeg_destroy_compress(&info); }
  JpegDefaults(const JpegDefaults&) = delete;
  JpegDefaults& operator=(const JpegDefaults&) = delete;
};

// The objects that a thread keeps between images: making libjpeg's object costs as much as a small image.
struct JpegReader {
  jpeg_decompress_struct info{};
  JpegErrors errors{};
  jpeg_progress_mgr progress{};
  std::vector<std::uint8_t> unaligned_row;

  JpegReader() {
    info.err = jpeg_std_error(&errors.manager);
    errors.manager.error_exit = jpeg_leave;
    errors.manager.emit_message = jpeg_message;
    errors.manager.output_message = jpeg_silent;
    jpeg_create_decompress(&info);
    progress.progress_monitor = jpeg_limit_scans;
    info.progress = &progress;
    auto* common = reinterpret_cast<j_common_ptr>(&info);
    for (int i = 0; i < NUM_QUANT_TBLS; ++i) info.quant_tbl_ptrs[i] = jpeg_alloc_quant_table(common);
    for (int i = 0; i < NUM_HUFF_TBLS; ++i) {
      info.dc_huff_tbl_ptrs[i] = jpeg_alloc_huff_table(common);
      info.ac_huff_tbl_ptrs[i] = jpeg_alloc_huff_table(common);
    }
  }
  ~JpegReader() { jpeg_destroy_decompress(&info); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  // libjpeg-turbo writes a row past the caches if it begins at a multiple of the registers' size, so such a
  // row is made elsewhere and copied.
  void read_row(std::uint8_t* row, std::size_t bytes) {
    constexpr std::size_t kRegister = 16;
    const bool aligned = reinterpret_cast<std::uintptr_t>(row) % kRegister == 0;
    if (aligned && unaligned_row.size() < bytes + kRegister) unaligned_row.resize(bytes + kRegister);
    JSAMPROW target = aligned ? unaligned_row.data() + kRegister / 2 : row;
    jpeg_read_scanlines(&info, &target, 1);
    if (aligned) std::memcpy(row, target, bytes);
  }

  // Prepares for another image, in any state after the last one. None of its tables may serve the next file
  // if that one has no tables: a table that was not read is empty (or libjpeg's own).
  void reset() {
    static const JpegDefaults defaults;
    jpeg_abort_decompress(&info);
    for (JQUANT_TBL* table : info.quant_tbl_ptrs) std::memset(table->quantval, 0, sizeof table->quantval);
    for (int i = 0; i < NUM_HUFF_TBLS; ++i) {
      put(info.dc_huff_tbl_ptrs[i], defaults.info.dc_huff_tbl_ptrs[i]);
      put(info.ac_huff_tbl_ptrs[i], defaults.info.ac_huff_tbl_ptrs[i]);
    }
  }
  bool lacks_table() const {
    for (int i = 0; i < info.comps_in_scan; ++i) {
      const int number = info.cur_comp_info[i]->quant_tbl_no;
      if (number >= 0 && number < NUM_QUANT_TBLS && info.quant_tbl_ptrs[number]->quantval[0] == 0)
        return true;
    }
    return false;
  }

 private:
  static void put(JHUFF_TBL* table, const JHUFF_TBL* standard) {
    if (standard != nullptr) {
      *table = *standard;
    } else {
      std::memset(table->bits, 0, sizeof table->bits);
    }
  }
};

// Lends the thread's reader for one image. At the end libjpeg's memory for the image is freed: the
// coefficients of several scans are as large as the pixels, and other samples may claim their room from then
// on.
class JpegUse {
 public:
  JpegUse() { reader_.reset(); }
  ~JpegUse() { jpeg_abort_decompress(&reader_.info); }
  JpegUse(const JpegUse&) = delete;
  JpegUse& operator=(const JpegUse&) = delete;
  JpegReader& reader() { return reader_; }

 private:
  static JpegReader& reader_of_thread() {
    thread_local JpegReader reader;
    return reader;
  }
  JpegReader& reader_ = reader_of_thread();
};

// Converts (255 − ink) of CMYK, as Adobe's files store it, to RGB in the first three quarters. Files without
// Adobe's marker are assumed to store the same, as in Pillow.
void jpeg_cmyk_to_rgb(Pixels& pixels) {
  const std::size_t count = static_cast<std::size_t>(pixels.height * pixels.width);
  const std::uint8_t* in = pixels.bytes.data();
  std::uint8_t* out = pixels.bytes.data();
  for (std::size_t i = 0; i < count; ++i, in += 4) {
    const unsigned light = in[3];
    for (int c = 0; c < 3; ++c) {
      const unsigned product = in[c] * light + 128;
      *out++ = static_cast<std::uint8_t>((product + (product >> 8)) >> 8);
    }
  }
  pixels.channels = 3;
  pixels.bytes.resize(count * 3);
}

// The part of an image to read, and its state. Everything between setjmp and a possible longjmp is stored
// outside of the functions below.
struct JpegWork {
  std::string_view bytes;
  Pixels pixels;
  const std::function<Region(std::int64_t, std::int64_t)>* choose = nullptr;
  std::int64_t height = 0, width = 0;  // of the result
  Region region;                       // in the image
  Region read;                         // the part that `pixels` holds, in the scaled image
  int reduction = 1;
  std::optional<Error> refused;  // because of its size
};

// Claims memory for the pixels, and for all coefficients if these come in several scans.
base::Status jpeg_claim(jpeg_decompress_struct& info) {
  SLUICE_OK(check_pixels(info.image_width, info.image_height));
  const std::uint64_t area = std::uint64_t{info.image_width} * info.image_height;
  std::uint64_t bytes = area * (info.num_components == 4 ? 4 : 3);
  if (jpeg_has_multiple_scans(&info))
    for (int i = 0; i < info.num_components; ++i)
      bytes += std::uint64_t{info.comp_info[i].width_in_blocks} * info.comp_info[i].height_in_blocks *
               sizeof(JBLOCK);
  return claim_memory(bytes, "the pixels and coefficients of a JPEG");
}

bool jpeg_begin(JpegReader& reader, JpegWork& work) {
  auto& info = reader.info;
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(work.bytes.data()), work.bytes.size());
  jpeg_read_header(&info, TRUE);
  if (const auto status = jpeg_claim(info); !status) {
    work.refused = status.error();
    return false;
  }
  if (reader.lacks_table()) {
    std::snprintf(reader.errors.message, JMSG_LENGTH_MAX, "a quantization table is missing");
    return false;
  }
  const bool inks = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  return true;
}

bool jpeg_read(JpegReader& reader, JpegWork& work) {
  auto& info = reader.info;
  if (setjmp(reader.errors.escape) != 0) return false;
  if (!jpeg_begin(reader, work)) return false;
  jpeg_start_decompress(&info);
  Pixels& pixels = work.pixels;
  pixels.height = info.output_height;
  pixels.width = info.output_width;
  pixels.channels = info.output_components;
  const std::size_t stride = static_cast<std::size_t>(pixels.width * pixels.channels);
  pixels.bytes = pixel_memory(stride * static_cast<std::size_t>(pixels.height));
  while (info.output_scanline < info.output_height)
    reader.read_row(pixels.bytes.data() + stride * info.output_scanline, stride);
  // Bytes after the last row are not read: a file without an end marker has lost nothing, and Pillow takes
  // it. (If it has several scans, all were read before the first row.)
  return true;
}

// Returns the part to read: the region in the scaled image, with a border that the decoder's smooth
// upsampling and the resizing use.
Region jpeg_part(const JpegWork& work, std::int64_t height, std::int64_t width) {
  const std::int64_t border = work.reduction == 1 ? 2 : 4;
  const Region& region = work.region;
  const std::int64_t n = work.reduction;
  Region part;
  part.top = std::max<std::int64_t>(0, region.top / n - border);
  part.left = std::max<std::int64_t>(0, region.left / n - border);
  part.height = std::min(height, (region.top + region.height + n - 1) / n + border) - part.top;
  part.width = std::min(width, (region.left + region.width + n - 1) / n + border) - part.left;
  return part;
}

bool jpeg_read_region(JpegReader& reader, JpegWork& work) {
  auto& info = reader.info;
  if (setjmp(reader.errors.escape) != 0) return false;
  if (!jpeg_begin(reader, work)) return false;
  work.region = (*work.choose)(info.image_height, info.image_width);
  work.reduction = 1;
  while (work.reduction < 8 && work.region.height >= 2 * work.reduction * work.height &&
         work.region.width >= 2 * work.reduction * work.width)
    work.reduction *= 2;
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(work.reduction);
  jpeg_start_decompress(&info);
  work.read = jpeg_part(work, info.output_height, info.output_width);
  JDIMENSION left = static_cast<JDIMENSION>(work.read.left), width = static_cast<JDIMENSION>(work.read.width);
  jpeg_crop_scanline(&info, &left, &width);
  work.read.left = left;
  work.read.width = width;
  Pixels& pixels = work.pixels;
  pixels.height = work.read.height;
  pixels.width = work.read.width;
  pixels.channels = info.output_components;
  const std::size_t stride = static_cast<std::size_t>(pixels.width * pixels.channels);
  pixels.bytes = pixel_memory(stride * static_cast<std::size_t>(pixels.height));
  if (work.read.top > 0) jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(work.read.top));
  for (std::int64_t y = 0; y < pixels.height; ++y)
    reader.read_row(pixels.bytes.data() + stride * static_cast<std::size_t>(y), stride);
  return true;
}

// Whether the rest can be left unread: a file that was cut off has no end marker.
bool jpeg_has_end(std::string_view bytes) { return base::ends_with(bytes, "\xff\xd9"); }

tl::unexpected<Error> jpeg_error(const JpegReader& reader, const JpegWork& work) {
  if (work.refused) return tl::unexpected<Error>(*work.refused);
  return base::fail(Code::kDataLoss, "not a valid JPEG: ", reader.errors.message);
}

// Converts decoded pixels to RGB.
void jpeg_finish(const JpegReader& reader, Pixels& pixels) {
  if (reader.info.out_color_space == JCS_CMYK) jpeg_cmyk_to_rgb(pixels);
}

// Cuts the region out of the decoded part and resizes it.
Pixels jpeg_resized(const JpegWork& work) {
  const Region &region = work.region, &read = work.read;
  if (work.reduction == 1)
    return resize_region(work.pixels,
                         {region.top - read.top, region.left - read.left, region.height, region.width},
                         work.height, work.width);
  const auto scaled = [&](std::int64_t n) { return static_cast<double>(n) / work.reduction; };
  return resize_bilinear(
      work.pixels,
      {scaled(region.top) - static_cast<double>(read.top),
       scaled(region.left) - static_cast<double>(read.left), scaled(region.height), scaled(region.width)},
      work.height, work.width);
}

}  // namespace

base::Result<Pixels> decode_jpeg(std::string_view bytes, ColorModel model) {
  JpegUse use;
  JpegReader& reader = use.reader();
  JpegWork work;
  work.bytes = bytes;
  if (!jpeg_read(reader, work)) return jpeg_error(reader, work);
  jpeg_finish(reader, work.pixels);
  return convert_rgb(std::move(work.pixels), model);
}

base::Result<Pixels> decode_jpeg_region(std::string_view bytes, ColorModel model,
                                        const std::function<Region(std::int64_t, std::int64_t)>& choose,
                                        std::int64_t height, std::int64_t width) {
  if (!jpeg_has_end(bytes)) {
    SLUICE_TRY(const Pixels all, decode_jpeg(bytes, model));
    SLUICE_OK(claim_resized(all, height, width));
    return resize_region(all, choose(all.height, all.width), height, width);
  }
  JpegUse use;
  JpegReader& reader = use.reader();
  JpegWork work;
  work.bytes = bytes;
  work.choose = &choose;
  work.height = height;
  work.width = width;
  if (!jpeg_read_region(reader, work)) return jpeg_error(reader, work);
  jpeg_finish(reader, work.pixels);
  if (model == ColorModel::kGray) {
    SLUICE_TRY(work.pixels, convert_rgb(std::move(work.pixels), model));
  }
  SLUICE_OK(claim_resized(work.pixels, height, width));
  Pixels result = jpeg_resized(work);
  keep_pixel_memory(std::move(work.pixels.bytes));
  if (model == ColorModel::kRgba) return convert_rgb(std::move(result), model);
  return result;
}

}  // namespace sluice::data
