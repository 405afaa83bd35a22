// A module's parameters and buffers, and files with their values.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/mesh/rules.h"
#include "sluice/session/files/tensor_file.h"
#include "sluice/session/stored/stored_tensors.h"

namespace sluice::sessions {

// Returns the parameters and buffers, by their qualified names.
NamedTensors module_tensors(const torch::nn::Module& model);
// Puts values into a model's parameters and buffers, on any device. `source` names the file in errors. The
// first tensor that is missing, unexpected, or of another shape is an error that names it. A tensor without a
// value (device/start/without_values.h) gets its value on the CPU.
// With `may_lack`, a tensor whose name it accepts may be missing, and stays as it is.
base::Status load_module(torch::nn::Module& model, const NamedTensors& tensors, const std::string& source,
                         bool (*may_lack)(const std::string& name) = nullptr);

// Gives a module over the open device's mesh the values of stored tensors, with the layouts that
// Session::place would choose: by these rules, then by the model's own. Without rules, a model that is laid
// out already keeps its layouts. Each process reads the blocks of its own devices only (a tensor that is
// whole on every device once). At one time it holds about the bytes of the largest tensor, until the devices
// have them. Names and shapes must fit, as for load_module(). With `may_lack`, a tensor whose name it accepts
// may be missing in the files: it keeps its value, or gets the one that it would have started with. While
// programs are only compiled ahead of time, nothing is read.
struct StoredLoad {
  std::vector<ShardRule> rules = {};
  bool (*may_lack)(const std::string& name) = nullptr;
};
base::Status load_stored(torch::nn::Module& model, StoredReader& reader, const StoredTensors& tensors,
                         const std::string& source, const StoredLoad& how = {});

// Returns the model's names of a file's tensors, "" for tensors that are left out.
using Renaming = std::function<std::vector<std::string>(std::vector<std::string>)>;
// Does so for weights as read_weights() and StoredReader::list() take them. A file of Python's torch.save is
// read whole.
base::Status load_over_mesh(torch::nn::Module& model, const std::string& from, const Renaming& renamed = {},
                            const StoredLoad& how = {});

}  // namespace sluice::sessions
