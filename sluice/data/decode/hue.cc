// To HSV and back with the numbers of Pillow's conversions, which are float and double in turns; but without
// divisions for the hue and without branches, which cost most where neighbours differ.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "sluice/data/decode/color.h"

namespace sluice::data {
namespace {

constexpr int kRed = 0, kGreen = 1, kBlue = 2;

// In 1/256 of the circle, of a colour whose highest channel is `highest`; the others lie so far below it.
std::uint8_t hue_of(int highest, const std::array<int, 3>& below) {
  const auto range = static_cast<float>(*std::max_element(below.begin(), below.end()));
  if (range == 0) return 0;
  const float red = static_cast<float>(below[kRed]) / range,
              green = static_cast<float>(below[kGreen]) / range,
              blue = static_cast<float>(below[kBlue]) / range;
  float sixths = blue - green;
  if (highest == kGreen) sixths = static_cast<float>(2.0 + red - blue);
  if (highest == kBlue) sixths = static_cast<float>(4.0 + green - red);
  const double turns = sixths / 6.0 + 1.0;
  return static_cast<std::uint8_t>(static_cast<float>(turns < 1.0 ? turns : turns - 1.0) * 255.0);
}

// By the highest channel, and how far the two others lie below it, in their order.
std::vector<std::uint8_t> all_hues() {
  std::vector<std::uint8_t> hues;
  hues.reserve(3 << 16);
  for (int highest = kRed; highest <= kBlue; ++highest)
    for (int first = 0; first < 256; ++first)
      for (int second = 0; second < 256; ++second)
        hues.push_back(hue_of(highest, highest == kRed     ? std::array{0, first, second}
                                       : highest == kGreen ? std::array{first, 0, second}
                                                           : std::array{first, second, 0}));
  return hues;
}

// What becomes of a pixel of a hue: each channel is the highest level v, the lowest p, or the one between.
struct Arrangement {
  double part;  // of the saturation that the one between lacks; in odd sectors a float
  bool is_odd;
  std::uint8_t red, green, blue;  // places in {v, p, between}
};

std::array<Arrangement, 256> arrangements(int turn) {
  constexpr std::uint8_t v = 0, p = 1, between = 2;
  constexpr std::uint8_t kSectors[6][3] = {{v, between, p}, {between, v, p}, {p, v, between},
                                           {p, between, v}, {between, p, v}, {v, p, between}};
  std::array<Arrangement, 256> all{};
  for (int hue = 0; hue < 256; ++hue) {
    const double sixths = ((hue + turn) & 255) * 6.0 / 255.0;
    const int whole = static_cast<int>(sixths);
    const auto rest = static_cast<float>(sixths - whole);
    const auto& sector = kSectors[whole % 6];
    const bool is_odd = whole % 2 == 1;
    all[static_cast<std::size_t>(hue)] = {is_odd ? rest : 1.0 - rest, is_odd, sector[0], sector[1],
                                          sector[2]};
  }
  return all;
}

std::uint8_t rounded(double level) { return static_cast<std::uint8_t>(level + 0.5); }

}  // namespace

void adjust_hue(Pixels& pixels, double turn) {
  if (pixels.channels == 1) return;
  static const std::vector<std::uint8_t> hues = all_hues();
  const std::uint8_t* const hue_table = hues.data();
  const std::array<Arrangement, 256> arranged = arrangements(static_cast<int>(turn * 255));
  std::array<float, 256> saturations;
  for (int s = 0; s < 256; ++s) saturations[static_cast<std::size_t>(s)] = static_cast<float>(s / 255.0);

  std::uint8_t* pixel = pixels.bytes.data();
  for (std::int64_t left = pixels.height * pixels.width; left > 0; --left, pixel += pixels.channels) {
    const int r = pixel[0], g = pixel[1], b = pixel[2];
    const int v = std::max(std::max(r, g), b), range = v - std::min(std::min(r, g), b);
    const int is_red = r == v, is_green = (1 - is_red) & static_cast<int>(g == v),
              is_blue = 1 - is_red - is_green;
    // The highest channel lies 0 below itself, so these are the two others.
    const int first = v - r + (-is_red & (v - g)), second = v - b + (-is_blue & (v - g));
    const std::uint8_t hue = hue_table[(is_green + 2 * is_blue) << 16 | first << 8 | second];
    const auto s =
        static_cast<std::size_t>(static_cast<float>(range) / static_cast<float>(std::max(v, 1)) * 255.0);

    const Arrangement& place = arranged[hue];
    const double saturation = saturations[s], share = saturation * place.part;
    const double lacks = place.is_odd ? static_cast<double>(static_cast<float>(share)) : share;
    const std::uint8_t levels[] = {static_cast<std::uint8_t>(v), rounded(v * (1.0 - saturation)),
                                   rounded(v * (1.0 - lacks))};
    pixel[0] = levels[place.red];
    pixel[1] = levels[place.green];
    pixel[2] = levels[place.blue];
  }
}

}  // namespace sluice::data
