#include "sluice/estimate/slice_report.h"

#include <algorithm>
#include <cstdio>

#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/table.h"
#include "sluice/stablehlo/location.h"
#include "sluice/stablehlo/partitions.h"

namespace sluice::estimate {
namespace {

base::Result<AheadReport> compile_batch(const TpuSlice& slice, const std::string& text, int64_t batch,
                                        const SliceOptions& options) {
  const bool partitions = stablehlo::read_layouts(text).has_value();
  auto report = compile_in_worker(
      options.worker, {slice, text, slice.devices, options.deadline_seconds, options.cache, partitions});
  if (report) {
    base::info(slice.name, ", batch ", batch, ": ",
               report->fits ? base::str("compiled in ", in_time(report->program.seconds)) : "does not fit");
  }
  return report;
}

BatchFit fit_of(const AheadReport& report) {
  if (report.fits)
    return {true, static_cast<double>(report.program.total_memory), static_cast<double>(report.memory_limit)};
  if (report.shortage) return {false, report.shortage->needed, report.shortage->available};
  return {};
}

// Fills in what a program over a mesh keeps and exchanges. A mesh of other devices than the slice's is an
// error.
base::Status add_mesh(const StepText& step, SliceResult& result) {
  const auto laid_out = stablehlo::read_layouts(step.text);
  if (!laid_out) return {};
  result.mesh = laid_out->mesh;
  if (!result.report.fits) return {};
  SLUICE_TRY(result.over_mesh, mesh_report(result.slice, *laid_out, step.arguments, result.report.program));
  return {};
}

base::Status check_mesh(const TpuSlice& slice, const std::string& text) {
  const auto laid_out = stablehlo::read_layouts(text);
  if (!laid_out && slice.slices > 1)
    return base::fail(Code::kInvalidArgument, "a program over ", slice.slices,
                      " slices needs a mesh, whose first axis spans them: --mesh data=", slice.slices,
                      ",fsdp=-1");
  if (!laid_out || laid_out->mesh.devices() == slice.devices) return {};
  return base::fail(Code::kInvalidArgument, "the program lies over the mesh ", laid_out->mesh.str(), " of ",
                    laid_out->mesh.devices(), " devices, and ", slice.name, " has ", slice.devices);
}

}  // namespace

base::Result<SliceResult> compile_for_slice(const TpuSlice& slice, const StepSource& source,
                                            const SliceOptions& options) {
  SliceResult result;
  result.slice = slice;
  result.batch = options.batch;
  const StepText step = source(options.batch, slice);
  result.averages = step.averages;
  if (auto status = check_mesh(slice, step.text); !status) {
    result.error = status.error().what();
    return result;
  }
  auto report = compile_batch(slice, step.text, options.batch, options);
  if (!report) {
    if (report.error().code() == Code::kNotFound) return tl::unexpected<Error>(report.error());
    result.error = report.error().what();
    return result;
  }
  result.report = std::move(*report);
  // The compiler counts the body of a loop once.
  double& flops = result.report.program.cost.flops;
  flops = std::max(flops, step.flops);
  if (auto status = add_mesh(step, result); !status) {
    result.error = status.error().what();
    return result;
  }
  if (!result.report.cached.empty()) result.cached.push_back(result.report.cached);
  for (const std::string& text : options.cache.empty() ? std::vector<std::string>() : step.others) {
    const auto other = compile_batch(slice, text, options.batch, options);
    if (!other) {
      result.error = other.error().what();
      return result;
    }
    if (!other->cached.empty()) result.cached.push_back(other->cached);
  }
  // Programs that Sluice did not print have no list of values; the compiler's answer then stands without it.
  if (!result.report.fits && result.mesh.empty()) {
    if (auto estimate = stablehlo::estimate_memory(step.text, options.largest))
      result.estimate = std::move(*estimate);
  }
  if (!options.max_batch) return result;
  int64_t best = 0;
  std::optional<pjrt::AheadProgram> at_best;
  const auto largest = largest_batch(
      [&](int64_t batch) -> base::Result<BatchFit> {
        if (batch == options.batch) return fit_of(result.report);
        const StepText step = source(batch, slice);
        SLUICE_TRY(const AheadReport tried, compile_batch(slice, step.text, batch, options));
        if (tried.fits && batch > best) {
          best = batch;
          at_best = tried.program;
          at_best->cost.flops = std::max(at_best->cost.flops, step.flops);
        }
        return fit_of(tried);
      },
      options.batch, options.multiple, options.limit);
  if (!largest) {
    result.error = largest.error().what();
    return result;
  }
  result.max_batch = *largest;
  if (!result.report.fits) result.at_largest = std::move(at_best);
  return result;
}

base::Result<SliceResult> compile_over_a_mesh(const TpuSlice& slice,
                                              const std::function<StepSource(const Mesh&)>& source,
                                              const SliceOptions& options) {
  for (int64_t fsdp = 1;; fsdp *= 2) {
    std::vector<MeshAxis> axes;
    if (fsdp < slice.devices) axes.push_back({"data", slice.devices / fsdp});
    if (fsdp > 1) axes.push_back({"fsdp", fsdp});
    SLUICE_TRY(SliceResult result, compile_for_slice(slice, source(Mesh(axes)), options));
    // Weights are not gathered from other slices.
    if (!result.error.empty() || result.report.fits || 2 * fsdp > slice.devices / slice.slices) return result;
  }
}

namespace {

using Row = base::TableRow;

std::string collectives_text(const SliceResult& result) {
  std::vector<std::string> parts;
  for (const pjrt::Collective& c : result.report.program.collectives)
    parts.push_back(
        base::str(c.count, " ", c.kind, ", ", base::unit_text(static_cast<double>(c.bytes), "B")));
  return parts.empty() ? "none" : base::join(parts, "; ");
}

// A GPU's compiler reports no costs of a program without a GPU.
std::string cost_text(double amount, const char* unit) {
  return amount > 0 ? base::unit_text(amount, unit) : "not told";
}

std::string fits_text(const SliceResult& result) {
  if (!result.error.empty()) return "error";
  if (result.report.fits) return "yes";
  if (!result.report.shortage) return "no";
  return base::str("no, needs ", in_gib(result.report.shortage->needed));
}

std::string memory_text(const SliceResult& result) {
  const double limit = static_cast<double>(result.report.memory_limit);
  if (!result.report.fits) return base::str("of ", in_gib(limit));
  return base::str(in_gib(static_cast<double>(result.report.program.total_memory)), " of ", in_gib(limit));
}

std::string max_batch_text(const SliceResult& result) {
  if (!result.max_batch) return "";
  return *result.max_batch == 0 ? "none" : std::to_string(*result.max_batch);
}

// Prints what fills the memory if a program does not fit.
void print_details(const std::vector<SliceResult>& results) {
  for (const SliceResult& result : results) {
    if (!result.estimate) {
      if (result.error.empty() && !result.report.fits && !result.mesh.empty()) {
        std::printf("\n%s does not fit over %s.\n", result.slice.name.c_str(), result.mesh.str().c_str());
      } else if (result.error.empty() && !result.report.fits) {
        std::printf(
            "\n%s does not fit. Its largest values are not listed: the list is made for programs that Sluice "
            "wrote (SLUICE_DUMP, sluice compile).\n",
            result.slice.name.c_str());
      }
      continue;
    }
    const stablehlo::MemoryEstimate& estimate = *result.estimate;
    std::printf(
        "\n%s does not fit. Largest values at the peak, which is in %s (estimate: values alive at once in "
        "the "
        "program's text, %s, nothing fused; the compiler lists none):\n",
        result.slice.name.c_str(),
        estimate.peak_location.empty() ? "the program"
                                       : stablehlo::layer_text(estimate.peak_location).c_str(),
        in_gib(static_cast<double>(estimate.peak_bytes)).c_str());
    std::vector<Row> rows;
    for (const stablehlo::LiveValue& value : estimate.largest) {
      rows.push_back({"", in_gib(static_cast<double>(value.bytes)), value.type, value.operation,
                      stablehlo::layer_text(value.location)});
    }
    base::print_table(rows, "l");
  }
}

void print_largest(const std::vector<LargestBuffer>& largest) {
  if (largest.empty()) return;
  std::printf("  The largest temporary buffers (compiled; some use the same memory one after the other):\n");
  std::vector<base::TableRow> rows;
  for (const LargestBuffer& buffer : largest)
    rows.push_back({"", base::memory_text(static_cast<uint64_t>(buffer.bytes)), buffer.type,
                    buffer.instruction, stablehlo::layer_text(buffer.operation)});
  base::print_table(rows, "l");
}

// Prints what the devices of a mesh keep and exchange.
void print_meshes(const std::vector<SliceResult>& results) {
  for (const SliceResult& result : results) {
    if (!result.over_mesh) continue;
    print_mesh(result.slice.name, *result.over_mesh,
               step_bound(result.slice, result.report.program.cost).seconds());
    print_largest(result.report.largest);
  }
}

nlohmann::json largest_json(const std::vector<LargestBuffer>& largest) {
  nlohmann::json buffers = nlohmann::json::array();
  for (const LargestBuffer& buffer : largest)
    buffers.push_back({{"bytes", buffer.bytes},
                       {"type", buffer.type},
                       {"instruction", buffer.instruction},
                       {"operation", buffer.operation}});
  return buffers;
}

void print_sources(const std::vector<SliceResult>& results, bool bounds) {
  std::printf(
      "\ncompiled: by the compiler of the slice's plugin, for one device; nothing ran on it. measured: on "
      "this machine.\n");
  if (bounds) {
    std::printf(
        "bound: the compiler's FLOPs over the chip's peak in bf16 (f32 products run as bf16 by default), or\n"
        "its bytes (some stay on the chip) over the memory's bandwidth, the larger; exchange and waiting\n"
        "come on top.\n");
  }
  for (const SliceResult& result : results) {
    if (result.averages || !result.mesh.empty() || result.slice.devices == 1 || !result.error.empty())
      continue;
    std::printf(
        "The gradients' mean over the replicas is not part of the program in this version: collectives "
        "are missing.\n");
    break;
  }
}

}  // namespace

void print_compiled(const std::string& what, const std::vector<SliceResult>& results) {
  const bool searched =
      std::any_of(results.begin(), results.end(), [](const auto& r) { return r.max_batch.has_value(); });
  std::printf("%s\n\n", what.c_str());
  std::vector<Row> rows{
      {"slice", "devices", "fits", "memory a device", "FLOPs", "bytes", "collectives", "compiling"},
      {"", "", "compiled", "compiled", "compiled", "compiled", "compiled", "measured"}};
  if (searched) {
    rows[0].push_back("largest batch");
    rows[1].push_back("compiled");
  }
  for (const SliceResult& result : results) {
    const pjrt::AheadProgram& program = result.report.program;
    Row row{result.slice.name, std::to_string(result.slice.devices), fits_text(result)};
    if (!result.error.empty()) {
      rows.push_back(row);
      continue;
    }
    row.push_back(memory_text(result));
    if (result.report.fits) {
      row.insert(row.end(),
                 {cost_text(program.cost.flops, "FLOP"), cost_text(program.cost.bytes_accessed, "B"),
                  collectives_text(result), in_time(program.seconds)});
    } else {
      row.insert(row.end(), 4, "");
    }
    if (searched) row.push_back(max_batch_text(result));
    rows.push_back(row);
  }
  base::print_table(rows, "l");
  print_details(results);
  print_meshes(results);
  print_sources(results, /*bounds=*/false);
}

nlohmann::json compiled_json(const SliceResult& result) {
  using Json = nlohmann::json;
  const TpuSlice& slice = result.slice;
  Json json = {{"slice", slice.name},      {"topology", slice.topology}, {"chips", slice.chips},
               {"devices", slice.devices}, {"hosts", slice.hosts},       {"batch", result.batch}};
  if (!result.error.empty()) {
    json["error"] = result.error;
    return json;
  }
  const AheadReport& report = result.report;
  Json compiled = {
      {"fits", report.fits}, {"memory_limit", report.memory_limit}, {"device_kind", report.device_kind}};
  if (report.shortage) compiled["memory"] = report.shortage->needed;
  if (result.max_batch) compiled["largest_batch"] = *result.max_batch;
  if (report.fits) {
    const pjrt::AheadProgram& program = report.program;
    Json collectives = Json::array();
    for (const pjrt::Collective& c : program.collectives)
      collectives.push_back({{"kind", c.kind}, {"count", c.count}, {"bytes", c.bytes}});
    compiled.update({{"memory", program.total_memory},
                     {"arguments", program.memory.arguments},
                     {"temporary", program.memory.temporary},
                     {"code", program.memory.code},
                     {"flops", program.cost.flops},
                     {"bytes_accessed", program.cost.bytes_accessed},
                     {"collectives", std::move(collectives)},
                     {"averages_gradients", result.averages},
                     {"serialized_bytes", program.serialized_bytes}});
    json["measured"] = {{"compile_seconds", program.seconds}};
  }
  json["compiled"] = std::move(compiled);
  if (!result.mesh.empty()) json["mesh"] = result.mesh.str();
  if (result.over_mesh) {
    json["over_mesh"] = mesh_json(*result.over_mesh);
    json["over_mesh"]["largest_buffers"] = largest_json(report.largest);
  }
  if (!result.cached.empty()) json["cached"] = result.cached;
  if (result.estimate) {
    Json values = Json::array();
    for (const stablehlo::LiveValue& value : result.estimate->largest)
      values.push_back({{"bytes", value.bytes},
                        {"type", value.type},
                        {"operation", value.operation},
                        {"location", value.location}});
    json["estimate"] = {{"peak_bytes", result.estimate->peak_bytes},
                        {"peak_location", result.estimate->peak_location},
                        {"largest", std::move(values)}};
  }
  return json;
}

namespace {

// Returns the number of devices that have rows of the batch of their own.
int64_t batches_of(const SliceResult& result) {
  return result.mesh.empty() ? result.slice.devices : result.mesh.size("data") * result.mesh.size("fsdp");
}

// The subject of the bounds: the requested batch, or the largest that fits instead.
struct Bounded {
  int64_t batch, steps;
  StepBound step;
  EpochCost epoch;
};
std::optional<Bounded> bounded(const SliceResult& result, const EstimateOptions& options) {
  if (!result.error.empty() || (!result.report.fits && !result.at_largest)) return std::nullopt;
  const pjrt::AheadProgram& program = result.report.fits ? result.report.program : *result.at_largest;
  const int64_t batch = result.report.fits ? result.batch : *result.max_batch;
  StepBound step = step_bound(result.slice, program.cost);
  if (result.over_mesh) step.exchange_seconds = result.over_mesh->exchange_seconds();
  const int64_t steps =
      options.steps > 0 ? options.steps : steps_of_epoch(batch * batches_of(result), options.samples);
  return Bounded{batch, steps, step, epoch_cost(result.slice, options.prices, step.seconds(), steps)};
}

std::string dollars(const std::optional<double>& amount) {
  if (!amount) return "–";
  if (*amount > 0 && *amount < 0.01) return "<0.01";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", *amount);
  return text;
}

// Returns the result that costs least; null if none fits or the prices are not known.
const SliceResult* cheapest(const std::vector<SliceResult>& results, const EstimateOptions& options) {
  const SliceResult* found = nullptr;
  double least = 0;
  for (const SliceResult& result : results) {
    const auto bound = bounded(result, options);
    if (!bound || !bound->epoch.on_demand || (found != nullptr && *bound->epoch.on_demand >= least)) continue;
    found = &result;
    least = *bound->epoch.on_demand;
  }
  return found;
}

void print_cheapest(const std::vector<SliceResult>& results, const EstimateOptions& options) {
  const bool meshes =
      std::any_of(results.begin(), results.end(), [](const auto& r) { return !r.mesh.empty(); });
  const SliceResult* const found = meshes ? cheapest(results, options) : nullptr;
  if (found != nullptr)
    std::printf("\nThe cheapest of these that fits: %s over %s, on demand %s (bound).\n",
                found->slice.name.c_str(), found->mesh.str().c_str(),
                dollars(bounded(*found, options)->epoch.on_demand).c_str());
}

}  // namespace

void print_estimate(const std::string& what, const std::vector<SliceResult>& results,
                    const EstimateOptions& options) {
  const bool by_steps = options.steps > 0;
  const std::string unit = by_steps ? base::str(options.steps, " steps") : std::string("epoch");
  std::printf("%s; %s; prices in US dollars, %s\n\n", what.c_str(),
              by_steps ? unit.c_str() : base::str("an epoch of ", options.samples, " samples").c_str(),
              options.prices.date.c_str());
  std::vector<Row> rows{
      {"slice", "chips", "hosts", "fits", "largest batch", "at batch", "step", "limited by", "epoch",
       "on demand", "spot"},
      {"", "", "", "compiled", "compiled", "", "bound", "bound", "bound", "bound", "bound"}};
  for (const SliceResult& result : results) {
    Row row{result.slice.name, std::to_string(result.slice.chips), std::to_string(result.slice.hosts),
            fits_text(result), max_batch_text(result)};
    if (const auto bound = bounded(result, options)) {
      row.insert(row.end(),
                 {bound->batch > 0 ? std::to_string(bound->batch) : "", in_time(bound->step.seconds()),
                  bound->step.limit(), in_time(bound->epoch.hours * 3600), dollars(bound->epoch.on_demand),
                  dollars(bound->epoch.spot)});
    }
    rows.push_back(row);
  }
  base::print_table(rows, "l");
  print_details(results);
  print_meshes(results);
  print_cheapest(results, options);
  print_sources(results, /*bounds=*/true);
}

nlohmann::json estimate_json(const SliceResult& result, const EstimateOptions& options) {
  nlohmann::json json = compiled_json(result);
  const auto bound = bounded(result, options);
  if (!bound) return json;
  json["bound"] = {{"batch", bound->batch},
                   {"steps", bound->steps},
                   {"step_seconds", bound->step.seconds()},
                   {"limited_by", bound->step.limit()},
                   {"flops_seconds", bound->step.flops_seconds},
                   {"bytes_seconds", bound->step.bytes_seconds},
                   {"exchange_seconds", bound->step.exchange_seconds},
                   {"hours", bound->epoch.hours}};
  if (bound->epoch.on_demand) json["bound"]["on_demand"] = *bound->epoch.on_demand;
  if (bound->epoch.spot) json["bound"]["spot"] = *bound->epoch.spot;
  return json;
}

}  // namespace sluice::estimate
