// What compiling a program for TPU slices told, as tables for people and as JSON. Every figure says where it
// is from: compiled (by libtpu, for one device), measured (on this machine), bound (published peaks)
// or estimate (from the program's text).
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sluice/estimate/ahead_worker.h"
#include "sluice/estimate/slice_figures.h"
#include "sluice/stablehlo/live_ranges.h"

namespace sluice::estimate {

// A training step as a program, for so many replicas and samples on each.
struct StepText {
  std::string text;
  bool averages = false;  // the mean of the gradients over the replicas is part of it
};
using StepSource = std::function<StepText(int64_t batch, int replicas)>;

struct SliceResult {
  TpuSlice slice;
  int64_t batch = 0;  // on each device
  bool averages = false;
  std::string error;  // why there is no report; "": there is
  AheadReport report;
  std::optional<stablehlo::MemoryEstimate> estimate;  // when it does not fit and Sluice wrote the program
  std::optional<int64_t> max_batch;                   // when it was looked for; 0: none fits
  // At the largest batch, when that was found and the batch asked for does not fit.
  std::optional<pjrt::AheadProgram> at_largest;
};

struct SliceOptions {
  int64_t batch = 128;
  bool max_batch = false;
  int64_t multiple = 8, limit = int64_t{1} << 24;  // of the largest batch
  size_t largest = 8;                              // tensors listed when a program does not fit
  double deadline_seconds = 3600;
  std::vector<std::string> worker;  // command line of compile_in_worker
};

// Compiles the step for one slice. Fails only when no slice could be compiled for (libtpu is missing); what
// is wrong with this one stands in the result.
base::Result<SliceResult> compile_for_slice(const TpuSlice& slice, const StepSource& source,
                                            const SliceOptions& options);

// Both print `what` ("resnet50, batch 128 a device, f32") over the table.
void print_compiled(const std::string& what, const std::vector<SliceResult>& results);
nlohmann::json compiled_json(const SliceResult& result);

// What a pass over `samples`, or `steps` when they are given, costs at least, beside what fits.
struct EstimateOptions {
  Prices prices;
  int64_t samples = 0;
  int64_t steps = 0;
};
void print_estimate(const std::string& what, const std::vector<SliceResult>& results,
                    const EstimateOptions& options);
nlohmann::json estimate_json(const SliceResult& result, const EstimateOptions& options);

}  // namespace sluice::estimate
