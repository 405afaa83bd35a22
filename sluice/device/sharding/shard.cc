#include "sluice/device/sharding/shard.h"

#include <unordered_map>

#include "sluice/base/error.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/runtime.h"
#include "sluice/device/sharding/blocks.h"
#include "sluice/device/sharding/gradients.h"
#include "sluice/device/sharding/layouts.h"
#include "sluice/device/sharding/processes.h"
#include "sluice/device/start/start_tape.h"
#include "sluice/device/start/without_values.h"
#include "sluice/device/storage.h"
#include "sluice/device/transfer.h"

namespace sluice {

Mesh mesh() {
  const auto mesh = device::runtime().world.mesh;
  return mesh == nullptr ? Mesh() : *mesh;
}

namespace {

using device::RowPart;
using device::Sameness;

// Does what shard() does, for a host's tensor that was compared already or holds these rows of the value.
at::Tensor lay_out(const at::Tensor& tensor, const Layout& layout, RowPart rows) {
  const Mesh devices = mesh();
  std::vector<int64_t> dims = tensor.sizes().vec();
  if (rows.parts > 1) dims[0] *= rows.parts;
  const std::string misfit = layout.misfit(devices, dims);
  if (!misfit.empty())
    throw_error(Code::kInvalidArgument,
                base::str("sluice::shard: ", misfit,
                          ": lay out another dimension, or pad this one (LayoutDim::padded)"));
  const device::LayoutRef wanted = device::intern_layout(devices, layout);
  // The host's tensor may be written to later, and the device may read its memory in place.
  const at::Tensor host = device::on_device(tensor)
                              ? device::download(tensor, "sluice::shard")
                              : tensor.detach().resolve_conj().resolve_neg().contiguous().clone();
  device::DataPtr data = device::upload_data({host}, wanted, rows);
  if (device::runtime().world.mesh_spans_processes()) data->sameness = Sameness::kGlobal;
  const auto lock = device::lock_trace();
  at::Tensor made = device::make_tensor(std::move(data));
  device::LazyStorage::of(made)->layout = wanted;
  return made;
}

// Returns a host's value on the device. Nobody may write to it any more.
at::Tensor in_blocks(const at::Tensor& host, const Layout& layout) {
  const std::vector<int64_t> sizes = host.sizes().vec();
  std::vector<at::Tensor> blocks;
  for (const device::LocalBlock& block : device::blocks_here(layout, sizes))
    blocks.push_back(device::part_at(host, block).contiguous());
  return device::from_blocks(layout, sizes, host.scalar_type(), blocks);
}

// Makes a value that a program is about to compute, or a value of the host, the tensor's value in this
// layout.
void start_with(const at::Tensor& tensor, const at::Tensor& value, const Layout& layout) {
  const at::Tensor of_type = value.detach().to(tensor.scalar_type());
  if (!device::on_device(of_type)) return give_value(tensor, in_blocks(of_type, layout));
  const at::Tensor own = of_type.contiguous();
  if (const Mesh devices = mesh(); !devices.empty()) {
    const auto lock = device::lock_trace();
    device::LazyStorage::of(own)->layout = device::intern_layout(devices, layout);
  }
  give_value(tensor, own);
  sync("start values");
}

using NamedTensor = std::pair<std::string, at::Tensor>;

// Draws the values of the tensors that lack one. While programs are only compiled, no value is drawn.
bool draw_missing(const std::vector<NamedTensor>& tensors, const std::vector<Layout>& layouts) {
  std::vector<NamedTensor> missing;
  std::unordered_map<const c10::TensorImpl*, const Layout*> layout_of_tensor;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!lacks_value(tensors[i].second)) continue;
    missing.push_back(tensors[i]);
    layout_of_tensor.emplace(tensors[i].second.unsafeGetTensorImpl(), &layouts[i]);
  }
  if (missing.empty()) return false;
  const auto layout_for = [&](const at::Tensor& tensor) -> const Layout& {
    return *layout_of_tensor.at(tensor.unsafeGetTensorImpl());
  };
  if (device::runtime().ahead) {
    for (const auto& [name, tensor] : missing)
      if (lacks_value(tensor))
        give_value(tensor,
                   device::from_blocks(layout_for(tensor), tensor.sizes().vec(), tensor.scalar_type(), {}));
    return true;
  }
  device::draw_start(missing, at::Device(at::kXLA, 0),
                     [&](const at::Tensor& tensor, const at::Tensor& value) {
                       if (lacks_value(tensor)) start_with(tensor, value, layout_for(tensor));
                     });
  return true;
}

// Compares what several processes hold on their hosts.
void check_hosts(const std::string& what, const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
  if (!device::runtime().world.mesh_spans_processes()) return;
  std::vector<std::pair<std::string, at::Tensor>> hosts;
  for (const auto& [name, tensor] : tensors)
    if (tensor.defined() && !device::on_device(tensor) && !lacks_value(tensor))
      hosts.emplace_back(name, tensor.detach());
  device::check_equal_in_processes(what, hosts);
}

}  // namespace

at::Tensor shard(const at::Tensor& tensor, const Layout& layout) {
  check_hosts("sluice::shard", {{"the tensor", tensor}});
  return lay_out(tensor, layout, {});
}

at::Tensor move_beside(const at::Tensor& host, const at::Tensor& parameter) {
  if (!device::on_device(parameter) || device::on_device(host) || host.sizes() != parameter.sizes())
    return host.to(parameter.device());
  const device::LayoutRef wanted = device::layout_to_keep(parameter);
  if (wanted == nullptr) return host.to(parameter.device());
  device::DataPtr data = device::upload_data({host.detach().contiguous().clone()}, wanted);
  const auto lock = device::lock_trace();
  at::Tensor made = device::make_tensor(std::move(data));
  device::LazyStorage::of(made)->layout = wanted;
  return made;
}

int batch_part() {
  const device::World& world = device::runtime().world;
  return world.mesh == nullptr ? world.process_index : static_cast<int>(device::row_part(world).part);
}

int batch_parts() {
  const device::World& world = device::runtime().world;
  return world.mesh == nullptr ? world.processes : static_cast<int>(device::row_part(world).parts);
}

bool lies_over_processes(const at::Tensor& tensor) {
  if (!device::on_device(tensor) || !device::runtime().world.mesh_spans_processes()) return false;
  const auto lock = device::lock_trace();
  return !device::is_all_here(*device::materialize(tensor));
}

at::Tensor shard_batch(const at::Tensor& tensor) {
  if (tensor.dim() == 0)
    throw_error(Code::kInvalidArgument,
                "sluice::shard_batch: expected a tensor whose first dimension is the batch, found a scalar");
  const Layout layout = device::layout_of_batch(mesh(), tensor.sizes());
  // What is on the device is the whole batch already.
  return lay_out(tensor, layout,
                 device::on_device(tensor) ? RowPart() : device::row_part(device::runtime().world));
}

Layout layout_of(const at::Tensor& tensor) {
  if (!device::on_device(tensor))
    throw_error(
        Code::kInvalidArgument,
        base::str("sluice::layout_of: expected a tensor on xla:0, found one on ", tensor.device().str()));
  const auto lock = device::lock_trace();
  return device::whole_or(device::materialize(tensor)->layout, static_cast<size_t>(tensor.dim()));
}

bool is_laid_out(const at::Tensor& tensor) {
  if (!device::on_device(tensor)) return false;
  const auto lock = device::lock_trace();
  return device::LazyStorage::of(tensor)->layout != nullptr;
}

ParameterLayouts shard_parameters(const std::vector<std::pair<std::string, at::Tensor>>& parameters,
                                  const std::vector<at::Tensor>& buffers, const std::vector<ShardRule>& rules,
                                  const std::vector<ShardRule>& model_rules) {
  std::vector<NamedShape> shapes;
  for (const auto& [name, parameter] : parameters) shapes.push_back({name, parameter.sizes().vec()});
  ParameterLayouts found = parameter_layouts(mesh(), shapes, rules, model_rules);
  std::vector<std::pair<std::string, at::Tensor>> all = parameters;
  for (size_t i = 0; i < buffers.size(); ++i) all.emplace_back(base::str("buffer ", i), buffers[i]);
  check_hosts("sluice::shard", all);
  std::vector<Layout> layouts = found.layouts;
  for (const at::Tensor& buffer : buffers)
    layouts.push_back(Layout::replicated(buffer.defined() ? static_cast<size_t>(buffer.dim()) : 0));
  bool moved = draw_missing(all, layouts);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& parameter = parameters[i].second;
    if (!device::on_device(parameter) || layout_of(parameter) != found.layouts[i].on(mesh())) {
      parameter.set_data(lay_out(parameter, found.layouts[i], {}));
      moved = true;
    }
    device::lay_out_gradient_of(parameter);
  }
  // Not again if a trainer places a model that lies so already.
  if (moved) {
    for (const std::string& whole : found.whole)
      base::warn("a large parameter stays whole on every device: ", whole);
    for (const std::string& unfit : found.unfit)
      base::warn("a rule of the model does not fit the mesh: ", unfit);
  }
  for (const at::Tensor& buffer : buffers) {
    if (buffer.defined() && !device::on_device(buffer))
      buffer.set_data(lay_out(buffer, Layout::replicated(static_cast<size_t>(buffer.dim())), {}));
  }
  return found;
}

}  // namespace sluice
