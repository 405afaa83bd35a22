#include "sluice/data/augment/augment.h"

#include <algorithm>
#include <cmath>

#include "sluice/data/augment/color.h"
#include "sluice/data/images/resize.h"
#include "sluice/data/memory.h"

namespace sluice::data {
namespace {

std::int64_t below(base::Random& random, std::int64_t bound) {
  return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound)));
}

// Resizes so that the shorter side has `size` pixels. A long strip can become large, so it is checked.
base::Result<Pixels> resize_shorter(const Pixels& pixels, std::int64_t size) {
  const std::int64_t shorter = std::min(pixels.height, pixels.width);
  const std::int64_t height = std::max<std::int64_t>(1, pixels.height * size / shorter),
                     width = std::max<std::int64_t>(1, pixels.width * size / shorter);
  SLUICE_OK(check_pixels(width, height));
  SLUICE_OK(claim_resized(pixels, height, width));
  return resize_bilinear(pixels, height, width);
}

// Returns the offset of the middle. Halves are rounded to even, as in torchvision's Python; a small image
// gets a border of zeros.
std::int64_t middle(std::int64_t extent, std::int64_t size) {
  const std::int64_t room = extent - size;
  const std::int64_t half = room >= 0 ? room / 2 : -((-room) / 2);
  return room > 0 && room % 2 != 0 && half % 2 != 0 ? half + 1 : half;
}

base::Result<Pixels> random_crop(Pixels pixels, const Transform& transform, base::Random& random) {
  const std::int64_t size = transform.size;
  const std::int64_t rows = pixels.height + 2 * transform.padding - size;
  const std::int64_t columns = pixels.width + 2 * transform.padding - size;
  if (rows < 0 || columns < 0)
    return base::fail(Code::kInvalidArgument, "a crop of ", size, "×", size,
                      " does not fit into an image of ", pixels.height, "×", pixels.width,
                      " with a border of ", transform.padding,
                      ": resize first (--resize, in C++ resize()), or crop less");
  const std::int64_t top = below(random, rows + 1);
  const std::int64_t left = below(random, columns + 1);
  if (rows == 0 && columns == 0) return pixels;
  return crop_pixels(pixels, top - transform.padding, left - transform.padding, size, size);
}

base::Result<Pixels> apply(Pixels pixels, const Transform& transform, base::Random& random) {
  const std::int64_t size = transform.size;
  switch (transform.kind) {
    case Transform::Kind::kResize:
      return resize_shorter(pixels, size);
    case Transform::Kind::kCenterCrop:
      return crop_pixels(pixels, middle(pixels.height, size), middle(pixels.width, size), size, size);
    case Transform::Kind::kRandomCrop:
      return random_crop(std::move(pixels), transform, random);
    case Transform::Kind::kRandomResizedCrop:
      SLUICE_OK(claim_resized(pixels, size, size));
      return resize_region(pixels, random_resized_region(pixels.height, pixels.width, transform, random),
                           size, size);
    case Transform::Kind::kFlip:
      if ((random() >> 63) == 0) return pixels;
      SLUICE_OK(claim_memory(pixels.bytes.size(), "a mirrored image"));
      return crop_pixels(pixels, 0, 0, pixels.height, pixels.width, true);
    case Transform::Kind::kColorJitter:
      jitter_colors(pixels, transform.jitter, random);
      break;
    case Transform::Kind::kAutoContrast:
      if (random.chance(transform.probability)) autocontrast(pixels);
      break;
    case Transform::Kind::kRandAugment:
      return rand_augment(std::move(pixels), transform.operations, transform.magnitude, random);
  }
  return pixels;
}

}  // namespace

Region random_resized_region(std::int64_t height, std::int64_t width, const Transform& transform,
                             base::Random& random) {
  const double area = static_cast<double>(height) * static_cast<double>(width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double share = area * random.uniform(transform.scale_low, transform.scale_high);
    const double ratio =
        std::exp(random.uniform(std::log(transform.ratio_low), std::log(transform.ratio_high)));
    Region part;
    part.width = std::llrint(std::sqrt(share * ratio));
    part.height = std::llrint(std::sqrt(share / ratio));
    if (part.width < 1 || part.width > width || part.height < 1 || part.height > height) continue;
    part.top = below(random, height - part.height + 1);
    part.left = below(random, width - part.width + 1);
    return part;
  }
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  Region part{0, 0, height, width};
  if (ratio < transform.ratio_low)
    part.height = std::min(
        height, std::max<std::int64_t>(1, std::llrint(static_cast<double>(width) / transform.ratio_low)));
  if (ratio > transform.ratio_high)
    part.width = std::min(
        width, std::max<std::int64_t>(1, std::llrint(static_cast<double>(height) * transform.ratio_high)));
  part.top = (height - part.height) / 2;
  part.left = (width - part.width) / 2;
  return part;
}

base::Result<Pixels> decode_augmented(std::string_view bytes, ColorModel model,
                                      const std::vector<Transform>& transforms, base::Random random,
                                      bool exif_rotation) {
  auto next = transforms.begin();
  Pixels pixels;
  const int orientation = exif_rotation ? orientation_of(bytes) : 1;
  if (next != transforms.end() && next->kind == Transform::Kind::kRandomResizedCrop && is_jpeg(bytes) &&
      orientation == 1) {
    const auto choose = [&](std::int64_t height, std::int64_t width) {
      return random_resized_region(height, width, *next, random);
    };
    SLUICE_TRY(pixels, decode_jpeg_region(bytes, model, choose, next->size, next->size));
    ++next;
  } else {
    SLUICE_TRY(pixels, decode_image(bytes, model));
    if (orientation != 1) SLUICE_OK(claim_memory(pixels.bytes.size(), "an image that is rotated"));
    pixels = upright(std::move(pixels), orientation);
  }
  for (; next != transforms.end(); ++next) {
    SLUICE_TRY(pixels, apply(std::move(pixels), *next, random));
  }
  return pixels;
}

}  // namespace sluice::data
