// Models larger than a chip: a mesh of devices, and tensors laid out over it (docs/sharding.md).
//
// With a mesh, all devices together run one program of the whole batch. A tensor on xla:0 is one tensor, and
// each device holds a block or all of it. Reading, printing and saving work as without a mesh.
//
// With several processes, all of them call the functions below in the same order, and read, print and save
// the same tensors: a value whose blocks lie over several processes is gathered by a program that all of
// them launch. The mesh has the devices of process 0 first, and so on.
//
// Threads and errors: as in device.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/device/device.h"
#include "sluice/mesh/layout.h"
#include "sluice/mesh/mesh.h"
#include "sluice/mesh/rules.h"

SLUICE_API_BEGIN
namespace sluice {

// Opens the device with a mesh, which takes precedence over SLUICE_MESH. Without DeviceOptions::devices, the
// mesh says how many devices are used, the same number in each process. Several processes need a plugin whose
// programs span them: kUnimplemented with XLA's CPU plugin. A mesh of one device is the same as none.
void init(const Mesh& mesh, const DeviceOptions& options = {});
// Returns the mesh of the open device, with all sizes; empty without a mesh.
Mesh mesh();

// Returns a tensor on the device with the value of `tensor` (on the host or the device) in this layout, which
// later writes to it keep. Throws kInvalidArgument if the axes do not divide the tensor's dimensions. Waits
// for a tensor that is on the device in another layout. A tensor on the host must be equal in all processes
// (kFailedPrecondition); each sends its devices' blocks of it.
at::Tensor shard(const at::Tensor& tensor, const Layout& layout);
// Does so with the layout of a batch: its first dimension over data and fsdp. Each process gives its rows of
// the batch, part batch_part() of batch_parts().
at::Tensor shard_batch(const at::Tensor& tensor);
// The parts into which the processes divide a batch's rows, each of the same size, and the part of this
// process. Processes whose devices differ only along the axes sequence and tensor give the same part. Without
// a mesh, a part is the batches of one process's replicas.
int batch_part();
int batch_parts();
// Moves a tensor of the host to a parameter's device, laid out like it if it has its shape (the optimizer's
// state). With several processes each sends its devices' blocks, without comparing them.
at::Tensor move_beside(const at::Tensor& host, const at::Tensor& parameter);
// Returns whether some of the tensor's blocks are on devices of other processes only; cuts if it is pending.
bool lies_over_processes(const at::Tensor& tensor);
// Returns how the value of a tensor on the device lies, with axes of the mesh; cuts if it is pending.
Layout layout_of(const at::Tensor& tensor);

// Moves parameters to the device, each laid out by its name and the rules (mesh/rules.h), and buffers, which
// stay whole. Each parameter goes to the devices in blocks: no device ever holds all of it. Parameters that
// lie so already stay as they are. Warns of large parameters that stay whole, and of rules of the model that
// the mesh does not fit. Gradients of these parameters that a program keeps lie like them. Values on the host
// must be equal in all processes: kFailedPrecondition names one that is not.
ParameterLayouts shard_parameters(const std::vector<std::pair<std::string, at::Tensor>>& parameters,
                                  const std::vector<at::Tensor>& buffers,
                                  const std::vector<ShardRule>& rules = {},
                                  const std::vector<ShardRule>& model_rules = {});

// Returns the rules that a module and the modules in it come with (LaidOutModel), with patterns for the
// module's names.
template <typename Module>
std::vector<ShardRule> rules_of_model(const Module& module) {
  if (const auto* const own = dynamic_cast<const LaidOutModel*>(&module)) return own->shard_rules();
  std::vector<ShardRule> all;
  for (const auto& child : module.named_children()) {
    for (ShardRule& rule : rules_of_model(*child.value())) {
      rule.pattern = child.key() + '.' + rule.pattern;
      all.push_back(std::move(rule));
    }
  }
  return all;
}

// Does so for a torch::nn::Module: in place of module.to(device). `rules` come before the model's own.
template <typename Module>
ParameterLayouts shard(Module& module, const std::vector<ShardRule>& rules = {}) {
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const auto& item : module.named_parameters()) parameters.emplace_back(item.key(), item.value());
  return shard_parameters(parameters, module.buffers(), rules, rules_of_model(module));
}

// Returns whether sluice::shard has laid out this tensor, so that every device holds a part of it.
bool is_laid_out(const at::Tensor& tensor);

}  // namespace sluice
SLUICE_API_END
