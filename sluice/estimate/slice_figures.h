// The arithmetic behind `sluice compile` and `sluice estimate`: bounds, costs, the largest batch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "sluice/base/result.h"
#include "sluice/estimate/tpu_slice.h"
#include "sluice/pjrt/topology.h"

namespace sluice::estimate {

// How long one step takes at least: what the compiler counted, at the chip's published peaks. It leaves out
// waiting, exchange between chips, and that no program reaches a peak. The half of the FLOPs is strict; the
// compiler's bytes also count values that never leave the chip, so that half may be somewhat high.
struct StepBound {
  double flops_seconds = 0;  // FLOPs over the peak of products of bf16 (f32 ones run as such by default)
  double bytes_seconds = 0;  // bytes over the memory's bandwidth
  double seconds() const { return flops_seconds > bytes_seconds ? flops_seconds : bytes_seconds; }
  const char* limit() const { return flops_seconds > bytes_seconds ? "FLOPs" : "memory"; }
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
// The list with what a TOML file replaces:
//   date = "2026-11-02, my contract"
//   [v3]
//   on_demand = 1.80
//   spot = 0.40
// kInvalidArgument for a key that is none, a price below 0 or a file without a date.
base::Result<Prices> read_prices(const std::string& path);

// What `steps` steps cost at least when each takes `step_seconds`.
struct EpochCost {
  double hours = 0;
  std::optional<double> on_demand, spot;  // US dollars
};
EpochCost epoch_cost(const TpuSlice& slice, const Prices& prices, double step_seconds, int64_t steps);
// Steps of one pass over `samples`; the last may be a smaller batch.
int64_t steps_of_epoch(const TpuSlice& slice, int64_t batch_of_device, int64_t samples);

// Whether a batch fits on a device, and what it needs and may use, in bytes (0: not known).
struct BatchFit {
  bool fits = false;
  double needed = 0, available = 0;
};
// The largest multiple of `multiple` up to `limit` that fits, 0 when none does; it begins at `start`. Memory
// is taken to grow with the batch. Compiling is dear, so what is known of two batches predicts the next to
// try.
base::Result<int64_t> largest_batch(const std::function<base::Result<BatchFit>(int64_t)>& try_batch,
                                    int64_t start, int64_t multiple, int64_t limit);

// "12.3 GiB", "1.20 ms"
std::string in_gib(double bytes);
std::string in_time(double seconds);

}  // namespace sluice::estimate
