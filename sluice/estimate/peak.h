// The peak speed of a device, and the time of a computation at the peak.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sluice/estimate/tpu_slice.h"
#include "sluice/stablehlo/flops.h"

namespace sluice::estimate {

// FLOP/s of one device in products and convolutions, by the element type that is multiplied, as XLA makes
// them by default. 0: not known.
struct Peak {
  double f64 = 0, f32 = 0, f16 = 0, f8 = 0;
  std::string source = {};  // "TPU v5e, published"; "measured on 2 threads"

  // Returns the peak of a part of the device that `count` parts share.
  Peak shared_by(int count) const;
  // Returns "197 TFLOP/s bf16 (TPU v5e, published)"; f32 if bf16 is not known.
  std::string text() const;
};

// Returns the peak of one PJRT device of a chip. TPUs multiply f32 as bf16 by default.
Peak peak_of(const TpuGeneration& generation);
// Returns the peak by PJRT's name of a TPU or GPU ("TPU v5 lite", "NVIDIA H100 80GB HBM3"), from the makers'
// published figures, without sparsity; f32 counts as TF32 if a GPU has it. Nothing for other names.
std::optional<Peak> published_peak(std::string_view device_kind);

// Returns PJRT's name for the devices of a chip: "TPU v5 lite"; "" for a chip that is no TPU.
std::string_view device_kind_of(const TpuGeneration& generation);

// Returns the time at the peak; nothing if a peak that it needs is not known, or not all FLOPs are.
std::optional<double> seconds_at_peak(const stablehlo::Flops& flops, const Peak& peak);

}  // namespace sluice::estimate
