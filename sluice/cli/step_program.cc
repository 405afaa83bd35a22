#include "sluice/cli/step_program.h"

#include <functional>
#include <optional>

#include "sluice/base/file.h"
#include "sluice/base/process.h"
#include "sluice/base/strings.h"
#include "sluice/cli/bench_model.h"
#include "sluice/device/ahead.h"
#include "sluice/pjrt/machine/choose_plugin.h"
#include "sluice/session/session.h"

namespace sluice::cli {
namespace {

// Returns an input with the shape of a whole batch, given a batch of one.
at::Tensor batch_like(device::Ahead& ahead, const torch::Tensor& one, int64_t batch) {
  std::vector<int64_t> sizes = one.sizes().vec();
  sizes[0] = batch;
  return ahead.input(sizes, one.scalar_type());
}

// Returns options with a plugin that takes no chips, which recording does not need.
Options for_recording() {
  Options options;
  options.xla.plugin = pjrt::plugin_without_chips("");
  return options;
}

// Records two steps: training repeats the second, while the first may also create state.
std::string record(const BenchCase& bench, int64_t batch, int replicas, bool bf16) {
  const Options options = for_recording();
  init(options.xla);
  device::Ahead ahead(replicas);
  Session session = start(options);
  const torch::Device device = session.device();
  const models::ModelPtr model = bench.model();
  model->to(device);
  session.name(*model);
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (bench.adam)
    optimizer = std::make_unique<torch::optim::Adam>(model->parameters(), torch::optim::AdamOptions(1e-3));
  else
    optimizer = std::make_unique<torch::optim::SGD>(model->parameters(),
                                                    torch::optim::SGDOptions(1e-2).momentum(0.9));
  const at::Tensor input = batch_like(ahead, bench.input(1), batch);
  const at::Tensor target = ahead.input({batch}, at::kLong);
  for (int step = 0; step < 2; ++step) {
    optimizer->zero_grad();
    torch::Tensor loss;
    {
      Autocast autocast(device, bf16);
      loss = bench_loss(bench, *model, input, target);
    }
    loss.backward();
    session.step(*optimizer);
  }
  return ahead.text("step");
}

}  // namespace

BenchSizes sizes_of(const StepRecipe& recipe) {
  return {.image_size = image_size_of(recipe), .length = recipe.length, .mlp_of_rows = false};
}

int64_t image_size_of(const StepRecipe& recipe) {
  if (recipe.image_size > 0) return recipe.image_size;
  return base::starts_with(recipe.model, "resnet") && recipe.model != "resnet18_cifar" ? 224 : 32;
}

namespace {

estimate::StepText averaged_or_not(std::string text, int replicas) {
  const bool averages = replicas > 1 && text.find("stablehlo.all_reduce") != std::string::npos;
  return {std::move(text), averages};
}

std::string record_command(const std::vector<std::string>& command, int replicas, double deadline_seconds) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string path = folder.path("step.mlir");
  const auto end = base::value_or_throw(base::run_process(
      command, {{"SLUICE_AHEAD", base::str(replicas, ":", path)}, {"SLUICE_ESTIMATE", std::nullopt}},
      deadline_seconds));
  if (const auto text = base::read_file(path)) return *text;
  throw_error(Code::kFailedPrecondition,
              base::str(command[0], " ended (", end.timed_out ? "stopped at the deadline" : end.status.text(),
                        ") before the second step of a session on the device xla: ", end.last_words()));
}

}  // namespace

estimate::StepText step_program(const StepRecipe& recipe, int64_t batch, int replicas) {
  init(for_recording().xla);
  const BenchCase bench = bench_case(recipe.model, sizes_of(recipe), recipe.recompute);
  return averaged_or_not(record(bench, batch, replicas, recipe.bf16), replicas);
}

estimate::StepText step_of_command(const std::vector<std::string>& command, int replicas,
                                   double deadline_seconds) {
  return averaged_or_not(record_command(command, replicas, deadline_seconds), replicas);
}

}  // namespace sluice::cli
