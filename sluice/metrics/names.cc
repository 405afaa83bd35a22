#include "sluice/metrics/names.h"

#include <cctype>
#include <cmath>
#include <string_view>

#include "sluice/base/result.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/metrics/parse_names.h"

namespace sluice::metrics {
namespace names_detail {

Metric make(const MetricName& name, int64_t classes) {
  using Kind = MetricName::Kind;
  const ClassOptions options{.classes = classes, .average = name.average};
  switch (name.kind) {
    case Kind::kTopK:
      return TopK(name.k);
    case Kind::kPrecision:
      return Precision(options);
    case Kind::kRecall:
      return Recall(options);
    case Kind::kAuroc:
      return Auroc({.classes = classes, .average = name.average});
    case Kind::kConfusion:
      return ConfusionMatrix(classes);
    case Kind::kPerplexity:
      return Perplexity();
    case Kind::kFBeta:
      break;
  }
  return FBeta(name.beta, options);
}

}  // namespace names_detail

std::vector<Metric> make_metrics(const std::vector<MetricName>& names, int64_t classes) {
  base::value_or_throw(check_names("the metrics", names, classes));
  std::vector<Metric> metrics;
  for (const MetricName& name : names) metrics.push_back(names_detail::make(name, classes));
  return metrics;
}

std::string label(const std::string& name) {
  if (base::starts_with(name, "auroc")) return "AUROC" + name.substr(5);
  std::string text = name;
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

bool is_accuracy(const std::string& name) {
  return name == "accuracy" ||
         (base::starts_with(name, "top") && base::number_of<int64_t>(std::string_view(name).substr(3)));
}

double percent(const Value& share) {
  const auto whole = static_cast<double>(share.count);
  return share.count == 0 ? 0 : 100.0 * static_cast<double>(std::llround(share.number * whole)) / whole;
}

}  // namespace sluice::metrics
