// What LibTorch gives, how well it is known, and whether the device agrees.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "tests/fuzz/programs/program.h"

namespace sluice::fuzz {
namespace {

// Relative tolerance of an element type, where that of f32 is `in_f32`.
double tolerance_in(at::ScalarType type, double in_f32) {
  switch (c10::toRealValueType(type)) {
    case at::kDouble:
      return in_f32 * 1e-4;
    case at::kHalf:
      return std::max(in_f32 * 5e2, 5e-3);
    case at::kBFloat16:
      return std::max(in_f32 * 4e3, 4e-2);
    case at::kFloat:
      return in_f32;
    default:
      return 0.2;  // float8
  }
}

double smallest_in(at::ScalarType type) {
  switch (c10::toRealValueType(type)) {
    case at::kDouble:
      return 0x1p-1022;
    case at::kHalf:
      return 0x1p-23;
    case at::kFloat:
    case at::kBFloat16:
      return 0x1p-125;
    default:
      return 0x1p-8;
  }
}

double largest_in(at::ScalarType type) {
  switch (c10::toRealValueType(type)) {
    case at::kDouble:
      return 1.79e308;
    case at::kHalf:
      return 65504;
    default:
      return 3.4e38;
  }
}

std::string number_text(double value) {
  std::ostringstream out;
  out.precision(9);
  if (std::isnan(value)) return "NaN";
  out << value;
  return out.str();
}

std::string class_of(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == 0) return std::signbit(value) ? "-0" : "0";
  return "number";
}

bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && (a != 0 || std::signbit(a) == std::signbit(b));
}

// The values of all runs at one element, plain LibTorch's first.
struct Known {
  std::vector<double> runs;
};

std::string judge(double found, const std::vector<double>& runs, bool either_zero, double relative,
                  double absolute, double largest) {
  const double plain = runs[0];
  double low = std::numeric_limits<double>::infinity(), high = -low;
  bool uniform = true, zeros = true;
  for (double run : runs) {
    if (same(run, found)) return "";
    uniform = uniform && std::isnan(run) == std::isnan(plain) && std::isinf(run) == std::isinf(plain) &&
              (!std::isinf(run) || run == plain);
    zeros = zeros && same(run, plain);
    if (std::isfinite(run)) {
      low = std::min(low, run);
      high = std::max(high, run);
    }
  }
  if (!uniform) return "";
  const std::string kind = class_of(found) + " for " + class_of(plain);
  if (!std::isfinite(plain)) return kind;
  if (!std::isfinite(found))
    return std::max(std::abs(low), std::abs(high)) > 0.9 * largest && std::isinf(found) ? "" : kind;
  if (plain == 0 && found == 0) return zeros && !either_zero ? kind : "";
  const double slack = 2 * (high - low) + relative * std::abs(plain) + absolute;
  if (found >= low - slack && found <= high + slack) return "";
  return kind;
}

at::Tensor as_doubles(const at::Tensor& tensor) {
  at::Tensor plain = tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor;
  return plain.to(at::kDouble).contiguous();
}

std::string shape_text(const at::Tensor& tensor) {
  if (!tensor.defined()) return "no tensor";
  std::ostringstream out;
  out << tensor.scalar_type() << tensor.sizes();
  return out.str();
}

struct Slot {
  at::Tensor found, plain;
  std::vector<at::Tensor> others;
  double tolerance = 1e-5;
  bool either_zero = false;
  bool spread = false;  // an absolute error of the largest number is one of rounding
};

std::optional<Difference> compare_slot(const Slot& slot) {
  Difference difference;
  if (slot.found.defined() != slot.plain.defined()) {
    // A gradient of zeros may be none.
    difference.kind = "undefined";
    difference.text = "LibTorch has " + shape_text(slot.plain) + ", the device " + shape_text(slot.found);
    return difference;
  }
  if (!slot.plain.defined()) return std::nullopt;
  if (slot.found.sizes() != slot.plain.sizes() || slot.found.scalar_type() != slot.plain.scalar_type()) {
    difference.kind = slot.found.sizes() != slot.plain.sizes() ? "shape" : "type";
    difference.text = "LibTorch has " + shape_text(slot.plain) + ", the device " + shape_text(slot.found);
    return difference;
  }
  const at::ScalarType type = slot.plain.scalar_type();
  if (slot.plain.numel() == 0) return std::nullopt;
  const bool fractions = at::isFloatingType(type) || slot.plain.is_complex();
  if (!fractions && at::equal(slot.found, slot.plain)) return std::nullopt;
  const at::Tensor found = as_doubles(slot.found), plain = as_doubles(slot.plain);
  std::vector<at::Tensor> others;
  for (const at::Tensor& other : slot.others) {
    if (other.defined() && other.sizes() == slot.plain.sizes()) others.push_back(as_doubles(other));
  }
  const double relative = fractions ? tolerance_in(type, slot.tolerance) : 0;
  double absolute = fractions ? smallest_in(type) : 0;
  double greatest = 0;
  if (fractions && slot.spread) {
    for (int64_t i = 0; i < plain.numel(); ++i) {
      const double value = plain.data_ptr<double>()[i];
      if (std::isfinite(value)) greatest = std::max(greatest, std::abs(value));
    }
    absolute += relative * greatest;
  }
  int64_t count = 0;
  double distance = 0;
  for (int64_t i = 0; i < plain.numel(); ++i) {
    std::vector<double> runs{plain.data_ptr<double>()[i]};
    for (const at::Tensor& other : others) runs.push_back(other.data_ptr<double>()[i]);
    const double value = found.data_ptr<double>()[i];
    const std::string kind =
        judge(value, runs, slot.either_zero || slot.plain.is_complex(), relative, absolute, largest_in(type));
    if (kind.empty()) continue;
    // A difference of an infinity or of NaN is not within any bound.
    distance = std::max(distance, std::isfinite(value - runs[0]) ? std::abs(value - runs[0]) : INFINITY);
    if (count++ == 0) {
      difference.element = i;
      difference.kind = kind;
      difference.text = "LibTorch " + number_text(runs[0]) + ", the device " + number_text(value);
    }
  }
  if (count > 0) difference.distance = distance;
  if (count == 0) {
    if (fractions) return std::nullopt;
    // Integers beyond the 53rd bit: as they are in one of the runs, or not.
    for (const at::Tensor& other : slot.others) {
      if (other.defined() && !at::equal(other, slot.plain)) return std::nullopt;
    }
    const at::Tensor where = slot.found.ne(slot.plain).reshape({-1}).nonzero();
    if (where.numel() == 0) return std::nullopt;
    difference.element = where[0].item<int64_t>();
    difference.kind = "integer";
    const auto at = [&](const at::Tensor& t) {
      return std::to_string(t.reshape({-1})[difference.element].item<int64_t>());
    };
    difference.text = "LibTorch " + at(slot.plain) + ", the device " + at(slot.found);
  } else if (!fractions) {
    difference.kind = type == at::kBool ? "bool" : "integer";
  }
  return difference;
}

std::string first_line(const std::string& text) {
  return text.substr(0, std::min(text.find('\n'), size_t{200}));
}

bool unsupported(const std::string& error) {
  return error.find("not implemented") != std::string::npos ||
         error.find("not support") != std::string::npos || error.find("Could not run") != std::string::npos;
}

}  // namespace

Expected expect(const Program& program) {
  Expected expected;
  expected.plain = run_on_cpu(program);
  const auto refuse = [](const at::Tensor& tensor) {
    if (tensor.defined() && tensor.scalar_type() == at::kComplexHalf)
      throw std::runtime_error("the device has no complex numbers of two f16");
  };
  for (const at::Tensor& leaf : expected.plain.leaves) refuse(leaf);
  for (const auto& results : expected.plain.results) {
    for (const at::Tensor& result : results) refuse(result);
  }
  if (!expected.plain.error.empty()) return expected;
  const Rounded rounded = find_rounded(program);
  std::vector<Variation> variations(10);
  variations[0].flush = true;
  variations[1].wide = true;
  variations[2].saturate = true;
  const uint64_t seed = program.seed * 7919 + static_cast<uint64_t>(program.number) + 1;
  variations[3].zero_sign = 1;
  variations[4].zero_sign = -1;
  for (size_t i = 5; i < variations.size(); ++i) {
    variations[i].noise = seed + i * 104729;
    variations[i].noise_scale = i < 7 ? 0.25 : 1;
    variations[i].flush = i == 7;
    variations[i].nudge = i == 8;
    variations[i].zero_sign = i == 9 ? 1 : 0;
  }
  for (const Variation& variation : variations) {
    Outcome outcome = run_on_cpu(program, variation, &rounded);
    if (outcome.error.empty()) expected.others.push_back(std::move(outcome));
  }
  return expected;
}

std::optional<Difference> compare(const Program& program, const Expected& expected, const Outcome& found) {
  const Outcome& plain = expected.plain;
  Difference difference;
  if (plain.error.empty() != found.error.empty()) {
    if (unsupported(plain.error)) return std::nullopt;
    difference.step = std::max(plain.error_step, found.error_step);
    difference.kind = plain.error.empty() ? "refused" : "not refused";
    difference.text = plain.error.empty() ? "the device refuses: " + first_line(found.error)
                                          : "LibTorch refuses: " + first_line(plain.error);
    return difference;
  }
  if (!plain.error.empty()) return std::nullopt;
  double tolerance = 1e-6;
  bool spread = false;
  for (size_t step = 0; step < plain.results.size(); ++step) {
    tolerance = std::max(tolerance, program.steps[step].tolerance);
    const std::string& family = program.steps[step].family;
    spread = family != "pointwise" && family != "activation" && family != "view" && family != "shape";
    for (size_t i = 0; i < plain.results[step].size(); ++i) {
      Slot slot{found.results.at(step).at(i),
                plain.results[step][i],
                {},
                tolerance,
                program.steps[step].either_zero,
                spread};
      for (const Outcome& other : expected.others) slot.others.push_back(other.results[step][i]);
      if (auto differs = compare_slot(slot)) {
        differs->step = static_cast<int>(step);
        differs->index = static_cast<int>(i);
        return differs;
      }
    }
  }
  for (size_t i = 0; i < plain.leaves.size(); ++i) {
    Slot slot{found.leaves[i], plain.leaves[i], {}, tolerance, true, spread};
    for (const Outcome& other : expected.others) slot.others.push_back(other.leaves[i]);
    if (auto differs = compare_slot(slot)) {
      differs->step = -1;
      differs->index = static_cast<int>(i);
      differs->kind += ", leaf";
      return differs;
    }
  }
  for (const Step& step : program.steps) {
    if (!step.differentiable) return std::nullopt;
  }
  if (!plain.gradient_error.empty()) {
    if (unsupported(plain.gradient_error) || !found.gradient_error.empty()) return std::nullopt;
    difference.kind = "gradient not refused";
    difference.text = "LibTorch refuses: " + first_line(plain.gradient_error);
  } else if (!found.gradient_error.empty()) {
    difference.kind = "gradient refused";
    difference.text = "the device refuses: " + first_line(found.gradient_error);
  } else {
    for (size_t i = 0; i < plain.gradients.size(); ++i) {
      Slot slot{found.gradients.at(i), plain.gradients[i], {}, 4 * tolerance, true, true};
      for (const Outcome& other : expected.others) {
        if (other.gradients.size() > i) slot.others.push_back(other.gradients[i]);
      }
      if (auto differs = compare_slot(slot)) {
        differs->step = static_cast<int>(program.steps.size());
        differs->index = static_cast<int>(i);
        differs->kind = "gradient: " + differs->kind;
        return differs;
      }
    }
    return std::nullopt;
  }
  difference.step = static_cast<int>(program.steps.size());
  return difference;
}

}  // namespace sluice::fuzz
