#include "sluice/data/tools/duplicates.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "sluice/base/formats/sha256.h"
#include "sluice/data/images/resize.h"

namespace sluice::data {
namespace {

constexpr std::size_t kPlaces = 9;  // in each direction: they have eight differences

// Returns the brightness of each of 9 × 9 parts of the image, as the sum of its channels.
std::array<int, kPlaces * kPlaces> brightness(const Pixels& pixels) {
  const Pixels small = resize_bilinear(pixels, kPlaces, kPlaces);
  std::array<int, kPlaces * kPlaces> sums{};
  for (std::size_t i = 0; i < small.bytes.size(); ++i)
    sums[i / static_cast<std::size_t>(small.channels)] += small.bytes[i];
  return sums;
}

int difference(const Likeness& a, const Likeness& b) {
  return std::popcount(a[0] ^ b[0]) + std::popcount(a[1] ^ b[1]);
}

// Returns bits begin … end − 1 of the 128.
std::uint64_t bits_of(const Likeness& likeness, std::size_t begin, std::size_t end) {
  std::uint64_t bits = 0;
  for (std::size_t i = begin; i < end; ++i) bits = bits << 1 | (likeness[i / 64] >> (i % 64) & 1);
  return bits;
}

// Finds similar likenesses by bands. Two likenesses that differ in at most `bits` bits agree in at least one
// of bits + 1 bands, so only samples that share a band are compared.
class Bands {
 public:
  explicit Bands(int bits) : bits_(bits), bands_(static_cast<std::size_t>(bits) + 1), known_(bands_) {}

  // Returns the nearest of the samples added before; among equals the first.
  std::optional<std::pair<std::size_t, int>> nearest(const std::vector<SamplePrint>& samples,
                                                     const Likeness& likeness) const {
    std::optional<std::pair<std::size_t, int>> best;
    for (std::size_t band = 0; band < bands_; ++band) {
      const auto found = known_[band].find(key(likeness, band));
      if (found == known_[band].end()) continue;
      for (const std::size_t other : found->second) {
        const int bits = difference(likeness, *samples[other].likeness);
        if (bits > bits_) continue;
        if (!best || bits < best->second || (bits == best->second && other < best->first))
          best = {other, bits};
      }
    }
    return best;
  }
  void add(const Likeness& likeness, std::size_t sample) {
    for (std::size_t band = 0; band < bands_; ++band) known_[band][key(likeness, band)].push_back(sample);
  }

 private:
  std::uint64_t key(const Likeness& likeness, std::size_t band) const {
    return bits_of(likeness, band * 128 / bands_,
                   std::min((band + 1) * 128 / bands_, band * 128 / bands_ + 64));
  }

  int bits_;
  std::size_t bands_;
  std::vector<std::unordered_map<std::uint64_t, std::vector<std::size_t>>> known_;
};

struct DigestHash {
  std::size_t operator()(const Digest& digest) const {
    std::size_t value = 0;
    std::memcpy(&value, digest.data(), sizeof value);
    return value;
  }
};

}  // namespace

std::optional<Likeness> likeness_of(const Pixels& pixels) {
  if (pixels.height == 0 || pixels.width == 0) return std::nullopt;
  const auto parts = brightness(pixels);
  const auto [darkest, brightest] = std::minmax_element(parts.begin(), parts.end());
  if (*brightest - *darkest < 8 * pixels.channels) return std::nullopt;
  Likeness likeness{};
  for (std::size_t row = 0; row < 8; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      const int here = parts[row * kPlaces + column];
      likeness[0] = likeness[0] << 1 | (parts[row * kPlaces + column + 1] > here ? 1 : 0);
      likeness[1] = likeness[1] << 1 | (parts[(row + 1) * kPlaces + column] > here ? 1 : 0);
    }
  }
  return likeness;
}

Digest digest_of(std::string_view bytes) {
  const std::string hash = base::sha256(bytes);
  Digest digest{};
  std::copy(hash.begin(), hash.end(), digest.begin());
  return digest;
}

std::vector<Duplicate> find_duplicates(const std::vector<SamplePrint>& samples, std::optional<int> bits) {
  std::unordered_map<Digest, std::size_t, DigestHash> contents;
  Bands bands(bits.value_or(0));
  std::vector<Duplicate> duplicates;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const SamplePrint& sample = samples[i];
    const auto [known, first] = contents.try_emplace(sample.contents, i);
    if (!first) {
      duplicates.push_back({i, known->second, -1});
      continue;
    }
    if (!bits || !sample.likeness) continue;
    if (const auto near = bands.nearest(samples, *sample.likeness))
      duplicates.push_back({i, near->first, near->second});
    else
      bands.add(*sample.likeness, i);
  }
  return duplicates;
}

}  // namespace sluice::data
