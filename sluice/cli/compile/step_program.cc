#include "sluice/cli/compile/step_program.h"

#include <cstdlib>
#include <functional>
#include <optional>

#include "sluice/base/files/file.h"
#include "sluice/base/process.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/bench/cases.h"
#include "sluice/device/program/ahead.h"
#include "sluice/device/start/without_values.h"
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

// XLA's partitioner sums the gradients of a program over a mesh.
estimate::StepText averaged_or_not(std::string text, const Recorded& devices) {
  const bool averages = !devices.mesh.empty() ||
                        (devices.replicas > 1 && text.find("stablehlo.all_reduce") != std::string::npos);
  return {std::move(text), averages};
}

// Records two steps: training repeats the second, while the first may also create state.
estimate::StepText record(const bench::Case& bench, int64_t batch, const Recorded& devices, bool bf16) {
  const Options options = for_recording();
  init(options.xla);
  device::Ahead ahead(devices.replicas, /*explicit_nan=*/false, devices.kind, devices.mesh);
  Session session = start(options);
  const torch::Device device = session.device();
  models::ModelPtr model;
  {
    const WithoutValues scope;  // programs have no values
    model = bench.model();
  }
  session.place(*model);
  session.name(*model);
  const auto optimizer = bench::case_optimizer(bench, *model);
  const int64_t rows = batch * devices.mesh.size("data") * devices.mesh.size("fsdp");
  const at::Tensor input = batch_like(ahead, bench.input(1), rows);
  const at::Tensor target = ahead.input({rows}, at::kLong);
  for (int step = 0; step < 2; ++step) {
    optimizer->zero_grad();
    torch::Tensor loss;
    {
      Autocast autocast(device, bf16);
      loss = bench::case_loss(bench, *model, input, target);
    }
    loss.backward();
    session.step(*optimizer);
  }
  estimate::StepText step = averaged_or_not(ahead.text("step"), devices);
  step.arguments = ahead.arguments("step");
  step.flops = ahead.flops("step");
  return step;
}

}  // namespace

bench::Sizes sizes_of(const StepRecipe& recipe) {
  return {.image_size = image_size_of(recipe), .length = recipe.length, .mlp_of_rows = false};
}

int64_t image_size_of(const StepRecipe& recipe) {
  if (recipe.image_size > 0) return recipe.image_size;
  if (recipe.model == "vit_b_16") return 224;
  return base::starts_with(recipe.model, "resnet") && recipe.model != "resnet18_cifar" ? 224 : 32;
}

namespace {

estimate::StepText record_command(const std::vector<std::string>& command, const Recorded& devices,
                                  double deadline_seconds) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string path = folder.path("step.mlir");
  const auto end = base::value_or_throw(base::run_process(
      command,
      {{"SLUICE_AHEAD", base::str(devices.replicas, ":", devices.kind, ":", devices.mesh.str(), ":", path)},
       {"SLUICE_ESTIMATE", std::nullopt}},
      deadline_seconds));
  if (auto text = base::read_file(path)) {
    estimate::StepText step = averaged_or_not(std::move(*text), devices);
    step.arguments = base::split(base::value_or_throw(base::read_file(path + ".arguments")), '\n');
    step.flops = base::number_of<double>(base::value_or_throw(base::read_file(path + ".flops"))).value_or(0);
    for (int number = 1; base::path_exists(base::str(path, '.', number)); ++number)
      step.others.push_back(base::value_or_throw(base::read_file(base::str(path, '.', number))));
    return step;
  }
  throw_error(Code::kFailedPrecondition,
              base::str(command[0], " ended (", end.timed_out ? "stopped at the deadline" : end.status.text(),
                        ") before the second step of a session on the device xla: ", end.last_words()));
}

}  // namespace

estimate::StepText step_program(const StepRecipe& recipe, int64_t batch, const Recorded& devices) {
  ::unsetenv("SLUICE_MESH");  // the device that only records needs no mesh
  init(for_recording().xla);
  const bench::Case bench = bench::find_case(recipe.model, sizes_of(recipe), recipe.recompute);
  return record(bench, batch, devices, recipe.bf16);
}

estimate::StepText step_of_command(const std::vector<std::string>& command, const Recorded& devices,
                                   double deadline_seconds) {
  return record_command(command, devices, deadline_seconds);
}

}  // namespace sluice::cli
