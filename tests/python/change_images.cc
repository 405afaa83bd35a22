// Changes images as augmentation does, for comparison with Pillow. Reads lines, answers each with a line:
//
//   change NAME EXTENT HEIGHT WIDTH CHANNELS FILE    changes the pixels in FILE; NAME: Hue, or one of
//   RandAugment's extent NAME MAGNITUDE HEIGHT WIDTH               how far RandAugment goes
#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "sluice/base/result.h"
#include "sluice/data/augment/color.h"
#include "sluice/data/augment/random_changes.h"

namespace {

using namespace sluice;

constexpr std::array kNames{"Identity",  "ShearX",     "ShearY",       "TranslateX", "TranslateY",
                            "Rotate",    "Brightness", "Color",        "Contrast",   "Sharpness",
                            "Posterize", "Solarize",   "AutoContrast", "Equalize"};
static_assert(kNames.size() == data::kChangeKinds);

data::ChangeKind kind_of(const std::string& name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<data::ChangeKind>(i);
  throw std::runtime_error("no change has the name " + name);
}

void change() {
  std::string name, path;
  double extent = 0;
  data::Pixels pixels;
  std::cin >> name >> extent >> pixels.height >> pixels.width >> pixels.channels >> path;
  std::ifstream in(path, std::ios::binary);
  pixels.bytes.assign(std::istreambuf_iterator<char>(in), {});
  if (static_cast<std::int64_t>(pixels.bytes.size()) != pixels.height * pixels.width * pixels.channels)
    throw std::runtime_error(path + " has another number of bytes");
  if (name == "Hue")
    data::adjust_hue(pixels, extent);
  else
    pixels = base::value_or_throw(data::change_image(std::move(pixels), kind_of(name), extent));
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(pixels.bytes.data()),
             static_cast<std::streamsize>(pixels.bytes.size()));
  std::puts("done");
}

void print_extent() {
  std::string name;
  std::int64_t magnitude = 0, height = 0, width = 0;
  std::cin >> name >> magnitude >> height >> width;
  std::printf("%.17g\n", data::extent_of(kind_of(name), magnitude, height, width));
}

}  // namespace

int main() {
  try {
    std::string what;
    while (std::cin >> what) {
      what == "change" ? change() : print_extent();
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
