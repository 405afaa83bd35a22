#include "sluice/device/value_checks.h"

#include "sluice/base/result.h"
#include "sluice/base/strings.h"
#include "sluice/device/libtorch/torch_error.h"
#include "sluice/device/trace.h"
#include "sluice/ops/common.h"

namespace sluice::device {
namespace {

using stablehlo::Builder;
using stablehlo::Compare;
using stablehlo::DType;
using stablehlo::Value;
using Rule = ops::Expectation::Rule;

// Whether one operand's values are as expected, and the value furthest outside. Both are 0-d.
struct Found {
  Value good, value;
};

Found look_at(Builder& b, const ops::Expectation& expected) {
  Value x = expected.values;
  if (expected.rule != Rule::kRange) {
    const Value bad = expected.rule == Rule::kNonzero ? b.compare(x, b.splat(0, x.type()), Compare::kEq)
                                                      : ops::is_nan(b, x);
    return {b.not_(b.reduce_or(bad, ops::all_dims(x))), b.splat(0, {DType::kS64, {}})};
  }
  x = b.convert(x, DType::kS64);
  if (expected.except) {
    const Value excepted = b.compare(x, b.splat(*expected.except, x.type()), Compare::kEq);
    x = b.select(excepted, b.splat(expected.low, x.type()), x);
  }
  const stablehlo::Dims all = ops::all_dims(x);
  const Value largest = b.reduce_max(x, all), smallest = b.reduce_min(x, all);
  const Value below = b.compare(smallest, b.splat(expected.low, smallest.type()), Compare::kLt);
  const Value above = b.compare(largest, b.splat(expected.high, largest.type()), Compare::kGe);
  return {b.not_(b.or_(below, above)), b.select(above, largest, smallest)};
}

std::string message(const ValueCheck& check, int64_t found, const std::string& program) {
  const std::string& layer = Names::name(check.layer);
  const std::string who = base::str(check.operation, layer.empty() ? "" : base::str(" (layer ", layer, ")"),
                                    ": ", check.argument);
  if (check.rule == Rule::kNoNaN)
    return base::str(who, " holds NaN, and nothing that ", program, " computed before it does");
  const std::string expected = check.rule == Rule::kNonzero
                                   ? "other integers"
                                   : base::str("values from ", check.low, " to ", check.high - 1,
                                               check.except ? base::str(", or ", *check.except) : "");
  return base::str(who, " holds ", found, ", expected ", expected, "; ", program,
                   " found it and continued with another value (SLUICE_CHECK=0 turns this check off)");
}

}  // namespace

Value emit_value_checks(Builder& b, const std::vector<ops::Expectation>& expectations) {
  const stablehlo::Type number{DType::kS64, {}};
  Value which = b.splat(0, number), value = which;
  for (size_t i = expectations.size(); i-- > 0;) {
    if (expectations[i].values.type().numel() == 0) continue;
    const Found found = look_at(b, expectations[i]);
    which = b.select(found.good, which, b.splat(static_cast<int64_t>(i + 1), number));
    value = b.select(found.good, value, found.value);
  }
  const Value parts[] = {b.reshape(which, {1}), b.reshape(value, {1})};
  return b.concatenate(parts, 0);
}

FoundValues::FoundValues(std::vector<pjrt::Buffer> results)
    : results_(std::move(results)), host_(results_.size()) {
  for (size_t r = 0; r < results_.size(); ++r)
    copied_.push_back(base::value_or_throw(results_[r].to_host(host_[r].data(), sizeof host_[r])));
}

void FoundValues::check(const std::vector<ValueCheck>& checks, const std::string& program) {
  std::vector<pjrt::Event> copied;
  copied.swap(copied_);
  for (size_t r = 0; r < copied.size(); ++r) {
    if (auto status = copied[r].await(); !status) throw_error(status.error());
    const auto [which, value] = host_[r];
    if (which == 0) continue;
    throw TorchError(WrongValue(message(checks.at(static_cast<size_t>(which - 1)), value, program)));
  }
}

}  // namespace sluice::device
