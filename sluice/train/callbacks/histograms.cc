#include "sluice/train/callbacks/histograms.h"

namespace sluice::train {

void Histograms::begin(Run& run) {
  step_ = -1;
  after_reading(run);
}

void Histograms::after_reading(Run& run) {
  if (step_ == run.place().step) return;
  step_ = run.place().step;
  for (const auto& item : run.module().named_parameters())
    if (item.value().requires_grad()) run.log_histogram("weights/" + item.key(), item.value());
}

}  // namespace sluice::train
