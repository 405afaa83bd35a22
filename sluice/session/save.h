// sluice::save and sluice::load: weights in files, from any device.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>

#include "sluice/base/export.h"

SLUICE_API_BEGIN

namespace sluice {

// Parameters and buffers by their names. A name that ends in .pt, .pth or .bin makes a file that Python's
// torch.load(path, weights_only=True) reads as a dict; any other name makes safetensors. Written under a
// temporary name and renamed. Waits for the device. Throws sluice::Error.
void save(const torch::nn::Module& model, const std::string& path);
// Reads either kind, and what Python's torch.save(model.state_dict(), path) writes, into the model, on
// whatever device it is. All names and shapes must fit.
void load(torch::nn::Module& model, const std::string& path);

template <typename Module>
void save(const std::shared_ptr<Module>& model, const std::string& path) {
  save(static_cast<const torch::nn::Module&>(*model), path);
}
template <typename Module>
void load(const std::shared_ptr<Module>& model, const std::string& path) {
  load(static_cast<torch::nn::Module&>(*model), path);
}
template <typename Module>
void save(const torch::nn::ModuleHolder<Module>& model, const std::string& path) {
  save(static_cast<const torch::nn::Module&>(*model), path);
}
template <typename Module>
void load(torch::nn::ModuleHolder<Module>& model, const std::string& path) {
  load(static_cast<torch::nn::Module&>(*model), path);
}

}  // namespace sluice

SLUICE_API_END
