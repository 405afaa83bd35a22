// Chooses the tokens of a row that masked language modelling hides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/text/token_batches.h"

namespace sluice::text {

// Returns the number of predictions for a row with this number of tokens.
std::int64_t predictions_of(const MaskingOptions& options, std::int64_t tokens);

// Draws the tokens to hide, for rows of one length. Threads: one at a time.
class Masking {
 public:
  explicit Masking(const MaskingOptions& options);
  // Hides tokens in `ids`, whose first `tokens` are not padding. `places` and `targets` have `count`
  // elements, in ascending order of the places; elements that are not needed become 0 and -100.
  void draw(std::uint64_t key, std::int64_t tokens, std::int64_t* ids, std::int64_t count,
            std::int64_t* places, std::int64_t* targets);

 private:
  MaskingOptions options_;
  std::vector<std::uint32_t> never_;  // sorted
  std::vector<std::int64_t> choice_;  // the places that may be predicted
};

}  // namespace sluice::text
