// The handwritten digits of scikit-learn (1,797 images of 8×8) as shards: real images without a download.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/data/tools/shard_set.h"

namespace sluice::data {

struct Digit {
  std::vector<std::uint8_t> values;  // 64, each 0 … 16, row by row
  std::int64_t label = 0;
};

// Parses lines of 65 comma-separated whole numbers: 64 values of 0 … 16, then the digit.
base::Result<std::vector<Digit>> parse_digits(std::string_view csv);

struct DigitsOptions {
  std::string csv;  // plain or gzip
  std::string folder;
  std::int64_t shard_size = 500;
  std::uint64_t seed = 0;   // for the split and the order
  double test_share = 0.2;  // of each class
  std::int64_t side = 32;   // side of the written images, in pixels
  bool overwrite = false;
};

struct DigitsReport {
  ShardReport train, test;
};

// Writes FOLDER/train-*.tar and FOLDER/test-*.tar with grey PNG images, smoothly enlarged, and `cls`. Each
// class is split by the seed; a sample's key is its line in the file, so that both sets can be checked
// to be disjoint.
base::Result<DigitsReport> pack_digits(const DigitsOptions& options);

}  // namespace sluice::data
