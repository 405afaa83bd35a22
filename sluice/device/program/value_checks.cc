#include "sluice/device/program/value_checks.h"

#include "sluice/base/result.h"
#include "sluice/base/text/join.h"
#include "sluice/device/libtorch/torch_error.h"
#include "sluice/device/program/trace.h"
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

// More checks than this are not compared one after the other, which would be as deep as there are checks.
constexpr size_t kMaxChained = 8;

// Returns {which, value} of the first number that is not good; zeros if all are.
Value first_of_few(Builder& b, const std::vector<int64_t>& numbers, const std::vector<Found>& found) {
  const stablehlo::Type number{DType::kS64, {}};
  Value which = b.splat(0, number), value = which;
  for (size_t i = found.size(); i-- > 0;) {
    which = b.select(found[i].good, which, b.splat(numbers[i], number));
    value = b.select(found[i].good, value, found[i].value);
  }
  const Value parts[] = {b.reshape(which, {1}), b.reshape(value, {1})};
  return b.concatenate(parts, 0);
}

// Does so for many, at once.
Value first_of_many(Builder& b, const std::vector<int64_t>& numbers, const std::vector<Found>& found) {
  stablehlo::Values good, values;
  for (const Found& one : found) {
    good.push_back(b.reshape(one.good, {1}));
    values.push_back(b.reshape(one.value, {1}));
  }
  const Value all = b.constant_i64(numbers);
  const stablehlo::Type type = all.type();
  const int64_t none = numbers.back() + 1;
  const Value bad = b.select(b.concatenate(good, 0), b.splat(none, type), all);
  const Value first = b.reduce_min(bad, {0});
  const Value is_first = b.compare(all, b.broadcast(first, type.dims), Compare::kEq);
  const Value value = b.reduce_sum(b.select(is_first, b.concatenate(values, 0), b.splat(0, type)), {0});
  const Value any = b.compare(first, b.splat(none, first.type()), Compare::kLt);
  const Value parts[] = {b.reshape(b.select(any, first, b.splat(0, first.type())), {1}),
                         b.reshape(value, {1})};
  return b.concatenate(parts, 0);
}

}  // namespace

Value emit_value_checks(Builder& b, const std::vector<ops::Expectation>& expectations) {
  std::vector<int64_t> numbers;
  std::vector<Found> found;
  for (size_t i = 0; i < expectations.size(); ++i) {
    if (expectations[i].values.type().numel() == 0) continue;
    numbers.push_back(static_cast<int64_t>(i + 1));
    found.push_back(look_at(b, expectations[i]));
  }
  return found.size() > kMaxChained ? first_of_many(b, numbers, found) : first_of_few(b, numbers, found);
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
