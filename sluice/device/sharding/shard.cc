#include "sluice/device/sharding/shard.h"

#include "sluice/base/error.h"
#include "sluice/base/log.h"
#include "sluice/base/text/strings.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/runtime.h"
#include "sluice/device/sharding/gradients.h"
#include "sluice/device/sharding/layouts.h"
#include "sluice/device/storage.h"
#include "sluice/device/transfer.h"

namespace sluice {

Mesh mesh() {
  const auto mesh = device::runtime().world.mesh;
  return mesh == nullptr ? Mesh() : *mesh;
}

at::Tensor shard(const at::Tensor& tensor, const Layout& layout) {
  const Mesh devices = mesh();
  const std::string misfit = layout.misfit(devices, tensor.sizes().vec());
  if (!misfit.empty())
    throw_error(Code::kInvalidArgument,
                base::str("sluice::shard: ", misfit, ": lay out another dimension, or pad the tensor"));
  const device::LayoutRef wanted = device::intern_layout(devices, layout);
  // The host's tensor may be written to later, and the device may read its memory in place.
  const at::Tensor host = device::on_device(tensor)
                              ? device::download(tensor, "sluice::shard")
                              : tensor.detach().resolve_conj().resolve_neg().contiguous().clone();
  device::DataPtr data = device::upload_data({host}, wanted);
  const auto lock = device::lock_trace();
  at::Tensor made = device::make_tensor(std::move(data));
  device::LazyStorage::of(made)->layout = wanted;
  return made;
}

at::Tensor shard_batch(const at::Tensor& tensor) {
  if (tensor.dim() == 0)
    throw_error(Code::kInvalidArgument,
                "sluice::shard_batch: expected a tensor whose first dimension is the batch, found a scalar");
  return shard(tensor, batch_layout(static_cast<size_t>(tensor.dim())));
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
  bool moved = false;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& parameter = parameters[i].second;
    if (!device::on_device(parameter) || layout_of(parameter) != found.layouts[i].on(mesh())) {
      parameter.set_data(shard(parameter, found.layouts[i]));
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
      buffer.set_data(shard(buffer, Layout::replicated(static_cast<size_t>(buffer.dim()))));
  }
  return found;
}

}  // namespace sluice
