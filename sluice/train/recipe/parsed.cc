#include "sluice/train/recipe/parsed.h"

#include <cmath>
#include <string_view>
#include <vector>

#include "sluice/base/error.h"
#include "sluice/base/text/exact_integer.h"
#include "sluice/base/text/number.h"
#include "sluice/data/order/length_buckets.h"
#include "sluice/metrics/parse_names.h"

namespace sluice::train {

template <>
base::Result<MaxBad> parse_value(const std::string& flag, const std::string& text) {
  constexpr auto kMaxSamples = static_cast<double>(base::kMaxExactInteger);
  MaxBad limit{.percent = !text.empty() && text.back() == '%'};
  const std::string_view digits = std::string_view(text).substr(0, text.size() - (limit.percent ? 1 : 0));
  limit.amount = base::number_of<double>(digits).value_or(-1);
  const bool fits = limit.amount >= 0 && limit.amount <= (limit.percent ? 100 : kMaxSamples);
  if (!fits || (!limit.percent && limit.amount != std::floor(limit.amount)))
    return base::fail(Code::kInvalidArgument, flag, " takes a share of at most 100%, such as 0.1%, or ",
                      "a number of samples, such as 25, not '", text, "'");
  return limit;
}

template <>
base::Result<ProfileSteps> parse_value(const std::string& flag, const std::string& text) {
  if (text.empty()) return ProfileSteps();
  const size_t colon = text.find(':');
  const auto number = [&](size_t from, size_t count) {
    return base::number_of<int64_t>(std::string_view(text).substr(from, count)).value_or(0);
  };
  ProfileSteps steps;
  if (colon != std::string::npos) steps = {number(0, colon), number(colon + 1, text.size())};
  if (steps.first < 1 || steps.end <= steps.first)
    return base::fail(Code::kInvalidArgument, flag, " ", text,
                      ": expected FIRST:END with 1 <= FIRST < END, such as 10:13 for the steps 10, 11, 12");
  return steps;
}

template <>
base::Result<Mesh> parse_value(const std::string& flag, const std::string& text) {
  try {
    return Mesh::parse(text);
  } catch (const Error& error) {
    return base::fail(error.code(), flag, ": ", error.what());
  }
}

template <>
base::Result<Resume> parse_value(const std::string& /*flag*/, const std::string& text) {
  if (text == kFromLast) return Resume{.from_last = true};
  return Resume{.folder = text};
}

template <>
base::Result<std::vector<data::LengthShape>> parse_value(const std::string& flag, const std::string& text) {
  if (text.empty()) return std::vector<data::LengthShape>();
  auto shapes = data::read_shapes(text);
  if (!shapes) return base::fail_at(shapes, flag);
  return shapes;
}

template <>
base::Result<std::vector<metrics::MetricName>> parse_value(const std::string& flag, const std::string& text) {
  return metrics::parse_names(flag, text);
}

}  // namespace sluice::train
