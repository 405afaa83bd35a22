// Decoding: the images of a shard to uint8 pixels. Seconds are the processor's, of all threads together, so
// the rates are those of one core.
//
//   bench_decode SHARD MODE SECONDS [SIDE]   prints {"mode": …, "images": …, "seconds": …, "per_second": …}
//
// Modes: batches (from the file, through the public interface, 128 rows a batch), batches_crop (the same,
// with RandomResizedCrop); and of members that are in memory, on one thread: decode (the reader's way),
// general (PNG through libspng), bare (libjpeg-turbo and nothing else), crop (RandomResizedCrop to SIDE,
// 224), bare_crop (libjpeg-turbo reads the same parts; nothing is resized), resize (the crop's resizing
// alone, from 300×300), jitter (the four changes of ColorJitter, of SIDE×SIDE pixels that are all unlike).
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>
// jpeglib.h needs cstdio before it.
#include <jpeglib.h>

#include "sluice/data/augment/augment.h"
#include "sluice/data/dataset.h"
#include "sluice/data/images/image.h"
#include "sluice/data/images/png_fast.h"
#include "sluice/data/images/resize.h"
#include "sluice/data/shards/tar.h"

namespace {

using namespace sluice;

std::vector<std::string> images_of(const std::string& shard) {
  data::TarReader tar(base::value_or_throw(data::open_source(shard)));
  std::vector<std::string> images;
  data::Member member;
  while (base::value_or_throw(tar.next(member))) {
    std::string bytes;
    base::value_or_throw(tar.read_payload(bytes));
    if (bytes.size() > 8) images.push_back(std::move(bytes));
  }
  return images;
}

// libjpeg-turbo as its example program calls it, with one object for all images.
class Bare {
 public:
  Bare() {
    info_.err = jpeg_std_error(&errors_);
    jpeg_create_decompress(&info_);
  }
  ~Bare() { jpeg_destroy_decompress(&info_); }

  void whole(const std::string& bytes) {
    begin(bytes);
    jpeg_start_decompress(&info_);
    rows(info_.output_width, info_.output_height);
    jpeg_finish_decompress(&info_);
  }
  void part(const std::string& bytes, const data::Transform& transform, base::Random random, int side) {
    begin(bytes);
    const auto region = data::random_resized_region(info_.image_height, info_.image_width, transform, random);
    info_.scale_num = 1;
    info_.scale_denom = 1;
    while (info_.scale_denom < 8 && region.height >= 2 * side * info_.scale_denom &&
           region.width >= 2 * side * info_.scale_denom)
      info_.scale_denom *= 2;
    jpeg_start_decompress(&info_);
    const auto scaled = [&](std::int64_t n) { return static_cast<JDIMENSION>(n) / info_.scale_denom; };
    JDIMENSION left = scaled(region.left), width = scaled(region.width);
    jpeg_crop_scanline(&info_, &left, &width);
    jpeg_skip_scanlines(&info_, scaled(region.top));
    rows(width, scaled(region.height));
    jpeg_abort_decompress(&info_);
  }

 private:
  void begin(const std::string& bytes) {
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&info_, TRUE);
    info_.out_color_space = JCS_RGB;
  }
  void rows(JDIMENSION width, JDIMENSION count) {
    const std::size_t stride = std::size_t{width} * 3;
    if (pixels_.size() < stride * count) pixels_.resize(stride * count);
    for (JDIMENSION y = 0; y < count; ++y) {
      JSAMPROW row = pixels_.data() + stride * y;
      jpeg_read_scanlines(&info_, &row, 1);
    }
  }

  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  std::vector<std::uint8_t> pixels_;
};

std::uint64_t checksum = 0;  // so that no work is left out

std::function<void(const std::string&, std::uint64_t)> work_of(const std::string& mode, int side) {
  const data::Transform crop{data::Transform::Kind::kRandomResizedCrop, side};
  const auto use = [](const data::Pixels& pixels) { checksum += pixels.bytes[pixels.bytes.size() / 2]; };
  if (mode == "decode")
    return [=](const std::string& bytes, std::uint64_t) {
      use(base::value_or_throw(data::decode_image(bytes, data::ColorModel::kRgb)));
    };
  if (mode == "general")
    return [=](const std::string& bytes, std::uint64_t) {
      use(base::value_or_throw(data::decode_png_general(bytes, data::ColorModel::kRgb)));
    };
  if (mode == "crop")
    return [=](const std::string& bytes, std::uint64_t number) {
      use(base::value_or_throw(
          data::decode_augmented(bytes, data::ColorModel::kRgb, {crop}, base::Random({number}))));
    };
  auto bare = std::make_shared<Bare>();
  if (mode == "bare") return [=](const std::string& bytes, std::uint64_t) { bare->whole(bytes); };
  if (mode == "bare_crop")
    return [=](const std::string& bytes, std::uint64_t number) {
      bare->part(bytes, crop, base::Random({number}), side);
    };
  if (mode == "resize") {
    const data::Pixels from{300, 300, 3, std::vector<std::uint8_t>(300 * 300 * 3, 77)};
    return [=](const std::string&, std::uint64_t) { use(data::resize_bilinear(from, side, side)); };
  }
  if (mode == "jitter") {
    data::Pixels from{side, side, 3, {}};
    base::Random random({1});
    for (int left = side * side * 3; left > 0; --left)
      from.bytes.push_back(static_cast<std::uint8_t>(random()));
    return [=, pixels = data::Pixels()](const std::string&, std::uint64_t number) mutable {
      pixels = from;
      base::Random draw({number});
      data::jitter_colors(pixels, {0.4, 0.4, 0.4, 0.1}, draw);
      use(pixels);
    };
  }
  std::cerr << "unknown mode " << mode << "\n";
  std::exit(2);
}

// Of this process: what others do on the machine is left out.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Epochs through the public interface until the time is over; images handed out.
std::uint64_t run_batches(const std::string& shard, bool crop, int side, double until) {
  data::WebDataset dataset(shard);
  dataset.images("jpg;png").labels("cls").batch(128).workers(1);
  if (crop) dataset.random_resized_crop(side);
  std::uint64_t done = 0;
  for (std::int64_t epoch = 0; processor_seconds() < until; ++epoch) {
    const auto stream = dataset.open(epoch);
    while (const auto batch = stream->next()) {
      done += static_cast<std::uint64_t>(batch->count);
      checksum += batch->image.data<std::uint8_t>()[batch->image.bytes() / 2];
    }
  }
  return done;
}

std::uint64_t run_images(const std::string& shard, const std::string& mode, int side, double limit,
                         double& start) {
  const auto images = images_of(shard);
  const auto work = work_of(mode, side);
  start = processor_seconds();
  std::uint64_t done = 0;
  while (processor_seconds() < start + limit)
    for (std::size_t i = 0; i < 16; ++i, ++done) work(images[done % images.size()], done);
  return done;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: bench_decode SHARD MODE SECONDS [SIDE]\n";
    return 2;
  }
  try {
    const std::string mode = argv[2];
    const double limit = std::atof(argv[3]);
    const int side = argc > 4 ? std::atoi(argv[4]) : 224;
    double start = processor_seconds();
    const std::uint64_t done = mode == "batches" || mode == "batches_crop"
                                   ? run_batches(argv[1], mode != "batches", side, start + limit)
                                   : run_images(argv[1], mode, side, limit, start);
    const double seconds = processor_seconds() - start;
    const nlohmann::json result = {{"mode", mode},
                                   {"images", done},
                                   {"seconds", seconds},
                                   {"per_second", static_cast<double>(done) / seconds},
                                   {"checksum", checksum}};
    std::cout << result.dump() << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
