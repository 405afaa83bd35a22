// Trainings of 50 steps for meshes: a decoder, a residual net with BatchNorm, an LSTM, a model that gathers
// and scatters, and a GAN with two optimizers. Their weights lie in blocks over fsdp and tensor, dropout is
// on, and each process gives its rows of a batch, so that every mesh gets the same batches as one device.
//
// The residual net and the GAN train in f64, the others in f32: whether a ReLU passes a gradient on may
// depend on the rounding of a value that is nearly 0.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sluice::tests {

inline constexpr const char* kMeshTrainings[] = {"decoder", "resnet", "lstm", "scatter", "gan"};
inline constexpr int kMeshSteps = 50;
inline constexpr double kMeshLearningRate = 1e-3;

struct MeshTrained {
  std::vector<double> losses;                   // [step], of two optimizers one after the other
  std::map<std::string, torch::Tensor> values;  // parameters, buffers and both moments, on the host
  int64_t in_blocks = 0;                        // the parameters of which no device holds all
  int64_t late_programs = 0;                    // programs that were new after the tenth step
};

// Trains the named one on the open device, over its mesh if it has one. Throws std::out_of_range for another
// name.
MeshTrained train_on_mesh(const std::string& name);

// Returns the difference that error_on_mesh may have: 1e-9 in f64, 1e-5 in f32.
double max_error_on_mesh(const std::string& training);

// Returns the largest difference of two values: relative to the largest element, or where all elements are
// smaller than that, to a step of the optimizer (of a second moment, to its square).
double error_on_mesh(const std::string& name, const torch::Tensor& found, const torch::Tensor& wanted);

}  // namespace sluice::tests
