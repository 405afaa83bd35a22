// The batches of one update (accumulate), with their gradients and values together.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>

#include "sluice/train/evaluation/evaluate.h"
#include "sluice/train/steps.h"

namespace sluice::train {

// Throws kInvalidArgument if a step logs other names than the step before it.
void check_same_names(const NamedValues& before, const NamedValues& now);
// Throws kInvalidArgument for a loss that depends on no trained parameter.
void check_has_gradient(const torch::Tensor& loss);

// The loss of an update, its gradients and its logged values are means over all of its batches: weighted if
// the steps give weights (StepOutput::weight); otherwise each batch counts the same.
class BatchGroup {
 public:
  BatchGroup(int64_t batches, int replicas) : batches_(batches), replicas_(replicas) {}
  int64_t batches() const { return batches_; }
  // Adds the gradients of a batch. `mean` is the mean of its `loss`.
  void backward(const torch::Tensor& mean, const torch::Tensor& loss,
                const std::optional<RowWeights>& weights);
  // Adds the means of one batch. The names are the same in all batches of a group.
  void add(const NamedValues& means, const std::optional<RowWeights>& weights);
  // Call it after the last batch: turns the parameters' gradients from sums into means.
  void scale_gradients(const torch::nn::Module& model) const;
  NamedValues means() const;

 private:
  int64_t batches_;
  int replicas_;
  torch::Tensor weight_;  // of the gradients so far, over all replicas; undefined without weights
  torch::Tensor value_weight_;
  NamedValues sums_;
};

}  // namespace sluice::train
