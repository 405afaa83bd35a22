// What masked language modelling hides of a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/text/token_batches.h"

namespace sluice::text {

// Of a row with so many tokens.
std::int64_t predictions_of(const MaskingOptions& options, std::int64_t tokens);

// Draws for rows of one length. Threads: one at a time.
class Masking {
 public:
  explicit Masking(const MaskingOptions& options);
  // Changes `ids`, of which the first `tokens` are no padding. `places` and `targets` have `count` elements,
  // in ascending order of the places; those that are not needed become 0 and -100.
  void draw(std::uint64_t key, std::int64_t tokens, std::int64_t* ids, std::int64_t count,
            std::int64_t* places, std::int64_t* targets);

 private:
  MaskingOptions options_;
  std::vector<std::uint32_t> never_;  // sorted
  std::vector<std::int64_t> choice_;  // places that may be predicted
};

}  // namespace sluice::text
