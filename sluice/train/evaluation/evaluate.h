// Evaluation over exactly the whole set, in batches of one shape.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/metrics/metrics.h"
#include "sluice/session/feed.h"
#include "sluice/session/session.h"
#include "sluice/train/steps.h"

namespace sluice::train {

// Returns the number of rows of one replica's batch.
int64_t rows_of(const Batch& batch);
// Throws for a batch that only has texts, which no step can use.
void check_columns(const Batch& batch);
// Names the ends of graphs of batches in several shapes, each with a separate program: with one name for all,
// reports would count the third program as a recompilation.
class ShapeNames {
 public:
  // `all`: name the shape also for the first shape.
  explicit ShapeNames(bool all = false) : all_(all) {}
  // Returns `what` for the shape of the first batch, else `what` with the shape: "step [8, 128]".
  std::string name(const std::string& what, const Batch& batch);

 private:
  bool all_;
  std::vector<int64_t> first_;
};
// Returns a value of a step (StepOutput) as one element whose mean over the replicas is the mean over all
// samples of the batch. `what` names the value in errors.
torch::Tensor mean_of(const std::string& what, const torch::Tensor& value, const Batch& batch);

// The weights of a batch's rows, by StepOutput::weight: f32; 0 for padding.
class RowWeights {
 public:
  RowWeights(const torch::Tensor& weight, const Batch& batch, int replicas);
  // The sum of the weights on this replica, and on all replicas.
  const torch::Tensor& here() const { return here_; }
  const torch::Tensor& everywhere() const { return everywhere_; }
  // The weighted sum of a value over this replica's rows.
  torch::Tensor sum(const std::string& what, const torch::Tensor& value) const;
  // One element whose mean over the replicas is the weighted mean over all rows of the batch.
  torch::Tensor mean(const std::string& what, const torch::Tensor& value) const;
  // The weights for a value with one element per row, or, if `rows` is undefined, for one of one element.
  torch::Tensor for_value(const torch::Tensor& rows) const { return rows.defined() ? rows_ : here_; }

 private:
  const Batch& batch_;
  int replicas_;
  torch::Tensor rows_, here_, everywhere_;
};

// The means of step values over many batches, and metrics. The first batch sets the names of the values.
class BatchMeans {
 public:
  explicit BatchMeans(const Session& session, std::vector<metrics::Metric> metrics = {})
      : session_(session), metrics_(std::move(metrics)) {}
  // `weight`, `output` and `target` are the step's, or undefined.
  void add(const NamedValues& values, const Batch& batch, const torch::Tensor& weight = {},
           const torch::Tensor& output = {}, const torch::Tensor& target = {});
  // Returns the values in their order, then the metrics; empty if nothing was added. Waits.
  metrics::Values compute();

 private:
  const Session& session_;
  std::vector<metrics::Metric> metrics_;
  std::vector<std::string> names_;
  std::optional<metrics::Collection> sums_;
};

struct Evaluation {
  int64_t samples = 0;
  metrics::Values values;  // "loss" and the logs of the steps, then their metrics
  bool stopped = false;
};

// Counts on the device and reads once at the end, over the whole feed or its first `most` batches. Asks
// `stop` after each batch; tells `on_batch` the number of batches done. The model must be in eval mode.
// `autocast`: the steps run in bf16 as LibTorch's autocast decides. `look`, if any, gets each batch and its
// step's output before they are computed.
Evaluation evaluate(Session& session, const Steps& steps, Feed feed, int64_t most, bool autocast,
                    const std::function<bool()>& stop, const std::function<void(int64_t)>& on_batch,
                    const std::function<void(const Batch&, const StepOutput&)>& look = {});

}  // namespace sluice::train
