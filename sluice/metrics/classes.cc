// Metrics that count answers: top-k accuracy, precision, recall, F, the confusion matrix.
#include <algorithm>
#include <memory>
#include <utility>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/metrics/averages.h"
#include "sluice/metrics/input.h"
#include "sluice/metrics/parse_names.h"
#include "sluice/metrics/sums.h"

namespace sluice::metrics {
namespace classes_detail {

class TopKDefinition : public Definition {
 public:
  explicit TopKDefinition(int64_t k) : k_(k) {
    if (k < 1) throw_error(Code::kInvalidArgument, base::str("TopK: expected a k of at least 1, found ", k));
  }
  std::string name() const override { return base::str("top", k_); }
  Sums zeros() const override { return {zero_counts({1}), zero_counts({1})}; }

  void update(const std::string& name, const Sums& sums, const std::vector<torch::Tensor>&,
              const Input& input) const override {
    const auto [output, target, mask] = labelled(name, 0, input);
    const int64_t classes = output.size(1);
    if (k_ > classes)
      throw_error(Code::kInvalidArgument, base::str("the metric '", name, "' takes the ", k_, " highest of ",
                                                    classes, " scores: expected a k of at most ", classes));
    add_count(sums[0], is_among_highest(output, target).logical_and(mask));
    add_count(sums[1], mask);
  }

  void compute(const std::string& name, const Sums& totals, Values& values) const override {
    const auto right = totals[0].item<int64_t>(), all = totals[1].item<int64_t>();
    values.numbers.push_back({name, share(static_cast<double>(right), static_cast<double>(all)), all});
  }

 private:
  // Whether fewer than k scores come before the label's. NaN comes first, as in topk and argmax.
  torch::Tensor is_among_highest(const torch::Tensor& output, const torch::Tensor& target) const {
    const torch::Tensor place = target.unsqueeze(1), own = output.gather(1, place);
    const torch::Tensor is_nan = output.isnan(), own_is_nan = own.isnan();
    const torch::Tensor higher = output.gt(own).logical_or(is_nan.logical_and(own_is_nan.logical_not()));
    const torch::Tensor equal = output.eq(own).logical_or(is_nan.logical_and(own_is_nan));
    const torch::Tensor earlier = at::arange(output.size(1), target.options()).unsqueeze(0).lt(place);
    return higher.logical_or(equal.logical_and(earlier)).sum({1}, false, torch::kInt).lt(k_);
  }

  int64_t k_;
};

// Computes a score from the counts of one class, or of all together.
using Score = double (*)(double beta, double right, double answered, double labelled);

double precision(double, double right, double answered, double) { return share(right, answered); }
double recall(double, double right, double, double labelled) { return share(right, labelled); }
double f_beta(double beta, double right, double answered, double labelled) {
  const double square = beta * beta;
  return share((1 + square) * right, square * labelled + answered);
}

// Precision, recall and F, from three counts a class.
class ScoreDefinition : public Definition {
 public:
  ScoreDefinition(const char* type, std::string base, Score score, double beta, const ClassOptions& options)
      : base_(std::move(base)), score_(score), beta_(beta), options_(options) {
    check_classes(type, options.classes);
  }
  std::string name() const override { return base_ + suffix(options_.average); }
  Sums zeros() const override {
    const int64_t counted = counted_classes(options_.classes);
    return {zero_counts({counted}), zero_counts({counted}), zero_counts({counted})};
  }

  void update(const std::string& name, const Sums& sums, const std::vector<torch::Tensor>&,
              const Input& input) const override {
    const Labelled batch = labelled(name, options_.classes, input);
    const torch::Tensor answer = answers(batch, options_.probabilities);
    const torch::Tensor target = checked(batch.target, counted_classes(options_.classes));
    const torch::Tensor counts = batch.mask.to(torch::kLong);
    sums[0].index_add_(0, target, answer.eq(target).logical_and(batch.mask).to(torch::kLong));
    sums[1].index_add_(0, answer, counts);
    sums[2].index_add_(0, target, counts);
  }

  void compute(const std::string& name, const Sums& totals, Values& values) const override {
    const auto count = [&](int which, int64_t c) {
      return static_cast<double>(totals[which][c].item<int64_t>());
    };
    const auto all = totals[2].sum().item<int64_t>();
    if (options_.average == Average::kMicro && options_.classes > 1) {
      const auto sum = [&](int which) { return static_cast<double>(totals[which].sum().item<int64_t>()); };
      values.numbers.push_back({name, score_(beta_, sum(0), sum(1), sum(2)), all});
      return;
    }
    std::vector<ClassNumber> numbers;
    for (int64_t c = options_.classes == 1 ? 1 : 0; c < totals[0].size(0); ++c) {
      const double right = count(0, c), answered = count(1, c), labelled = count(2, c);
      numbers.push_back({score_(beta_, right, answered, labelled), labelled, answered + labelled > 0});
    }
    append_average(name, options_.average, numbers, all, values);
  }

 private:
  std::string base_;
  Score score_;
  double beta_;
  ClassOptions options_;
};

// Returns each row's place in the confusion matrix, row-major: its label, then the answer.
torch::Tensor places_in_matrix(const Labelled& batch, int64_t classes, bool probabilities) {
  const int64_t counted = counted_classes(classes);
  return checked(batch.target, counted) * counted + answers(batch, probabilities);
}

class ConfusionDefinition : public Definition {
 public:
  ConfusionDefinition(int64_t classes, bool probabilities)
      : classes_(classes), probabilities_(probabilities) {
    check_classes("ConfusionMatrix", classes);
  }
  std::string name() const override { return "confusion"; }
  Sums zeros() const override {
    const int64_t counted = counted_classes(classes_);
    return {zero_counts({counted * counted})};
  }

  void update(const std::string& name, const Sums& sums, const std::vector<torch::Tensor>&,
              const Input& input) const override {
    const Labelled batch = labelled(name, classes_, input);
    sums[0].index_add_(0, places_in_matrix(batch, classes_, probabilities_), batch.mask.to(torch::kLong));
  }

  void compute(const std::string& name, const Sums& totals, Values& values) const override {
    const int64_t counted = counted_classes(classes_);
    values.tensors.emplace_back(name, totals[0].view({counted, counted}));
  }

 private:
  int64_t classes_;
  bool probabilities_;
};

// The same counts for many classes: only of the pairs that occur.
class SparseConfusionDefinition : public KeyDefinition {
 public:
  SparseConfusionDefinition(int64_t classes, bool probabilities)
      : classes_(classes), probabilities_(probabilities) {
    check_classes("ConfusionMatrix", classes);
    if (counted_classes(classes) > kMaxClasses)
      throw_error(Code::kInvalidArgument,
                  base::str("ConfusionMatrix: expected at most ", kMaxClasses, " classes, found ", classes));
  }
  std::string name() const override { return "confusion"; }

  torch::Tensor keys(const std::string& name, const Input& input) const override {
    const Labelled batch = labelled(name, classes_, input);
    const torch::Tensor place = places_in_matrix(batch, classes_, probabilities_);
    return at::where(batch.mask, place, at::full_like(place, -1));
  }

  void compute_keys(const std::string& name, const SortedCounts& counts, Values& values) const override {
    const int64_t counted = counted_classes(classes_), size = static_cast<int64_t>(counts.size());
    torch::Tensor places = torch::empty({2, size}, torch::kLong),
                  numbers = torch::empty({size}, torch::kLong);
    auto* const labels = places.mutable_data_ptr<int64_t>();
    auto* const occurred = numbers.mutable_data_ptr<int64_t>();
    for (int64_t i = 0; i < size; ++i) {
      const auto& [key, number] = counts[static_cast<size_t>(i)];
      labels[i] = key / counted;
      labels[size + i] = key % counted;
      occurred[i] = number;
    }
    // Ascending keys are row after row, as a coalesced tensor has them. LibTorch checks the places.
    values.tensors.emplace_back(name, at::sparse_coo_tensor(places, numbers, {counted, counted},
                                                            numbers.options().layout(torch::kSparse),
                                                            /*is_coalesced=*/true));
  }

 private:
  static constexpr int64_t kMaxClasses = int64_t{1} << 31;  // a key fits into int64
  int64_t classes_;
  bool probabilities_;
};

std::shared_ptr<const Definition> confusion(int64_t classes, bool probabilities, int64_t dense_classes) {
  if (counted_classes(classes) > dense_classes)
    return std::make_shared<SparseConfusionDefinition>(classes, probabilities);
  return std::make_shared<ConfusionDefinition>(classes, probabilities);
}

Metric score(const char* type, std::string name, Score score, double beta, const ClassOptions& options) {
  return Metric(std::make_shared<ScoreDefinition>(type, std::move(name), score, beta, options));
}

double checked_beta(double beta) {
  if (!(beta > 0))
    throw_error(Code::kInvalidArgument, base::str("FBeta: expected a beta above 0, found ", beta));
  return beta;
}

}  // namespace classes_detail

TopK::TopK(int64_t k) : Metric(std::make_shared<classes_detail::TopKDefinition>(k)) {}
Precision::Precision(const ClassOptions& options)
    : Metric(classes_detail::score("Precision", "precision", classes_detail::precision, 1, options)) {}
Recall::Recall(const ClassOptions& options)
    : Metric(classes_detail::score("Recall", "recall", classes_detail::recall, 1, options)) {}
FBeta::FBeta(double beta, const ClassOptions& options)
    : Metric(classes_detail::score("FBeta", base::str("f", classes_detail::checked_beta(beta)),
                                   classes_detail::f_beta, beta, options)) {}
ConfusionMatrix::ConfusionMatrix(int64_t classes, bool probabilities, int64_t dense_classes)
    : Metric(classes_detail::confusion(classes, probabilities, dense_classes)) {}

}  // namespace sluice::metrics
