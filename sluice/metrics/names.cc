#include "sluice/metrics/names.h"

#include <cctype>
#include <cmath>
#include <optional>
#include <set>

#include "sluice/base/error.h"
#include "sluice/base/number.h"
#include "sluice/base/strings.h"
#include "sluice/metrics/averages.h"

namespace sluice::metrics {
namespace names_detail {

constexpr const char* kForms =
    "expected top1, top5, …, precision, recall, f1, auroc (also with _micro, _weighted or _classes after "
    "it), "
    "confusion or perplexity";

// Returns the number after the prefix: 5 of "top5".
template <typename Number>
std::optional<Number> number_behind(const std::string& name, const std::string& prefix) {
  if (!base::starts_with(name, prefix)) return std::nullopt;
  return base::number_of<Number>(std::string_view(name).substr(prefix.size()));
}

std::optional<Metric> averaged(const std::string& base, int64_t classes, Average average) {
  const ClassOptions options{.classes = classes, .average = average};
  if (base == "precision") return Precision(options);
  if (base == "recall") return Recall(options);
  if (base == "auroc" && average != Average::kMicro) return Auroc({.classes = classes, .average = average});
  if (const auto beta = number_behind<double>(base, "f"); beta && *beta > 0 && std::isfinite(*beta))
    return FBeta(*beta, options);
  return std::nullopt;
}

std::optional<Metric> one(const std::string& name, int64_t classes) {
  if (name == "confusion") return ConfusionMatrix(classes);
  if (name == "perplexity") return Perplexity();
  if (const auto k = number_behind<int64_t>(name, "top"); k && *k >= 1) return TopK(*k);
  for (const Average average : {Average::kMicro, Average::kWeighted, Average::kClasses})
    if (base::ends_with(name, suffix(average)))
      return averaged(name.substr(0, name.size() - std::string(suffix(average)).size()), classes, average);
  return averaged(name, classes, Average::kMacro);
}

// Suggests the nearest of the usual names.
std::string advice(const std::string& name) {
  std::vector<std::string> known = {"top1", "top5", "confusion", "perplexity"};
  for (const char* base : {"precision", "recall", "f1", "auroc"})
    for (const Average average : {Average::kMacro, Average::kMicro, Average::kWeighted, Average::kClasses})
      if (base != std::string("auroc") || average != Average::kMicro)
        known.push_back(base + std::string(suffix(average)));
  const std::string nearest = base::nearest(name, known);
  return nearest.empty() ? "" : base::str("; did you mean \"", nearest, "\"?");
}

}  // namespace names_detail

std::vector<Metric> parse(const std::string& what, const std::string& names, int64_t classes) {
  std::vector<Metric> metrics;
  std::set<std::string> seen;
  if (names.empty()) return metrics;
  for (const std::string& part : base::split(names, ',')) {
    const std::string name(base::trim(part));
    const auto metric = names_detail::one(name, classes);
    if (!metric)
      throw_error(Code::kInvalidArgument, base::str(what, ": there is no metric \"", name, "\": ",
                                                    names_detail::kForms, names_detail::advice(name)));
    if (!seen.insert(metric->name()).second)
      throw_error(Code::kInvalidArgument, base::str(what, ": ", name, " is there twice"));
    if (const auto k = names_detail::number_behind<int64_t>(name, "top"); k && *k > classes)
      throw_error(Code::kInvalidArgument,
                  base::str(what, ": ", name, " needs at least ", *k, " classes, and there are ", classes));
    metrics.push_back(*metric);
  }
  return metrics;
}

std::string label(const std::string& name) {
  if (base::starts_with(name, "auroc")) return "AUROC" + name.substr(5);
  std::string text = name;
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

bool is_accuracy(const std::string& name) {
  return name == "accuracy" || names_detail::number_behind<int64_t>(name, "top").has_value();
}

double percent(const Value& share) {
  const auto whole = static_cast<double>(share.count);
  return share.count == 0 ? 0 : 100.0 * static_cast<double>(std::llround(share.number * whole)) / whole;
}

}  // namespace sluice::metrics
