// What a dataset hands out: samples on the way, batches at the end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/data/array.h"

SLUICE_API_BEGIN
namespace sluice::data {

// A decoded image: [height, width, channels], uint8 in 0…255 or float32 in 0…1.
struct Image {
  Array pixels;
};

// Where images are looked for unless something else is asked for: the first of these that a sample has.
inline constexpr char kImageExtensions[] = "jpg;jpeg;png;webp;ppm;pgm;pbm";

// The arrays of an npz file by their names.
using Arrays = std::map<std::string, Array>;

// One decoded field of a sample: bytes or text, a whole number, a real number, an array, an image, or
// several arrays (which do not fit into a batch: a map function takes what it needs).
using Value = std::variant<std::string, std::int64_t, double, Array, Image, Arrays>;

// One sample as map functions see it. The fields stand in the order of to_tuple (or image, label).
struct Sample {
  std::string key;
  std::string shard;
  std::vector<Value> fields;
  int source = 0;  // in a mixture: the place of its source among all
};

// One field of all samples of a batch. Numbers, arrays and images are stacked in `array`: [N] for numbers
// (int64 or float64), [N, …] for arrays, [N, channels, height, width] for images. Bytes and text are in
// `text`.
struct Column {
  Array array;
  std::vector<std::string> text;
};

// N rows: a block of batch_size() rows for each replica that the stream feeds, but fewer in the last batch of
// a dataset that keeps its remainder.
struct Batch {
  std::vector<Column> columns;  // one for each field, in order
  Array image;                  // the first column of images, else the first array: uint8 [N, C, H, W]
  Array label;                  // the first column of whole numbers, if there is one: int64 [N]
  // After mixup() or cutmix(), and as the last two columns: the label of the image mixed in, int64 [N], and
  // the own image's share, float32 [N]. The loss is own_share · loss(label) + (1 − own_share) ·
  // loss(other).
  Array other_label, own_share;
  Array mask;                     // bool [N]: true for a sample, false for padding (all zeros)
  std::int64_t count = 0;         // samples in this batch, without padding
  std::int64_t global_count = 0;  // samples in this batch on all parts together
  float weight = 1.0F;     // count × parts ÷ global_count: mean over parts of weight × local mean is exact
  std::int64_t index = 0;  // 0 for the first batch of the epoch
  std::vector<std::string> keys;  // of the `count` samples
  std::vector<int> sources;       // of the `count` samples of a mixture, their sources' places; else empty

  std::int64_t size() const { return mask.elements(); }
};

}  // namespace sluice::data
SLUICE_API_END
