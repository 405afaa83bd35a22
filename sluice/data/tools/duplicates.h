// Duplicate samples: with the same bytes, or with images that look the same.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/data/images/image.h"

namespace sluice::data {

// A difference hash in both directions: whether each of 8 × 8 places of an image is brighter than its
// neighbour to the right, and than the one below. Scaling or encoding an image again changes only a few of
// the bits. Images without contrast have no likeness, because they would all look the same.
using Likeness = std::array<std::uint64_t, 2>;
std::optional<Likeness> likeness_of(const Pixels& pixels);

// A SHA-256 digest.
using Digest = std::array<unsigned char, 32>;
Digest digest_of(std::string_view bytes);

// The data of one sample that the search needs.
struct SamplePrint {
  std::size_t set = 0;  // index among the compared sets
  std::string place;    // "train-0003.tar: sample 0000012 (at byte 51200)"
  std::string label;    // its class; "" if it has no class
  Digest contents{};    // of all members except class numbers
  std::optional<Likeness> likeness;
};

// A sample that repeats another: the first of its kind, from set 0 if there is one.
struct Duplicate {
  std::size_t sample = 0, of = 0;  // indices in the list
  int different_bits = -1;         // of the likeness; -1: the bytes are the same
};

// Finds duplicates. `bits`: bits of the likeness that may differ, 0 to 12; nothing: only equal bytes count.
// The search holds 8 to 12 bytes a sample, and as much for each of bits + 1 bands; `held` gets their number.
std::vector<Duplicate> find_duplicates(const std::vector<SamplePrint>& samples, std::optional<int> bits,
                                       std::size_t* held = nullptr);

}  // namespace sluice::data
