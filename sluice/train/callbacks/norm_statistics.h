// The new measurement of BatchNorm's running statistics.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <vector>

namespace sluice::train {

// While a NormStatistics lives, each BatchNorm of the module that keeps statistics has the statistics of its
// last batch. add() adds these, and finish() sets each to the mean over all batches, as
// torch.optim.swa_utils.update_bn does. Nothing is read. At its end it restores the counts of batches and the
// momenta.
class NormStatistics {
 public:
  explicit NormStatistics(torch::nn::Module& module);
  ~NormStatistics();
  NormStatistics(const NormStatistics&) = delete;
  NormStatistics& operator=(const NormStatistics&) = delete;
  static bool any_in(const torch::nn::Module& module);

  void add();
  void finish();

 private:
  struct One {
    torch::Tensor mean, variance, batches;                 // of the module
    torch::Tensor mean_sum, variance_sum, batches_before;  // sums: undefined before the first batch
    std::function<void()> put_back;                        // restores the momentum
  };
  std::vector<One> all_;
  double count_ = 0;
};

}  // namespace sluice::train
