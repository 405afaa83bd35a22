// The programs of examples/gallery as functions of one test.
#pragma once

#include <sluice/sluice.h>
#include <torch/torch.h>
#include <zlib.h>

#include <array>
#include <string>
#include <vector>

#include "examples/gallery/gallery.h"

namespace sluice::tests {

struct GalleryProgram {
  std::string name;
  int (*main)(int argc, char** argv);
  double tolerance = 1e-3;         // of the losses, relative
  double metric_tolerance = 2e-2;  // of the metric; near a tie, rounding decides an answer
  int64_t more_programs = 0;       // that the device may compile after the third step
};

std::vector<GalleryProgram> gallery_part_1();
std::vector<GalleryProgram> gallery_part_2();
std::vector<GalleryProgram> gallery_part_3();
std::vector<GalleryProgram> gallery_part_4();

}  // namespace sluice::tests
