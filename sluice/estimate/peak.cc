#include "sluice/estimate/peak.h"

#include <algorithm>
#include <array>

#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/strings.h"

namespace sluice::estimate {
namespace {

constexpr double kTera = 1e12;

// PJRT's names of TPUs, which differ from Cloud TPU's. The first name of a generation is the compiler's own.
struct TpuKind {
  std::string_view kind, generation;
};
constexpr std::array kTpuKinds = {
    TpuKind{"TPU v2", "v2"},       TpuKind{"TPU v3", "v3"},       TpuKind{"TPU v4", "v4"},
    TpuKind{"TPU v5 lite", "v5e"}, TpuKind{"TPU v5e", "v5e"},     TpuKind{"TPU v5", "v5p"},
    TpuKind{"TPU v5p", "v5p"},     TpuKind{"TPU v6 lite", "v6e"}, TpuKind{"TPU v6e", "v6e"},
    TpuKind{"TPU7x", "tpu7x"},
};

// NVIDIA's data sheets, TFLOP/s of dense products: FP64 (on tensor cores if they have it), TF32 (else FP32),
// BF16 and FP16, FP8. A name is the beginning of PJRT's name, up to a space, a hyphen or the end; the first
// that fits counts.
struct GpuKind {
  std::string_view name;
  double f64, f32, f16, f8;
};
constexpr std::array kGpuKinds = {
    GpuKind{"NVIDIA H200 NVL", 60, 417.5, 835.5, 1670.5},
    GpuKind{"NVIDIA H200", 66.9, 494.7, 989.4, 1978.9},
    GpuKind{"NVIDIA H100 PCIe", 51.2, 378, 756, 1513},
    GpuKind{"NVIDIA H100 NVL", 60, 417.5, 835.5, 1670.5},
    GpuKind{"NVIDIA H100", 66.9, 494.7, 989.4, 1978.9},
    GpuKind{"NVIDIA A100", 19.5, 156, 312, 0},
    GpuKind{"NVIDIA L40S", 0, 183, 362, 733},
    GpuKind{"NVIDIA L4", 0, 60, 121, 242.5},
    GpuKind{"NVIDIA A10", 0, 62.5, 125, 0},
    GpuKind{"Tesla V100", 7.8, 15.7, 125, 0},
    GpuKind{"Tesla T4", 0, 8.1, 65, 0},
};

bool begins_with_word(std::string_view text, std::string_view word) {
  if (!base::starts_with(text, word)) return false;
  return text.size() == word.size() || text[word.size()] == ' ' || text[word.size()] == '-';
}

}  // namespace

Peak Peak::shared_by(int count) const {
  const double share = 1.0 / count;
  return {f64 * share, f32 * share, f16 * share, f8 * share, source};
}

std::string Peak::text() const {
  return base::str(f16 > 0 ? base::unit_text(f16, "FLOP/s bf16") : base::unit_text(f32, "FLOP/s f32"), " (",
                   source, ")");
}

Peak peak_of(const TpuGeneration& generation) {
  const double bf16 = generation.bf16_tflops * kTera / generation.devices_per_chip;
  return {.f32 = bf16, .f16 = bf16, .source = base::str("TPU ", generation.name, ", published")};
}

std::string_view device_kind_of(const TpuGeneration& generation) {
  for (const TpuKind& tpu : kTpuKinds)
    if (tpu.generation == generation.name) return tpu.kind;
  return "";
}

std::optional<Peak> published_peak(std::string_view device_kind) {
  for (const TpuKind& tpu : kTpuKinds) {
    if (tpu.kind != device_kind) continue;
    for (const TpuGeneration& generation : tpu_generations())
      if (generation.name == tpu.generation) return peak_of(generation);
  }
  for (const GpuKind& gpu : kGpuKinds)
    if (begins_with_word(device_kind, gpu.name))
      return Peak{gpu.f64 * kTera, gpu.f32 * kTera, gpu.f16 * kTera, gpu.f8 * kTera,
                  base::str(gpu.name, ", published")};
  return std::nullopt;
}

std::optional<double> seconds_at_peak(const stablehlo::Flops& flops, const Peak& peak) {
  if (!flops.complete()) return std::nullopt;
  double seconds = 0;
  for (const auto& [work, speed] :
       {std::pair{flops.f64, peak.f64}, {flops.f32, peak.f32}, {flops.f16, peak.f16}, {flops.f8, peak.f8}}) {
    if (work <= 0) continue;
    if (speed <= 0) return std::nullopt;
    seconds += work / speed;
  }
  return seconds;
}

}  // namespace sluice::estimate
