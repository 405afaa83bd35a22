// The arithmetic of `sluice compile` and `sluice estimate`: bounds, costs, the largest batch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "sluice/base/result.h"
#include "sluice/estimate/tpu_slice.h"
#include "sluice/pjrt/program/topology.h"

namespace sluice::estimate {

// The least time of one step, from the compiler's counts at the chip's published peaks. It leaves out
// waiting, exchange between replicas, and that no program reaches a peak. The bound by FLOPs is strict; the
// compiler's bytes also count values that never leave the chip, so the bound by bytes may be somewhat high.
struct StepBound {
  double flops_seconds = 0;     // FLOPs over the peak of products of bf16 (f32 ones run as such by default)
  double bytes_seconds = 0;     // bytes over the memory's bandwidth
  double exchange_seconds = 0;  // over a mesh: what must cross a chip's links over their speed
  double seconds() const;
  const char* limit() const;  // "FLOPs", "memory" or "links"
};
StepBound step_bound(const TpuSlice& slice, const pjrt::ProgramCost& cost);

// US dollars for a chip-hour, by generation ("v3", "v5e").
struct Price {
  double on_demand = 0, spot = 0;  // 0: not known
};
struct Prices {
  std::string date;
  std::map<std::string, Price> of;
};
Prices list_prices();
// Returns the list prices with replacements from a TOML file:
//   date = "2026-11-02, my contract"
//   [v3]
//   on_demand = 1.80
//   spot = 0.40
// kInvalidArgument for an unknown key, a price below 0 or a file without a date.
base::Result<Prices> read_prices(const std::string& path);

// The least cost of `steps` steps that take `step_seconds` each.
struct EpochCost {
  double hours = 0;
  std::optional<double> on_demand, spot;  // US dollars
};
EpochCost epoch_cost(const TpuSlice& slice, const Prices& prices, double step_seconds, int64_t steps);
// Returns the steps of one pass over `samples`; the last may be smaller. `batch`: of all devices together.
int64_t steps_of_epoch(int64_t batch, int64_t samples);

// Whether a batch fits on a device, and the bytes that it needs and may use (0: not known).
struct BatchFit {
  bool fits = false;
  double needed = 0, available = 0;
};
// Returns the largest multiple of `multiple` up to `limit` that fits, or 0 if no batch fits; begins at
// `start`. Assumes that memory grows with the batch. Compiling is expensive, so the memory of two batches
// predicts the next one to try.
base::Result<int64_t> largest_batch(const std::function<base::Result<BatchFit>(int64_t)>& try_batch,
                                    int64_t start, int64_t multiple, int64_t limit);

// Return texts such as "12.3 GiB" and "1.20 ms".
std::string in_gib(double bytes);
std::string in_time(double seconds);

}  // namespace sluice::estimate
