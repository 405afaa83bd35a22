#include "sluice/estimate/tpu_slice.h"

#include <algorithm>
#include <bit>

#include "sluice/base/text/join.h"
#include "sluice/base/text/lower_case.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"

namespace sluice::estimate {
namespace {

// Returns first, 2 × first, … up to last, without the sizes that are not offered.
std::vector<int> doubling(int first, int last, std::vector<int> without = {}) {
  std::vector<int> sizes;
  for (int size = first; size <= last; size *= 2) {
    if (std::find(without.begin(), without.end(), size) == without.end()) sizes.push_back(size);
  }
  return sizes;
}

// Returns the chips along each dimension: powers of two, as near to a square or cube as possible, the shorter
// sides first (but 4 chips in three dimensions are 2×2×1).
std::vector<int> bounds_of(int chips, int dimensions) {
  const int k = std::bit_width(static_cast<unsigned>(chips)) - 1;
  if (dimensions == 2) return {1 << (k / 2), 1 << ((k + 1) / 2)};
  if (k == 2) return {2, 2, 1};
  return {1 << (k / 3), 1 << ((k + 1) / 3), 1 << ((k + 2) / 3)};
}

TpuSlice make_slice(const TpuGeneration& generation, int size) {
  TpuSlice slice;
  slice.name = base::str(generation.prefix, "-", size);
  slice.generation = &generation;
  slice.chips = generation.counts_cores ? size / 2 : size;
  slice.devices = slice.chips * generation.devices_per_chip;
  // Chips that are counted by themselves also come 1 or 8 to a host; several hosts have 4 each.
  const bool one_host = slice.chips <= (generation.counts_cores ? 4 : 8);
  slice.hosts = one_host ? 1 : slice.chips / 4;
  slice.bounds = bounds_of(slice.chips, generation.dimensions);
  slice.topology = base::str(generation.name, ":", base::join(slice.bounds, "x"));
  // Without this libtpu shows the two cores of a v4 chip as two devices, but no slice of today runs them so.
  if (generation.name == "v4") slice.options["chip_config_name"] = std::string("megacore");
  if (one_host && slice.chips == 8) slice.options["chips_per_host_bounds"] = std::vector<int64_t>{2, 4, 1};
  return slice;
}

tl::unexpected<Error> unknown(const std::string& name) {
  const std::string near = base::nearest(name, tpu_slice_names());
  std::vector<std::string> patterns;
  for (const TpuGeneration& generation : tpu_generations()) {
    patterns.push_back(base::str(generation.prefix, "-", generation.sizes.front(), " to ", generation.prefix,
                                 "-", generation.sizes.back()));
  }
  return base::fail(Code::kInvalidArgument, "unknown TPU slice '", name, "'",
                    near.empty() ? "" : base::str("; did you mean ", near, "?"),
                    " Known: ", base::join(patterns, ", "));
}

}  // namespace

const std::vector<TpuGeneration>& tpu_generations() {
  static const auto& all = *new std::vector<TpuGeneration>{
      {"v2", "v2", true, 2, 2, 16, 46, 700, 1.13, 0.34, doubling(8, 512, {16, 64}), "tpu-ubuntu2204-base",
       248},
      {"v3", "v3", true, 2, 2, 32, 123, 900, 2.00, 0.51, doubling(8, 2048, {16}), "tpu-ubuntu2204-base", 328},
      {"v4", "v4", true, 3, 1, 32, 275, 1200, 3.22, 0.92, doubling(8, 4096), "tpu-ubuntu2204-base", 300},
      {"v5e", "v5litepod", false, 2, 1, 16, 197, 819, 1.20, 0.245, doubling(1, 256, {2}),
       "v2-alpha-tpuv5-lite", 200},
      {"v5p", "v5p", true, 3, 1, 95, 459, 2765, 4.20, 0.84, doubling(8, 4096), "v2-alpha-tpuv5", 600},
      {"v6e", "v6e", false, 2, 1, 32, 918, 1638, 2.70, 0.54, doubling(1, 256, {2}), "v2-alpha-tpuv6e", 448},
      {"tpu7x", "tpu7x", true, 3, 2, 192, 2307, 7380, 0, 0, doubling(8, 4096), "", 600},
  };
  return all;
}

base::Result<TpuSlice> find_tpu_slice(const std::string& name) {
  const std::string text = base::lower_case(base::trim(name));
  const size_t dash = text.rfind('-');
  if (dash == std::string::npos) return unknown(name);
  const std::string prefix = text.substr(0, dash), number = text.substr(dash + 1);
  for (const TpuGeneration& generation : tpu_generations()) {
    if (prefix != generation.prefix && prefix != generation.name) continue;
    for (const int size : generation.sizes) {
      if (number == std::to_string(size)) return make_slice(generation, size);
    }
    return base::fail(Code::kInvalidArgument, "there is no TPU slice '", name, "': ", generation.prefix,
                      "-N counts ", generation.counts_cores ? "cores, two a chip" : "chips",
                      ", and N is one of ", base::join(generation.sizes, ", "));
  }
  return unknown(name);
}

base::Result<TpuSlice> find_tpu_slices(const std::string& name) {
  const size_t star = name.find('*');
  if (star == std::string::npos) return find_tpu_slice(name);
  constexpr int kMaxSlices = 256;
  const auto count = base::number_of<int>(base::trim(std::string_view(name).substr(0, star)));
  if (!count || *count < 2 || *count > kMaxSlices)
    return base::fail(Code::kInvalidArgument, "the slices '", name, "': expected a number from 2 to ",
                      kMaxSlices, " before the *, as in 2*v5p-32");
  SLUICE_TRY(TpuSlice slice, find_tpu_slice(name.substr(star + 1)));
  slice.name = base::str(*count, '*', slice.name);
  slice.slices = *count;
  slice.chips *= *count;
  slice.devices *= *count;
  slice.hosts *= *count;
  slice.options["num_slices"] = int64_t{*count};
  return slice;
}

std::vector<std::string> tpu_slice_names() {
  std::vector<std::string> names;
  for (const TpuGeneration& generation : tpu_generations()) {
    for (const int size : generation.sizes) names.push_back(base::str(generation.prefix, "-", size));
  }
  return names;
}

}  // namespace sluice::estimate
