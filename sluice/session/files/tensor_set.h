// TensorSet: a data set of samples that are already in memory, as tensors.
//
//   // [N, …] each: row i of all tensors is sample i.
//   sluice::TensorSet train({x, y}), test({x_test, y_test});
//   sluice::train::Trainer trainer(options, {train.shuffle().batch(32), test.batch(32).pad()});
//
// A batch has the columns in their order: batch.columns[0] holds rows of x. The order of a shuffled set
// depends on the seed, the epoch and the rows of all replicas together. A run can resume exactly, at any
// batch.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/data/stream.h"

SLUICE_API_BEGIN
namespace sluice {

// Threads: any number for const members. Errors are sluice::Error.
class TensorSet : public data::Dataset {
 public:
  // Takes dense tensors on the CPU with the same first size, which is at least 1; of bool, uint8, an integer
  // or a floating-point type except bfloat16. Their memory is shared, not copied, unless they are views with
  // gaps: do not write to it while the set is used. Throws kInvalidArgument for other tensors.
  explicit TensorSet(std::vector<torch::Tensor> columns);

  TensorSet& shuffle();                 // a different order in each epoch
  TensorSet& seed(std::uint64_t seed);  // default 0
  TensorSet& batch(std::int64_t rows);  // rows of one replica; default 1
  // Samples at the end that do not fill a batch of all replicas come in a batch with rows of zeros, which the
  // mask leaves out, as a test needs it. Without pad() these samples are left out of the epoch.
  TensorSet& pad();

  std::unique_ptr<data::Stream> open(const data::OpenOptions& options) const override;
  std::unique_ptr<data::Stream> resume(const std::string& state,
                                       const data::OpenOptions& options) const override;
  std::string state(const data::OpenOptions& options) const override;
  std::int64_t size() const override;
  std::int64_t batches(std::int64_t replicas, std::int64_t epoch) const override;
  std::int64_t batch_size() const override { return settings_.rows; }
  data::Remainder remainder() const override {
    return settings_.pad ? data::Remainder::kPad : data::Remainder::kDrop;
  }
  const std::vector<float>& mean() const override;
  const std::vector<float>& deviation() const override { return mean(); }

  struct Settings {
    std::int64_t rows = 1;
    std::uint64_t seed = 0;
    bool shuffle = false, pad = false;
  };
  struct Columns;

 private:
  std::shared_ptr<const Columns> columns_;
  Settings settings_;
};

}  // namespace sluice
SLUICE_API_END
