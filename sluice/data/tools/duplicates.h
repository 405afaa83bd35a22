// Samples that are there more than once: with the same bytes, or with images that look the same.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/data/images/image.h"

namespace sluice::data {

// What an image looks like: whether each of 8 × 8 places is brighter than its neighbour to the right, and
// than the one below (a difference hash, in both directions). Images that were scaled or encoded again differ
// in few of the bits. Nothing for an image without contrast, which looks like all others of its kind.
using Likeness = std::array<std::uint64_t, 2>;
std::optional<Likeness> likeness_of(const Pixels& pixels);

// SHA-256.
using Digest = std::array<unsigned char, 32>;
Digest digest_of(std::string_view bytes);

// One sample, as the search needs it.
struct SamplePrint {
  std::size_t set = 0;  // which of the sets that are compared it is from
  std::string place;    // "train-0003.tar: sample 0000012 (at byte 51200)"
  std::string label;    // its class, "" without
  Digest contents{};    // of all members but class numbers
  std::optional<Likeness> likeness;
};

// One that repeats another: the first of its kind, of set 0 where there is one.
struct Duplicate {
  std::size_t sample = 0, of = 0;  // places in the list
  int different_bits = -1;         // of the likeness; -1: the bytes are the same
};

// `bits`: of the likeness that may differ, 0 to 12; nothing: only the bytes count.
std::vector<Duplicate> find_duplicates(const std::vector<SamplePrint>& samples, std::optional<int> bits);

}  // namespace sluice::data
