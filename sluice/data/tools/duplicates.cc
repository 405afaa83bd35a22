#include "sluice/data/tools/duplicates.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "sluice/base/formats/sha256.h"
#include "sluice/base/text/strings.h"
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

// Samples by a hash, in lists: the latest sample of each hash, and for each sample the one before it. Samples
// of one list may have different hashes.
class SampleLists {
 public:
  explicit SampleLists(std::size_t samples)
      : latest_(std::bit_ceil(samples), kNone), before_(samples, kNone) {}

  template <typename Look>
  void for_each(std::uint64_t hash, const Look& look) const {
    for (std::uint32_t sample = latest_[place(hash)]; sample != kNone; sample = before_[sample]) look(sample);
  }
  void add(std::uint64_t hash, std::size_t sample) {
    before_[sample] = std::exchange(latest_[place(hash)], static_cast<std::uint32_t>(sample));
  }
  std::size_t bytes() const { return (latest_.size() + before_.size()) * sizeof(std::uint32_t); }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::size_t place(std::uint64_t hash) const {
    constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 / the golden ratio: spreads close hashes
    const std::uint64_t spread = hash * kGolden;
    return static_cast<std::size_t>((spread ^ (spread >> 32)) & (latest_.size() - 1));
  }
  std::vector<std::uint32_t> latest_, before_;
};

// Finds similar likenesses by bands. Two likenesses that differ in at most `bits` bits agree in at least one
// of bits + 1 bands, so only samples that share a band are compared.
class Bands {
 public:
  Bands(int bits, std::size_t samples)
      : bits_(bits), bands_(static_cast<std::size_t>(bits) + 1), known_(bands_, SampleLists(samples)) {}

  // Returns the nearest of the samples added before; among equals the first.
  std::optional<std::pair<std::size_t, int>> nearest(const std::vector<SamplePrint>& samples,
                                                     const Likeness& likeness) const {
    std::optional<std::pair<std::size_t, int>> best;
    for (std::size_t band = 0; band < bands_; ++band)
      known_[band].for_each(key(likeness, band), [&](std::size_t other) {
        const int bits = difference(likeness, *samples[other].likeness);
        if (bits > bits_) return;
        if (!best || bits < best->second || (bits == best->second && other < best->first))
          best = {other, bits};
      });
    return best;
  }
  void add(const Likeness& likeness, std::size_t sample) {
    for (std::size_t band = 0; band < bands_; ++band) known_[band].add(key(likeness, band), sample);
  }
  std::size_t bytes() const { return bands_ * known_.front().bytes(); }

 private:
  std::uint64_t key(const Likeness& likeness, std::size_t band) const {
    return bits_of(likeness, band * 128 / bands_,
                   std::min((band + 1) * 128 / bands_, band * 128 / bands_ + 64));
  }

  int bits_;
  std::size_t bands_;
  std::vector<SampleLists> known_;
};

std::uint64_t hash_of(const Digest& digest) {
  std::uint64_t value = 0;
  std::memcpy(&value, digest.data(), sizeof value);
  return value;
}

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

std::vector<Duplicate> find_duplicates(const std::vector<SamplePrint>& samples, std::optional<int> bits,
                                       std::size_t* held) {
  SampleLists contents(samples.size());
  std::optional<Bands> bands;
  if (bits) bands.emplace(*bits, samples.size());
  std::vector<Duplicate> duplicates;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const SamplePrint& sample = samples[i];
    std::optional<std::size_t> same;
    contents.for_each(hash_of(sample.contents), [&](std::size_t other) {
      if (samples[other].contents == sample.contents) same = other;
    });
    if (same) {
      duplicates.push_back({i, *same, -1});
      continue;
    }
    contents.add(hash_of(sample.contents), i);
    if (!bands || !sample.likeness) continue;
    if (const auto near = bands->nearest(samples, *sample.likeness))
      duplicates.push_back({i, near->first, near->second});
    else
      bands->add(*sample.likeness, i);
  }
  if (held != nullptr) *held = contents.bytes() + (bands ? bands->bytes() : 0);
  return duplicates;
}

}  // namespace sluice::data
