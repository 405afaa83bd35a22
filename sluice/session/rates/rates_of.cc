#include "sluice/session/rates/rates_of.h"

#include <algorithm>

namespace sluice::sessions {

StepRates rates_of(const StepWindow& window, int processes, const std::optional<estimate::Peak>& peak,
                   const std::optional<pjrt::MemoryStats>& memory) {
  StepRates rates;
  if (memory) {
    rates.memory_in_use = memory->in_use;
    rates.memory_peak = memory->peak;
    rates.memory_limit = memory->limit;
  }
  if (window.steps == 0 || window.seconds <= 0) return rates;
  rates.steps = window.steps;
  rates.p50_ms = 1000 * window.p50;
  rates.p95_ms = 1000 * window.p95;
  rates.input_share = std::clamp(window.work.starving / window.seconds, 0.0, 1.0);
  const auto of_all = [&](int64_t count) {
    return count > 0 ? std::optional(static_cast<double>(count) * processes / window.seconds) : std::nullopt;
  };
  rates.examples_per_second = of_all(window.work.examples);
  rates.tokens_per_second = of_all(window.work.tokens);
  if (!window.work.flops || !window.work.flops->complete() || window.work.flops->sum() <= 0) return rates;
  rates.flops_per_step = window.work.flops->sum() / static_cast<double>(window.steps);
  rates.flops_per_second = window.work.flops->sum() / window.seconds;
  if (!peak) return rates;
  const auto share = [&](const stablehlo::Flops& flops) -> std::optional<double> {
    const auto least = estimate::seconds_at_peak(flops, *peak);
    return least ? std::optional(*least / window.seconds) : std::nullopt;
  };
  rates.mfu = share(*window.work.flops);
  if (window.work.flops->causal() > 0) rates.causal_mfu = share(window.work.flops->with_half_of_causal());
  return rates;
}

}  // namespace sluice::sessions
