// sluice::save and sluice::load: weights in files, from any device.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>

#include "sluice/base/export.h"

SLUICE_API_BEGIN

namespace sluice {

// Writes the parameters and buffers with their names. A path that ends in .pt, .pth or .bin gets a file that
// Python's torch.load(path, weights_only=True) reads as a dict; any other path gets safetensors. Written
// under a temporary name and renamed. Waits for the device. Throws sluice::Error.
void save(const torch::nn::Module& model, const std::string& path);
// Reads either kind, and the files of Python's torch.save(model.state_dict(), path), into the model, on any
// device. All names and shapes must fit.
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
