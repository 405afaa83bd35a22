// BatchNorm's running statistics, measured again.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <vector>

namespace sluice::train {

// While one lives, each BatchNorm of the module that keeps statistics has those of its last batch; add()
// takes them in, and finish() gives each the mean over all batches, as torch.optim.swa_utils.update_bn does.
// Nothing is read. The counts of batches and the momenta are as before at its end.
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
    torch::Tensor mean, variance, batches;                 // the module's
    torch::Tensor mean_sum, variance_sum, batches_before;  // sums: undefined before the first batch
    std::function<void()> put_back;                        // the momentum
  };
  std::vector<One> all_;
  double count_ = 0;
};

}  // namespace sluice::train
