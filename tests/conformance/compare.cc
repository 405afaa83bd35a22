#include "tests/conformance/compare.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

namespace sluice::conformance {
namespace {

std::string place(const at::Tensor& tensor, int64_t flat) {
  std::string text;
  for (int64_t d = tensor.dim() - 1; d >= 0; --d) {
    text = std::to_string(flat % tensor.size(d)) + (text.empty() ? "" : ",") + text;
    flat /= tensor.size(d);
  }
  return "[" + text + "]";
}

std::string difference(const at::Tensor& expected, const at::Tensor& a, const at::Tensor& b, int64_t flat,
                       int64_t bad) {
  std::ostringstream out;
  out.precision(9);
  out << "at " << place(expected, flat) << " expected " << b.data_ptr<double>()[flat] << ", found "
      << a.data_ptr<double>()[flat] << " (" << bad << " of " << expected.numel() << " differ)";
  return out.str();
}

bool agrees(double found, double expected, double tolerance) {
  if (std::isnan(found) || std::isnan(expected)) return std::isnan(found) && std::isnan(expected);
  if (std::isinf(found) || std::isinf(expected)) return found == expected;
  return std::abs(found - expected) <= tolerance * (1 + std::abs(expected));
}

// Mean, deviation, and the values that a hundredth lies below and above: the very extremes of an exponential
// or a normal distribution differ too much from draw to draw.
std::array<double, 4> statistics(const at::Tensor& tensor) {
  at::Tensor values = tensor.to(at::kDouble);
  double mean = values.mean().item<double>();
  double deviation = std::sqrt((values - mean).pow(2).mean().item<double>());
  at::Tensor sorted = std::get<0>(values.flatten().sort());
  int64_t hundredth = sorted.numel() / 100;
  return {mean, deviation, sorted[hundredth].item<double>(),
          sorted[sorted.numel() - 1 - hundredth].item<double>()};
}

}  // namespace

std::string compare_strides(const at::Tensor& expected, const at::Tensor& found) {
  if (!expected.defined() || !found.defined() || expected.sizes() != found.sizes() || expected.numel() == 0)
    return "";
  if (!expected.is_non_overlapping_and_dense()) return "";  // a copy of a whole storage
  for (int64_t d = 0; d < expected.dim(); ++d) {
    if (expected.size(d) == 1 || expected.stride(d) == found.stride(d)) continue;
    std::ostringstream out;
    out << "expected strides " << expected.strides() << ", found " << found.strides();
    return out.str();
  }
  return "";
}

std::string compare_kind(const at::Tensor& expected, const at::Tensor& found) {
  std::ostringstream out;
  if (expected.defined() != found.defined()) {
    out << "expected " << (expected.defined() ? "a tensor" : "an undefined tensor") << ", found the other";
  } else if (expected.defined() && expected.scalar_type() != found.scalar_type()) {
    out << "expected dtype " << expected.scalar_type() << ", found " << found.scalar_type();
  } else if (expected.defined() && expected.sizes() != found.sizes()) {
    out << "expected shape " << expected.sizes() << ", found " << found.sizes();
  }
  return out.str();
}

std::string compare_values(const at::Tensor& expected, const at::Tensor& found, Tolerance tolerance) {
  if (!expected.defined() || expected.numel() == 0) return "";
  if (expected.is_complex())
    return compare_values(at::view_as_real(expected.resolve_conj()), at::view_as_real(found.resolve_conj()),
                          tolerance);
  bool floating = at::isFloatingType(expected.scalar_type());
  // Integers above 2^53 do not survive the way through double.
  bool equal = expected.scalar_type() == found.scalar_type() && at::equal(expected, found);
  if (equal) return "";
  double limit = floating && !tolerance.bits ? tolerance.value : 0;
  at::Tensor a = found.to(at::kDouble).contiguous(), b = expected.to(at::kDouble).contiguous();
  const double* found_values = a.data_ptr<double>();
  const double* expected_values = b.data_ptr<double>();
  int64_t bad = 0, first = -1;
  for (int64_t i = 0; i < a.numel(); ++i) {
    if (agrees(found_values[i], expected_values[i], limit)) continue;
    if (first < 0) first = i;
    ++bad;
  }
  if (bad > 0) return difference(expected, a, b, first, bad);
  return floating ? "" : "integers differ beyond the 53rd bit";
}

std::string compare_statistics(const at::Tensor& expected, const at::Tensor& found) {
  if (expected.numel() == 0) return "";
  auto want = statistics(expected), got = statistics(found);
  double spread = want[1] + 1e-12;
  double noise = 6 * spread / std::sqrt(static_cast<double>(expected.numel()));
  double range = 0.3 * (want[3] - want[2]) + 1e-12;
  // The hundredth of whole numbers may fall on the next one.
  const at::Tensor values = found.to(at::kDouble);
  if (at::equal(values, values.round())) range = std::max(range, 1.0);
  bool fine = std::abs(want[0] - got[0]) <= 2 * noise && std::abs(want[1] - got[1]) <= 3 * noise &&
              std::abs(want[2] - got[2]) <= range && std::abs(want[3] - got[3]) <= range;
  if (fine) return "";
  std::ostringstream out;
  out << "expected mean, deviation, first and last hundredth near " << want[0] << ", " << want[1] << ", "
      << want[2] << ", " << want[3] << ", found " << got[0] << ", " << got[1] << ", " << got[2] << ", "
      << got[3];
  return out.str();
}

}  // namespace sluice::conformance
