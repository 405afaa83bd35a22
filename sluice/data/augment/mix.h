// Mixing the images of a batch: mixup and CutMix.
#pragma once

#include <cstdint>

#include "sluice/base/random.h"
#include "sluice/base/result.h"
#include "sluice/data/batch.h"

namespace sluice::data {

// The parameters of the Beta(alpha, alpha) distributions from which the share of a row's own image is drawn;
// 0: off. With both, each row draws which of them it gets.
struct MixPlan {
  double mixup = 0, cutmix = 0;

  bool wanted() const { return mixup > 0 || cutmix > 0; }
};

// Mixes each sample's image with the image of the sample before it in the batch (the first with the last
// one), in place, and adds the columns Batch::other_label and Batch::own_share. Rows of padding stay as they
// are. The draws depend on seed, epoch and the row's own sample. Images are [N, C, H, W], uint8 (rounded to
// whole levels) or float32.
base::Status mix_rows(Batch& batch, const MixPlan& plan, std::uint64_t seed, std::int64_t epoch);

// Draws from the Beta(alpha, alpha) distribution.
double draw_beta(double alpha, base::Random& random);

}  // namespace sluice::data
