// Metrics of a whole set, added up on the device over all replicas.
//
//   namespace metrics = sluice::metrics;
//   metrics::Collection sums(session, {metrics::TopK(5), metrics::F1({.classes = 10}),
//                                      metrics::Auroc({.classes = 10}), metrics::ConfusionMatrix(10)});
//   for (auto& batch : session.feed(test.pad()))
//     sums.update(model->forward(batch.image), batch.label, batch.mask);
//   metrics::Values values = sums.compute();
//   session.print("top5 ", values["top5"], ", f1 ", values["f1"]);
//
// Counts are integers and exact; other sums are added up in f32 with their rounding errors kept, so that a
// sum over many batches is as exact as over one batch. The definitions are torchmetrics's, for one label a
// sample. Threads: the session's thread. Errors are sluice::Error.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/metrics/metric_name.h"
#include "sluice/session/session.h"

SLUICE_API_BEGIN

namespace sluice::metrics {

class Definition;

// A description of what is measured, without sums. Each has a name, given at the end of its type's comment
// below; `_micro`, `_weighted` or `_classes` is appended if the average is not kMacro.
class Metric {
 public:
  explicit Metric(std::shared_ptr<const Definition> definition);
  // Returns the same metric under another name.
  Metric named(std::string name) const;
  const std::string& name() const { return name_; }
  const Definition& definition() const { return *definition_; }

 private:
  std::shared_ptr<const Definition> definition_;
  std::string name_;
};

struct ClassOptions {
  // 2 and more: an output has a score for each class, and its answer is the class with the highest one (of
  // equal ones the first). 1: a question of yes (label 1) or no (0) with one score; the numbers are for yes.
  int64_t classes = 0;
  Average average = Average::kMacro;
  bool probabilities = false;  // scores are probabilities instead of logits
};

struct AurocOptions {
  int64_t classes = 0;                // as in ClassOptions
  Average average = Average::kMacro;  // kMicro is not supported
  bool probabilities = false;
  int64_t thresholds = 200;  // from 0 to 1 at equal distances, 2 at least
};

// The share of the samples whose label is among the k highest scores; of equal scores the first count. `top5`
struct TopK : Metric {
  explicit TopK(int64_t k);
};
// Right answers as a share of all answers of the class, and of all labels of the class; 0 if there are no
// such answers or labels. `precision`, `recall`
struct Precision : Metric {
  explicit Precision(const ClassOptions& options);
};
struct Recall : Metric {
  explicit Recall(const ClassOptions& options);
};
// The harmonic mean of both, in which recall has beta times the weight of precision. `f1`, `f0.5`
struct FBeta : Metric {
  FBeta(double beta, const ClassOptions& options);
};
struct F1 : FBeta {
  explicit F1(const ClassOptions& options) : FBeta(1, options) {}
};
// The area under the curve of true over false positives, by trapezoids between the thresholds, for each class
// against all others. Logits become probabilities by softmax, or by sigmoid if there is one score. `auroc`
struct Auroc : Metric {
  explicit Auroc(const AurocOptions& options);
};
// A tensor, int64 [classes, classes] ([2, 2] for one score): rows are labels, columns answers. `confusion`
// Above `dense_classes` classes it is a coalesced sparse tensor (torch::kSparse) with the pairs that occur.
// They are counted on the host, so that a set of N samples needs at most N entries; a captured function with
// such a metric is recorded at each call.
struct ConfusionMatrix : Metric {
  static constexpr int64_t kDenseClasses = 1024;  // 8 MiB of counts on each replica
  explicit ConfusionMatrix(int64_t classes, bool probabilities = false,
                           int64_t dense_classes = kDenseClasses);
};
// The mean squared and absolute error over all elements. `mse`, `mae`
struct MeanSquaredError : Metric {
  MeanSquaredError();
};
struct MeanAbsoluteError : Metric {
  MeanAbsoluteError();
};
// exp of the mean cross-entropy of logits. Labels equal to `ignore_index` do not count. `perplexity`
struct Perplexity : Metric {
  explicit Perplexity(std::optional<int64_t> ignore_index = std::nullopt);
};
// The mean of the values given to Collection::add().
struct Mean : Metric {
  explicit Mean(const std::string& name);
};

struct Value {
  std::string name;
  double number = 0;  // shares are from 0 to 1
  int64_t count = 0;  // samples (elements, labels; for Mean their weight) that it covers
};

struct Values {
  std::vector<Value> numbers;  // in the order of the metrics
  std::vector<std::pair<std::string, torch::Tensor>> tensors;
  // Throws kNotFound with the nearest name.
  const Value& value(const std::string& name) const;
  double operator[](const std::string& name) const { return value(name).number; }
  const torch::Tensor& tensor(const std::string& name) const;
};

// The sums of several metrics of one model's output. They are tensors on the device: an update is recorded
// like any other operation, belongs to the program of the step around it, and waits for nothing.
class Collection {
 public:
  // Throws kInvalidArgument if two metrics have one name.
  Collection(const Session& session, std::vector<Metric> metrics);
  Collection(Collection&&) noexcept;
  Collection& operator=(Collection&&) noexcept;
  ~Collection();

  // Adds a batch of each replica. For metrics of classes `output` is [..., classes] of a floating-point type
  // and `target` int64 [...]; with one score `output` is [...] or [..., 1]. For errors both have one shape
  // and floating-point types. `mask`: bool, true for elements that count, of the target's shape or of its
  // first dimensions ([N] for rows); undefined: everything counts. Elements left out may hold anything.
  // Shapes that do not fit throw kInvalidArgument; a label that is not a class is found on the device and
  // thrown by a later call of the session.
  void update(const torch::Tensor& output, const torch::Tensor& target, const torch::Tensor& mask = {});
  // Adds to a Mean: values of a floating-point type of any shape, each with its weight. `weight` has the
  // shape of `value` or one that expands to it, of bool or integers (a mask, the number of samples of a
  // value) or a floating-point type; undefined: 1 each. Values with the weight 0 may be anything. Throws
  // kNotFound for a name that belongs to no Mean.
  void add(const std::string& name, const torch::Tensor& value, const torch::Tensor& weight = {});

  // Returns the values of all batches so far, over all replicas of all processes, which make the same call.
  // Ends the graph and waits. A share of nothing is 0, a mean of nothing NaN.
  Values compute();
  // Starts again from zero.
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::metrics

SLUICE_API_END
