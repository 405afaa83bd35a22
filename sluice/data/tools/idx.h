// The IDX files of MNIST and its relatives as shards.
#pragma once

#include <string>
#include <string_view>

#include "sluice/data/array.h"
#include "sluice/data/tools/shard_set.h"

namespace sluice::data {

// Returns the array in an IDX file: two bytes of zero, a byte for the element type, a byte for the number of
// extents, the extents and the elements in big-endian order. Only unsigned bytes are taken.
base::Result<Array> parse_idx(std::string_view bytes);

struct IdxOptions {
  std::string images, labels;  // plain or gzip: uint8 [N, height, width] and uint8 [N]
  ShardOptions shards;
  bool shuffle = true;
  std::uint64_t seed = 0;
};

// Writes grey PNG images and `cls`; a sample's key is its index in the files.
base::Result<ShardReport> pack_idx(const IdxOptions& options);

}  // namespace sluice::data
