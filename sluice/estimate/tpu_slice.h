// TPU slices by their usual names ("v3-32", "v5litepod-16"), and the published figures of their chips.
#pragma once

#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/pjrt/named_value.h"

namespace sluice::estimate {

// One generation of TPUs. Figures are for one chip, from Google's pages on each generation.
struct TpuGeneration {
  std::string name;      // "v3", "v5e"; also libtpu's name for it
  std::string prefix;    // the prefix of a slice's name: "v3", "v5litepod"
  bool counts_cores;     // the number in a slice's name counts cores, two a chip; else chips
  int dimensions;        // dimensions of its torus: 2 or 3
  int devices_per_chip;  // PJRT devices, each with its share of the chip's memory and speed
  double memory_gib;
  double bf16_tflops;           // peak
  double memory_gb_per_second;  // peak
  double on_demand, spot;       // US dollars a chip-hour; 0: no list price
  std::vector<int> sizes;       // the numbers in its slices' names, ascending
  std::string runtime;  // the software version of Cloud TPU nodes; "": only Compute Engine has these chips
  double link_gb_per_second = 0;  // of a chip's links to others, all together, in one direction
};

// The date and place of the prices above.
inline constexpr const char* kPriceDate = "2026, us-central1 list";

const std::vector<TpuGeneration>& tpu_generations();

// A slice: some chips of one generation. The GPUs of gpu_slice.h are described in the same way.
struct TpuSlice {
  std::string name;  // as the Cloud TPU API writes it
  const TpuGeneration* generation = nullptr;
  std::vector<int> bounds;                // chips along each dimension
  int chips = 0, devices = 0, hosts = 0;  // of all slices together
  // More than 1: slices of this kind, which one program spans. They exchange data over the network of the
  // data center; the devices of the first slice have the first numbers, and so on.
  int slices = 1;
  std::string plugin = "tpu";  // whose compiler knows its devices
  std::string topology;        // the plugin's name for the slice: "v3:4x4"
  pjrt::Options options;       // the plugin's options for this topology
};

// Returns the slice of that name in any case; v5e-N is v5litepod-N. kInvalidArgument names the nearest and
// the known ones.
base::Result<TpuSlice> find_tpu_slice(const std::string& name);
// Does so, and takes several slices for one: "2*v5p-32".
base::Result<TpuSlice> find_tpu_slices(const std::string& name);
// Returns all names, generation by generation.
std::vector<std::string> tpu_slice_names();

}  // namespace sluice::estimate
