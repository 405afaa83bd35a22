// The values, samples and batches that a dataset hands out.
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

// The extensions of images that are decoded. An image's format is known by its first bytes.
inline constexpr char kImageExtensions[] = "jpg;jpeg;png;webp;ppm;pgm;pbm;gif;bmp;tif;tiff;avif";

// A decoded image: [height, width, channels], uint8 in 0…255 or float32 in 0…1.
struct Image {
  Array pixels;
};

// The arrays of an npz file by their names, or the arrays "samples" and "rate" of an audio file.
using Arrays = std::map<std::string, Array>;

// One decoded field of a sample: bytes or text, a whole number, a real number, an array, an image, or several
// arrays (which do not fit into a batch: a map function must replace them).
using Value = std::variant<std::string, std::int64_t, double, Array, Image, Arrays>;

// One sample as map functions see it. The fields are in the order of to_tuple() (or image, label).
struct Sample {
  std::string key;
  std::string shard;
  std::vector<Value> fields;
  int source = 0;           // in a mixture: the index of its source
  std::int64_t length = 0;  // after bucket_by_length(): its rows without padding
};

// One field of all samples of a batch. Numbers, arrays and images are stacked in `array`: [N] for numbers
// (int64 or float64), [N, …] for arrays, [N, channels, height, width] for images. Bytes and text: `text`.
struct Column {
  Array array;
  std::vector<std::string> text;
};

// A batch of N rows: a block of batch_size() rows for each replica that the stream feeds. The last batch of a
// dataset that keeps its remainder has fewer.
struct Batch {
  std::vector<Column> columns;  // one for each field, in order
  Array image;                  // the first column of images, else the first array: uint8 [N, C, H, W]
  Array label;                  // the first column of whole numbers, if there is one: int64 [N]
  // Set by mixup() and cutmix(), also as the last two columns: the label of the image mixed in, int64 [N],
  // and the share of the row's own image, float32 [N]. The loss is own_share · loss(label) + (1 − own_share)
  // · loss(other_label).
  Array other_label, own_share;
  // Set by bucket_by_length(), also as the last column: the rows of each sample without padding, int64 [N].
  Array lengths;
  Array mask;                     // bool [N]: true for a sample, false for padding (all zeros)
  std::int64_t count = 0;         // samples in this batch, without padding
  std::int64_t global_count = 0;  // samples in this batch on all parts together
  float weight = 1.0F;     // count × parts ÷ global_count: mean over parts of weight × local mean is exact
  std::int64_t index = 0;  // 0 for the first batch of the epoch
  std::vector<std::string> keys;  // of the `count` samples
  std::vector<int> sources;       // the sources of the `count` samples of a mixture, as indices; else empty

  std::int64_t size() const { return mask.elements(); }
};

}  // namespace sluice::data
SLUICE_API_END
