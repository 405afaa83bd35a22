// The results of compiling a program for TPU slices, as tables for people and as JSON. Every figure names its
// origin: compiled (by libtpu, for one device), measured (on this machine), bound (published peaks) or
// estimate (from the program's text).
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sluice/estimate/ahead_worker.h"
#include "sluice/estimate/mesh_report.h"
#include "sluice/estimate/slice_figures.h"
#include "sluice/stablehlo/live_ranges.h"

namespace sluice::estimate {

// A training step as a program, for a batch on each device of a slice. A text with a mesh (partitions.h) is
// one program of all devices.
struct StepText {
  std::string text;
  bool averages = false;  // it includes the mean of the gradients over the replicas
  // The other programs of a run up to this step, such as its first step.
  std::vector<std::string> others = {};
  std::vector<std::string> arguments = {};  // device::Ahead::arguments; empty: not known
  double flops = 0;                         // device::Ahead::flops; 0: not known
};
using StepSource = std::function<StepText(int64_t batch, const TpuSlice& slice)>;

struct SliceResult {
  TpuSlice slice;
  int64_t batch = 0;  // on each device
  bool averages = false;
  std::string error;  // why there is no report; empty if there is one
  AheadReport report;
  std::optional<stablehlo::MemoryEstimate> estimate;  // if it does not fit and Sluice wrote the program
  std::optional<int64_t> max_batch;                   // if it was looked for; 0: no batch fits
  // The program at the largest batch, if that was found and the requested batch does not fit.
  std::optional<pjrt::AheadProgram> at_largest;
  // If the program lies over a mesh: the mesh, and what lies and is exchanged where if it fits.
  Mesh mesh;
  std::optional<MeshReport> over_mesh;
  std::vector<std::string> cached;  // names of the entries that `SliceOptions::cache` has got
};

struct SliceOptions {
  int64_t batch = 128;
  bool max_batch = false;
  int64_t multiple = 8, limit = int64_t{1} << 24;  // for the largest batch
  size_t largest = 8;                              // tensors listed if a program does not fit
  double deadline_seconds = 3600;
  std::vector<std::string> worker;  // command line of compile_in_worker
  // A folder that gets the compiled programs of the step and of `others`, for runs on such a slice; "": none.
  std::string cache;
};

// Compiles the step for one slice. Fails only if no slice could be compiled for (libtpu is missing); an error
// of this slice is in the result.
base::Result<SliceResult> compile_for_slice(const TpuSlice& slice, const StepSource& source,
                                            const SliceOptions& options);
// Compiles it for meshes of data and fsdp, from the whole model on each device to a part of 1/devices, and
// returns the first that fits: exchanges grow with fsdp, and the rest of a step stays. Returns the last if
// none fits.
base::Result<SliceResult> compile_over_a_mesh(const TpuSlice& slice,
                                              const std::function<StepSource(const Mesh&)>& source,
                                              const SliceOptions& options);

// Both print `what` ("resnet50, batch 128 a device, f32") above the table.
void print_compiled(const std::string& what, const std::vector<SliceResult>& results);
nlohmann::json compiled_json(const SliceResult& result);

// The options of the least cost of a pass over `samples`, or of `steps` if they are given.
struct EstimateOptions {
  Prices prices;
  int64_t samples = 0;
  int64_t steps = 0;
};
void print_estimate(const std::string& what, const std::vector<SliceResult>& results,
                    const EstimateOptions& options);
nlohmann::json estimate_json(const SliceResult& result, const EstimateOptions& options);

}  // namespace sluice::estimate
