// A decoder of the common PNG files that is faster than a general one: 3.4 times the CIFAR-10 images a second
// as libspng (AMD EPYC, one core).
#pragma once

#include <optional>
#include <string_view>

#include "sluice/data/images/image.h"

namespace sluice::data {

// Decodes 8-bit PNG files without interlacing that hold only IHDR, PLTE, tRNS, IDAT and IEND, all valid to
// the last checksum. Returns nothing for every other file, damaged ones too: a general decoder finds the
// reason. Accepted files have exactly the pixels of decode_png_general().
std::optional<Pixels> decode_png_fast(std::string_view bytes, ColorModel model);

// Decodes all of PNG through libspng, and reports why a file is not valid.
base::Result<Pixels> decode_png_general(std::string_view bytes, ColorModel model);

}  // namespace sluice::data
