#include "sluice/train/run/run_plan.h"

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/device/sharding/shard.h"

namespace sluice::train {
namespace run_plan_detail {

// Devices of the axes data and fsdp get parts of a batch.
void check_divided(const std::string& flag, int64_t rows, const Mesh& mesh) {
  const int64_t data = mesh.size("data"), fsdp = mesh.size("fsdp"), parts = data * fsdp;
  if (rows % parts == 0) return;
  const int64_t below = rows / parts * parts;
  throw_error(Code::kInvalidArgument,
              base::str(flag, " ", rows, " is not a multiple of data=", data, " × fsdp=", fsdp, " = ", parts,
                        " of the mesh ", mesh.str(), ": choose ",
                        below > 0 ? base::str(below, " or ") : std::string(), below + parts));
}

// Devices of the axis `sequence` get parts of each row.
void check_lengths(const TrainOptions& options, const Mesh& mesh) {
  const int64_t parts = mesh.size("sequence");
  if (parts == 1) return;
  if (!is_language(options.task) && options.model != "transformer")
    throw_error(Code::kInvalidArgument,
                base::str("--mesh ", mesh.str(), ": sequence is for language models and transformers, and ",
                          options.model, " has no sequences; give these devices to data or fsdp"));
  const auto check = [&](const char* flag, int64_t length) {
    if (length % parts == 0) return;
    const int64_t below = length / parts * parts;
    throw_error(
        Code::kInvalidArgument,
        base::str(flag, ' ', length, " is not a multiple of sequence=", parts, " of the mesh ", mesh.str(),
                  ": choose ", below > 0 ? base::str(below, " or ") : std::string(), below + parts));
  };
  check("--length", options.length);
  for (const auto& shape : options.shapes) check("--shapes with rows of tokens", shape.length);
}

}  // namespace run_plan_detail

void check_rows(const TrainOptions& options, const Mesh& mesh) {
  using run_plan_detail::check_divided;
  if (mesh.empty()) return;
  run_plan_detail::check_lengths(options, mesh);
  if (!options.shapes.empty()) {
    for (const auto& shape : options.shapes) check_divided("--shapes with rows", shape.rows, mesh);
  } else if (options.global_batch_size > 0) {
    check_divided("--global-batch-size / --accumulate =", rows_per_replica(options, /*replicas=*/1), mesh);
  } else {
    check_divided("--batch-size", options.batch_size, mesh);
  }
  if (options.test_batch_size > 0) check_divided("--test-batch-size", options.test_batch_size, mesh);
}

bool recomputes(const TrainOptions& options, const Mesh& mesh) {
  const bool has_layers = is_language(options.task) || options.model == "transformer";
  return options.recompute.value_or(has_layers && mesh.size("fsdp") > 1);
}

int64_t rows_of_part(const char* flag, int64_t size) {
  if (!is_initialized() || mesh().empty()) return size;
  const int parts = batch_parts();
  if (size % parts != 0)
    throw_error(
        Code::kInvalidArgument,
        base::str(flag, ' ', size, ": with a mesh this is the whole batch, which the processes read in ",
                  parts, " equal parts: expected a multiple of ", parts));
  return size / parts;
}

int64_t rows_per_replica(const TrainOptions& options, int replicas) {
  if (options.global_batch_size == 0) return rows_of_part("--batch-size", options.batch_size);
  const int64_t parts = replicas * options.accumulate;
  if (options.global_batch_size % parts != 0)
    throw_error(Code::kInvalidArgument,
                base::str("--global-batch-size ", options.global_batch_size, " is not a multiple of ",
                          replicas, " replicas × accumulate ", options.accumulate, " = ", parts));
  return options.global_batch_size / parts;
}

RunPlan plan_run(const Input& train, const TrainOptions& options) {
  RunPlan plan{.length = run_length(train, options), .schedule = {}};
  const RunLength& length = plan.length;
  if (length.max_steps == 0)
    throw_error(Code::kInvalidArgument,
                base::str("no epoch of the training set has a step: its rows fill no ",
                          "batch; choose a smaller --batch-size"));
  const double epoch = length.steps_per_epoch;
  const int64_t all = length.steps;
  // A max_steps from max_tokens is exact, even if epochs differ in their number of steps from the first one.
  if (options.max_steps > all && options.max_tokens == 0)
    throw_error(Code::kInvalidArgument,
                base::str("--max-steps ", options.max_steps, " has no effect: ", options.epochs,
                          " epochs of ", length.min_steps == length.max_steps ? "" : "up to ",
                          length.max_steps, " steps end before it; choose more --epochs"));
  plan.schedule = {.kind = options.lr_schedule,
                   .lr = options.lr,
                   .warmup_epochs = options.warmup_steps > 0
                                        ? static_cast<double>(options.warmup_steps) / epoch
                                        : options.warmup_epochs,
                   .every_epochs = options.lr_every_epochs,
                   .divisor = options.lr_divisor,
                   .min_lr = options.min_lr,
                   .decay_epochs = options.decay_steps > 0 ? static_cast<double>(options.decay_steps) / epoch
                                                           : options.decay_epochs,
                   .epochs = static_cast<double>(options.max_steps > 0 ? options.max_steps : all) / epoch,
                   .steps_per_epoch = epoch};
  base::value_or_throw(check(plan.schedule));
  return plan;
}

}  // namespace sluice::train
