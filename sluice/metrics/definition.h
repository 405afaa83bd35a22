// The definition of a metric: its sums, their updates and its values.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "sluice/metrics/key_counts.h"
#include "sluice/metrics/metrics.h"

namespace sluice::metrics {

// Sums on the device, or their totals over all replicas on the host. On the device: int64 counts of any
// shape, and f32 [2] for other sums, a sum and its rounding error. On the host: counts, and f64 [].
using Sums = std::vector<torch::Tensor>;

struct Input {
  const torch::Tensor &output, &target, &mask;  // as Collection::update takes them
};

// A definition has no state, so collections share it. Threads: any.
class Definition {
 public:
  virtual ~Definition() = default;
  virtual std::string name() const = 0;
  // Returns the sums with which a replica starts, on the host.
  virtual Sums zeros() const = 0;
  // Returns more tensors that update() needs, on the host.
  virtual std::vector<torch::Tensor> constants() const { return {}; }
  // Adds a batch in place. `name` is for messages.
  virtual void update(const std::string& name, const Sums& sums, const std::vector<torch::Tensor>& constants,
                      const Input& input) const = 0;
  // Appends the metric's values. The name of each value is `name`, alone or with a suffix.
  virtual void compute(const std::string& name, const Sums& totals, Values& values) const = 0;
};

// The definition of a metric that counts keys on the host: without sums on the device, so that its memory
// grows with the keys that occur.
class KeyDefinition : public Definition {
 public:
  Sums zeros() const override { return {}; }
  void update(const std::string&, const Sums&, const std::vector<torch::Tensor>&,
              const Input&) const override {}
  void compute(const std::string&, const Sums&, Values&) const override {}
  // Returns the keys of a batch, int64 [N]; -1 where nothing is counted.
  virtual torch::Tensor keys(const std::string& name, const Input& input) const = 0;
  // Does what compute() does, from the counts of all replicas.
  virtual void compute_keys(const std::string& name, const SortedCounts& counts, Values& values) const = 0;
};

// The definition of a Mean, which no update() changes.
class MeanDefinition : public Definition {
 public:
  explicit MeanDefinition(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  Sums zeros() const override;
  void update(const std::string&, const Sums&, const std::vector<torch::Tensor>&,
              const Input&) const override {}
  void add(const std::string& name, const Sums& sums, const torch::Tensor& value,
           const torch::Tensor& weight) const;
  void compute(const std::string& name, const Sums& totals, Values& values) const override;

 private:
  std::string name_;
};

}  // namespace sluice::metrics
