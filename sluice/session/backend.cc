#include "sluice/session/backend.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/nn/module.h>

#include <algorithm>

#include "sluice/base/clock.h"
#include "sluice/base/error.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/device/capture/capture.h"
#include "sluice/device/program/program.h"
#include "sluice/device/runtime.h"
#include "sluice/device/sharding/shard.h"
#include "sluice/device/start/start_tape.h"
#include "sluice/device/start/without_values.h"

namespace sluice::sessions {

bool Pending::ready() const { return host_.defined() || fetch_.ready(); }

std::vector<at::Tensor> Pending::get() const {
  if (host_.defined()) return {host_};
  return fetch_.get();
}

Pending Pending::first() const {
  Pending value;
  value.host_ = get().front();
  return value;
}

Backend::Backend(const std::string& device, const DeviceOptions& options, const Mesh& mesh)
    : device_(at::kCPU) {
  if (device == "cpu") {
    if (!mesh.empty())
      throw_error(Code::kInvalidArgument,
                  base::str("the device \"cpu\" is LibTorch's own and one device: the "
                            "mesh ",
                            mesh.str(), " needs the device \"xla\""));
    if (options.devices > 1 || !options.device_ids.empty())
      throw_error(Code::kInvalidArgument,
                  "the device \"cpu\" is LibTorch's own and has one replica; several replicas need the "
                  "device \"xla\"");
    return;
  }
  if (device != "xla")
    throw_error(Code::kInvalidArgument, base::str("there is no device \"", device,
                                                  "\": expected \"xla\" or \"cpu\" (the plugin is chosen ",
                                                  "by --plugin or SLUICE_PLUGIN)"));
  if (mesh.empty())
    init(options);
  else
    init(mesh, options);
  device_ = at::Device(at::kXLA, 0);
  local_replicas_ = sluice::replicas();
  first_replica_ = sluice::first_replica();
  process_ = options.process_index;
  processes_ = options.processes;
  one_for_all_ = !sluice::mesh().empty();
  batch_part_ = sluice::batch_part();
  batch_parts_ = sluice::batch_parts();
}

Mesh Backend::mesh() const { return is_xla() ? sluice::mesh() : Mesh(); }

namespace {

// Gives a module on LibTorch's own CPU the values that it lacks.
void give_start_values(torch::nn::Module& module) {
  std::vector<std::pair<std::string, at::Tensor>> missing;
  for (const auto& item : module.named_parameters())
    if (lacks_value(item.value())) missing.emplace_back(item.key(), item.value());
  for (const auto& item : module.named_buffers())
    if (lacks_value(item.value())) missing.emplace_back(item.key(), item.value());
  device::draw_start(missing, at::Device(at::kCPU), [](const at::Tensor& tensor, const at::Tensor& value) {
    if (lacks_value(tensor)) give_value(tensor, value.to(tensor.scalar_type()).contiguous());
  });
}

}  // namespace

void Backend::place(torch::nn::Module& module, const std::vector<ShardRule>& rules) const {
  const std::vector<at::Tensor> parameters = module.parameters();
  const auto is_laid_out = [](const at::Tensor& parameter) { return sluice::is_laid_out(parameter); };
  const bool is_done =
      rules.empty() && std::any_of(parameters.begin(), parameters.end(), is_laid_out);  // by the caller
  const bool lacks_values = std::any_of(parameters.begin(), parameters.end(), lacks_value);
  if ((!mesh().empty() && !is_done) || (is_xla() && lacks_values)) return void(shard(module, rules));
  if (lacks_values) give_start_values(module);
  module.to(device_);
}

void Backend::warn_of_flat_vectors() const {
  const Mesh devices = mesh();
  if (devices.empty() || warned_of_flat_vectors_) return;
  warned_of_flat_vectors_ = true;
  base::warn("an optimizer that evaluates its loss several times (LBFGS) joins all parameters, and its ",
             "history, into vectors that are whole on every device of the mesh ", devices.str(),
             ": more devices do not lessen its memory. Adam's state lies like the parameters");
}

at::Tensor Backend::upload(const std::vector<at::Tensor>& one_per_replica) const {
  return is_xla() ? sluice::upload(one_per_replica) : one_per_replica.front();
}

at::Tensor Backend::upload_equal(const at::Tensor& host) const {
  if (spans_processes()) return shard(host, Layout::replicated(static_cast<size_t>(host.dim())));
  return upload(std::vector<at::Tensor>(static_cast<size_t>(local_replicas_), host));
}

at::Tensor Backend::zeros_like(const at::Tensor& tensor) const {
  if (!is_laid_out(tensor)) return at::zeros_like(tensor);
  const Layout layout = layout_of(tensor);
  std::vector<at::Tensor> blocks;
  if (!device::runtime().ahead)
    for (const device::LocalBlock& block : device::blocks_here(layout, tensor.sizes().vec()))
      blocks.push_back(at::zeros(block.sizes, at::TensorOptions(tensor.scalar_type())));
  return device::from_blocks(layout, tensor.sizes().vec(), tensor.scalar_type(), blocks);
}

device::Blocks Backend::blocks(const at::Tensor& tensor) const {
  if (tensor.is_xla()) return device::blocks_of(tensor);
  const std::vector<int64_t> start(static_cast<size_t>(tensor.dim()), 0);
  return {nullptr, tensor.scalar_type(), tensor.sizes().vec(), {{start, tensor.sizes().vec(), {0}}}};
}

Pending Backend::fetch_block(const at::Tensor& tensor, const device::Blocks& blocks, size_t number) const {
  if (blocks.data == nullptr) return fetch(tensor);
  Pending pending;
  pending.fetch_ = device::fetch_block(blocks, number);
  return pending;
}

Pending Backend::fetch_part(const Pending& block, const device::LocalBlock& part) const {
  Pending pending;
  if (block.host_.defined())
    pending.host_ = device::part_at(block.host_, part).clone();
  else
    pending.fetch_ = device::fetch_part(block.fetch_, part);
  return pending;
}

Pending Backend::fetch(const at::Tensor& tensor) const {
  Pending pending;
  if (tensor.is_xla())
    pending.fetch_ = sluice::fetch(tensor);
  else
    pending.host_ = tensor.detach().clone();
  return pending;
}

void Backend::cut(const char* what) const {
  if (at::autocast::is_autocast_enabled(device_.type())) at::autocast::clear_cache();
  if (is_xla() && counters().pending > 0) sync(what);
}

void Backend::wait() const {
  if (is_xla()) sluice::wait();
}

void Backend::keep_equal(const std::vector<at::Tensor>& parameters) const {
  if (is_xla()) sluice::keep_equal(parameters);
}

void Backend::name(const std::vector<std::pair<std::string, at::Tensor>>& tensors) const {
  if (is_xla()) name_tensors(tensors);
}

void Backend::label(const std::vector<std::pair<std::string, at::Tensor>>& tensors) const {
  if (is_xla()) label_tensors(tensors);
}

void Backend::step(torch::optim::Optimizer& optimizer) const { sluice::step(optimizer); }

int64_t Backend::compiles() const { return is_xla() ? counters().compiles + counters().cache_hits : 0; }

std::shared_ptr<const pjrt::Plugin> Backend::plugin() const {
  return is_xla() && device::runtime().client != nullptr ? device::runtime().client->plugin() : nullptr;
}

DeviceTimes Backend::times() const {
  if (!is_xla()) return {};
  const Counters now = counters();
  return {now.busy_seconds, now.compile_seconds, now.idle_compile_seconds};
}

std::optional<stablehlo::Flops> Backend::flops() const {
  return is_xla() ? std::optional(device::launched_flops()) : std::nullopt;
}

std::function<std::optional<stablehlo::Work>()> Backend::watch_work() const {
  if (!is_xla()) return [] { return std::nullopt; };
  const device::TraceLock lock = device::lock_trace();
  return [before = device::launch_counts()] {
    const device::TraceLock now = device::lock_trace();
    return std::optional(device::work_since(before));
  };
}

void Backend::at_end(std::function<void(double)> call) const {
  if (!is_xla()) return call(base::monotonic_seconds());
  device::at_end_of_launch(std::move(call));
}

std::optional<pjrt::MemoryStats> Backend::memory() const {
  std::optional<pjrt::MemoryStats> fullest;
  if (!is_xla()) return fullest;
  for (const pjrt::Device* device : device::runtime().devices) {
    const auto one = device->memory();
    if (one && (!fullest || one->in_use > fullest->in_use)) fullest = one;
  }
  return fullest;
}

}  // namespace sluice::sessions
