// Histograms of the weights while they are trained.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/base/export.h"
#include "sluice/train/callback.h"

SLUICE_API_BEGIN

namespace sluice::train {

// TensorBoard's pages HISTOGRAMS and DISTRIBUTIONS get each parameter that is trained, as weights/NAME,
// before the first step and at each test and checkpoint, where the weights are read anyway: those that are
// trained, also with an average of the weights.
class Histograms : public Callback {
 public:
  std::string name() const override { return "histograms"; }
  void begin(Run& run) override;
  void after_reading(Run& run) override;

 private:
  int64_t step_ = -1;  // of the last ones
};

}  // namespace sluice::train

SLUICE_API_END
