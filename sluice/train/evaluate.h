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

// Of one replica's batch.
int64_t rows_of(const Batch& batch);
// Throws for a batch of texts alone, with which no step can do anything.
void check_columns(const Batch& batch);
// Names for the ends of graphs of batches that come in several shapes, each with a program of its own: with
// one name for all, reports would take the third program for a recompiling.
class ShapeNames {
 public:
  // `all`: also for the first shape.
  explicit ShapeNames(bool all = false) : all_(all) {}
  // `what` for the shape of the first batch, else with the shape behind it: "step [8, 128]".
  std::string name(const std::string& what, const Batch& batch);

 private:
  bool all_;
  std::vector<int64_t> first_;
};
// A value of a step (StepOutput) as one element whose mean over the replicas is that over all samples of the
// batch. `what` names it in errors.
torch::Tensor mean_of(const std::string& what, const torch::Tensor& value, const Batch& batch);

// How much the rows of a batch count, by StepOutput::weight. f32; padding counts nothing.
class RowWeights {
 public:
  RowWeights(const torch::Tensor& weight, const Batch& batch, int replicas);
  // Of this replica together, and of all.
  const torch::Tensor& here() const { return here_; }
  const torch::Tensor& everywhere() const { return everywhere_; }
  // The weighted sum of a value over this replica's rows.
  torch::Tensor sum(const std::string& what, const torch::Tensor& value) const;
  // One element whose mean over the replicas is the weighted mean over all rows of the batch.
  torch::Tensor mean(const std::string& what, const torch::Tensor& value) const;
  // For a value of one element, and for one of one element a row.
  torch::Tensor for_value(const torch::Tensor& rows) const { return rows.defined() ? rows_ : here_; }

 private:
  const Batch& batch_;
  int replicas_;
  torch::Tensor rows_, here_, everywhere_;
};

// The means of such values over many batches, and metrics. The values' names are those of the first batch.
class BatchMeans {
 public:
  explicit BatchMeans(const Session& session, std::vector<metrics::Metric> metrics = {})
      : session_(session), metrics_(std::move(metrics)) {}
  // `weight`, `output` and `target` are those of the step, or undefined.
  void add(const NamedValues& values, const Batch& batch, const torch::Tensor& weight = {},
           const torch::Tensor& output = {}, const torch::Tensor& target = {});
  // The values in their order, then the metrics; nothing when nothing was added. Waits.
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

// Counts on the device and reads once at the end, over the whole feed or its first `most` batches. `stop` is
// asked after each batch; `on_batch` hears how many are done. The model must be in eval mode. `autocast`: the
// steps run in bf16 where LibTorch's autocast says so.
// `look`, if any, sees what the steps gave of each batch before it is computed.
Evaluation evaluate(Session& session, const Steps& steps, Feed feed, int64_t most, bool autocast,
                    const std::function<bool()>& stop, const std::function<void(int64_t)>& on_batch,
                    const std::function<void(const Batch&, const StepOutput&)>& look = {});

}  // namespace sluice::train
