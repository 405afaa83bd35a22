#include "sluice/metrics/metric_name.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/metrics/parse_names.h"

namespace sluice::metrics {
namespace {

using Kind = MetricName::Kind;

constexpr const char* kForms =
    "expected top1, top5, …, precision, recall, f1, auroc (also with _micro, _weighted or _classes after "
    "it), "
    "confusion or perplexity";

// Returns the number after the prefix: 5 of "top5".
template <typename Number>
std::optional<Number> number_after(std::string_view name, std::string_view prefix) {
  if (!base::starts_with(name, prefix)) return std::nullopt;
  return base::number_of<Number>(name.substr(prefix.size()));
}

std::optional<MetricName> averaged(std::string_view name, Average average) {
  if (name == "precision") return MetricName{.kind = Kind::kPrecision, .average = average};
  if (name == "recall") return MetricName{.kind = Kind::kRecall, .average = average};
  if (name == "auroc" && average != Average::kMicro)
    return MetricName{.kind = Kind::kAuroc, .average = average};
  if (const auto beta = number_after<double>(name, "f"); beta && *beta > 0 && std::isfinite(*beta))
    return MetricName{.kind = Kind::kFBeta, .beta = *beta, .average = average};
  return std::nullopt;
}

std::optional<MetricName> one(std::string_view name) {
  if (name == "confusion") return MetricName{.kind = Kind::kConfusion};
  if (name == "perplexity") return MetricName{.kind = Kind::kPerplexity};
  if (const auto k = number_after<std::int64_t>(name, "top"); k && *k >= 1)
    return MetricName{.kind = Kind::kTopK, .k = *k};
  for (const Average average : {Average::kMicro, Average::kWeighted, Average::kClasses})
    if (const std::string_view end = suffix(average); base::ends_with(name, end))
      return averaged(name.substr(0, name.size() - end.size()), average);
  return averaged(name, Average::kMacro);
}

// Suggests the nearest of the usual names.
std::string advice(const std::string& name) {
  std::vector<std::string> known = {"top1", "top5", "confusion", "perplexity"};
  for (const char* base : {"precision", "recall", "f1", "auroc"})
    for (const Average average : {Average::kMacro, Average::kMicro, Average::kWeighted, Average::kClasses})
      if (base != std::string_view("auroc") || average != Average::kMicro)
        known.push_back(base + std::string(suffix(average)));
  const std::string nearest = base::nearest(name, known);
  return nearest.empty() ? "" : base::str("; did you mean \"", nearest, "\"?");
}

// Returns the shortest text that gives the number again.
std::string exact(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

std::string text_of(const MetricName& name) {
  switch (name.kind) {
    case Kind::kTopK:
      return base::str("top", name.k);
    case Kind::kConfusion:
      return "confusion";
    case Kind::kPerplexity:
      return "perplexity";
    case Kind::kPrecision:
      return base::str("precision", suffix(name.average));
    case Kind::kRecall:
      return base::str("recall", suffix(name.average));
    case Kind::kAuroc:
      return base::str("auroc", suffix(name.average));
    case Kind::kFBeta:
      break;
  }
  return base::str("f", exact(name.beta), suffix(name.average));
}

}  // namespace

const char* suffix(Average average) {
  switch (average) {
    case Average::kMicro:
      return "_micro";
    case Average::kWeighted:
      return "_weighted";
    case Average::kClasses:
      return "_classes";
    case Average::kMacro:
      break;
  }
  return "";
}

std::string text_of(const std::vector<MetricName>& names) {
  std::vector<std::string> texts;
  for (const MetricName& name : names) texts.push_back(text_of(name));
  return base::join(texts, ",");
}

base::Result<std::vector<MetricName>> parse_names(const std::string& what, const std::string& text) {
  std::vector<MetricName> names;
  if (text.empty()) return names;
  for (const std::string& part : base::split(text, ',')) {
    const std::string name(base::trim(part));
    const auto read = one(name);
    if (!read)
      return base::fail(Code::kInvalidArgument, what, ": there is no metric \"", name, "\": ", kForms,
                        advice(name));
    if (std::find(names.begin(), names.end(), *read) != names.end())
      return base::fail(Code::kInvalidArgument, what, ": ", name, " is there twice");
    names.push_back(*read);
  }
  return names;
}

base::Status check_names(const std::string& what, const std::vector<MetricName>& names,
                         std::int64_t classes) {
  for (const MetricName& name : names)
    if (name.kind == Kind::kTopK && name.k > classes)
      return base::fail(Code::kInvalidArgument, what, ": ", text_of(name), " needs at least ", name.k,
                        " classes, and there are ", classes);
  return {};
}

}  // namespace sluice::metrics
