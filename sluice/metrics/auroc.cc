// The area under the ROC curve, from counts at fixed thresholds.
#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/metrics/averages.h"
#include "sluice/metrics/input.h"
#include "sluice/metrics/parse_names.h"
#include "sluice/metrics/sums.h"

namespace sluice::metrics {
namespace auroc_detail {

class AurocDefinition : public Definition {
 public:
  explicit AurocDefinition(const AurocOptions& options) : options_(options) {
    check_classes("Auroc", options.classes);
    if (options.thresholds < 2)
      throw_error(Code::kInvalidArgument,
                  base::str("Auroc: expected at least 2 thresholds, found ", options.thresholds));
    if (options.average == Average::kMicro && options.classes > 1)
      throw_error(Code::kInvalidArgument,
                  "Auroc: expected the average kMacro, kWeighted or kClasses, found kMicro: each class has "
                  "its own curve, and no curve covers all classes");
  }
  std::string name() const override { return std::string("auroc") + suffix(options_.average); }

  // The counts of each class at each threshold: samples of the class whose score reaches it, and all samples
  // whose score does. Then the samples of each class, and all samples.
  Sums zeros() const override {
    const int64_t classes = options_.classes, thresholds = options_.thresholds;
    return {zero_counts({classes, thresholds}), zero_counts({classes, thresholds}), zero_counts({classes}),
            zero_counts({1})};
  }
  // The thresholds come from the host: a program on the device might round them in another way.
  std::vector<torch::Tensor> constants() const override {
    return {torch::linspace(0, 1, options_.thresholds, torch::kFloat)};
  }

  void update(const std::string& name, const Sums& sums, const std::vector<torch::Tensor>& constants,
              const Input& input) const override {
    const Labelled batch = labelled(name, options_.classes, input);
    torch::Tensor scores = batch.output;
    if (!options_.probabilities) scores = options_.classes == 1 ? scores.sigmoid() : scores.softmax(1);
    const torch::Tensor target = checked(batch.target, counted_classes(options_.classes)).unsqueeze(1);
    const torch::Tensor is_class =
        options_.classes == 1 ? target.eq(1) : target.eq(at::arange(options_.classes, target.options()));
    const torch::Tensor mask = batch.mask.unsqueeze(1), is_labelled = is_class.logical_and(mask);
    // The tensor is [N, C, T]; a compiled program never stores it.
    const torch::Tensor reaches = scores.unsqueeze(2).ge(constants[0]);
    add_rows(sums[0], reaches.logical_and(is_labelled.unsqueeze(2)));
    add_rows(sums[1], reaches.logical_and(mask.unsqueeze(2)));
    add_rows(sums[2], is_labelled);
    add_count(sums[3], batch.mask);
  }

  void compute(const std::string& name, const Sums& totals, Values& values) const override {
    const auto reached = totals[0].accessor<int64_t, 2>(), all = totals[1].accessor<int64_t, 2>();
    const auto labelled = totals[2].accessor<int64_t, 1>();
    const auto count = totals[3].item<int64_t>();
    std::vector<ClassNumber> numbers;
    for (int64_t c = 0; c < options_.classes; ++c) {
      const auto positives = static_cast<double>(labelled[c]),
                 negatives = static_cast<double>(count) - positives;
      const auto true_rate = [&](int64_t t) { return share(static_cast<double>(reached[c][t]), positives); };
      const auto false_rate = [&](int64_t t) {
        return share(static_cast<double>(all[c][t] - reached[c][t]), negatives);
      };
      double area = 0;
      for (int64_t t = options_.thresholds - 1; t > 0; --t)
        area += (false_rate(t - 1) - false_rate(t)) * (true_rate(t - 1) + true_rate(t)) / 2;
      numbers.push_back({area, positives, true});
    }
    append_average(name, options_.average, numbers, count, values);
  }

 private:
  // Adds the number of true rows.
  static void add_rows(const torch::Tensor& counts, const torch::Tensor& is_counted) {
    counts.add_(is_counted.sum({0}, false, torch::kInt).to(torch::kLong));
  }

  AurocOptions options_;
};

}  // namespace auroc_detail

Auroc::Auroc(const AurocOptions& options)
    : Metric(std::make_shared<auroc_detail::AurocDefinition>(options)) {}

}  // namespace sluice::metrics
