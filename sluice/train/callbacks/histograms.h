// Histograms of the weights during a training.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/base/export.h"
#include "sluice/train/callback.h"

SLUICE_API_BEGIN

namespace sluice::train {

// Sends each trained parameter to TensorBoard's pages HISTOGRAMS and DISTRIBUTIONS, as weights/NAME, before
// the first step and at each test and checkpoint, where the weights are read anyway. With an average of the
// weights it sends the trained weights, not the average.
class Histograms : public Callback {
 public:
  std::string name() const override { return "histograms"; }
  void begin(Run& run) override;
  void after_reading(Run& run) override;

 private:
  int64_t step_ = -1;  // the step of the last histograms
};

}  // namespace sluice::train

SLUICE_API_END
