// The shapes of batches whose samples have a length, such as tokens of a text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/export.h"

SLUICE_API_BEGIN
namespace sluice::data {

// The shape of a replica's batch: `rows` samples, each padded to `length`.
struct LengthShape {
  std::int64_t rows = 1, length = 1;
  bool operator==(const LengthShape&) const = default;
};

// Parses "16x512,32x256,64x128": rows × length, in any order. Throws for other text.
std::vector<LengthShape> parse_shapes(std::string_view text);

// How a sample is treated that is longer than every shape.
enum class TooLong {
  kError,
  kCut,  // its end is left out; Statistics::cut counts it
};

struct LengthOptions {
  // Returns a sample's length from the bytes of the member; by default the rows of an npy file. It is called
  // from several threads.
  std::function<std::int64_t(std::string_view bytes)> length = {};
  std::vector<double> padding = {};  // the value after a sample's end, one for each field; by default 0
  TooLong too_long = TooLong::kError;
  // A text that is another one for a `length` that measures otherwise, such as a tokenizer's fingerprint.
  // With it (or without `length`), the lengths are kept in the folder of WebDataset::cache() for the next
  // start.
  std::string name = {};
};

}  // namespace sluice::data
SLUICE_API_END
