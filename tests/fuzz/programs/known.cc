// The differences that docs/device.md says: the last column of its table of special values.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <stdexcept>

#include "tests/fuzz/programs/program.h"

namespace sluice::fuzz {
namespace {

std::string short_name(const std::string& op) {
  std::string name = op.substr(op.find("::") + 2);
  return name.substr(0, name.find('.'));
}

}  // namespace

// Reads a cell: `log(exp)`, `fmax = ±0` (the sign of a zero), `rsqrt = NaN` (a NaN on one side), `gelu =
// 6e-7` (numbers that are no further apart).
void Known::add(const std::string& cell) {
  for (size_t start = cell.find('`'); start != std::string::npos;) {
    const size_t end = cell.find('`', start + 1);
    if (end == std::string::npos) return;
    std::string text = cell.substr(start + 1, end - start - 1);
    start = cell.find('`', end + 1);
    Pattern pattern;
    const size_t sign = text.find(" = ");
    if (sign != std::string::npos) {
      const std::string kind = text.substr(sign + 3);
      pattern.nan = kind == "NaN";
      pattern.zero_sign = kind == "±0";
      if (!pattern.nan && !pattern.zero_sign) pattern.bound = std::stod(kind);
      text.resize(sign);
    }
    const size_t inner = text.find('(');
    pattern.op = text.substr(0, inner);
    if (inner != std::string::npos) pattern.under = text.substr(inner + 1, text.size() - inner - 2);
    patterns_.push_back(pattern);
  }
}

Known::Known(const std::string& page) {
  std::ifstream file(page);
  if (!file) throw std::runtime_error("cannot read " + page);
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("## ", 0) == 0) inside = line == "## Special values";
    if (!inside || line.size() < 2 || line[0] != '|') continue;
    const size_t last = line.rfind('|', line.size() - 2);
    add(line.substr(last));
  }
  if (patterns_.empty()) throw std::runtime_error(page + " has no patterns in its table of special values");
}

bool Known::either_zero(const Step& step) const {
  if (step.exact_layout) return false;
  if (step.family != "pointwise" && step.family != "activation" && step.family != "view" &&
      step.family != "shape" && step.family != "compare")
    return true;
  const std::string name = short_name(step.op);
  return std::any_of(patterns_.begin(), patterns_.end(),
                     [&](const Pattern& pattern) { return pattern.zero_sign && pattern.op == name; });
}

bool Known::leads_to(const Program& program, const ValueId& id, const std::string& name, int depth) const {
  const auto type_is = [&](at::ScalarType type) { return name == c10::toString(type); };
  if (id.step < 0) return type_is(program.leaves[static_cast<size_t>(id.index)].value.scalar_type());
  const Step& step = program.steps[static_cast<size_t>(id.step)];
  if (short_name(step.op) == name) return true;
  if (step.op == "aten::to.dtype" && type_is(static_cast<at::ScalarType>(step.arguments[1].value.toInt())))
    return true;
  if (depth == 0) return false;
  return std::any_of(step.operands.begin(), step.operands.end(), [&](const Operand& operand) {
    return operand.value &&
           (leads_to(program, *operand.value, name, depth - 1) || (operand.type && type_is(*operand.type)));
  });
}

bool Known::matches(const Program& program, size_t index, const Difference& difference) const {
  const Step& step = program.steps[index];
  const std::string name = short_name(step.op);
  for (const Pattern& pattern : patterns_) {
    if (pattern.zero_sign || pattern.op != name) continue;
    if (pattern.nan && difference.kind.find("NaN") == std::string::npos) continue;
    if (std::isfinite(pattern.bound) && !(difference.distance <= pattern.bound)) continue;
    if (pattern.under.empty() || leads_to(program, {static_cast<int>(index), 0}, pattern.under, 4)) {
      if (pattern.under.empty()) return true;
      for (const Operand& operand : step.operands) {
        if (!operand.value) continue;
        if (operand.type && pattern.under == c10::toString(*operand.type)) return true;
        if (leads_to(program, *operand.value, pattern.under, 3)) return true;
      }
    }
  }
  return false;
}

bool Known::explains(const Program& program, const Difference& difference) const {
  std::vector<bool> touched(program.steps.size());
  bool any = false, in_gradient = false;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    touched[i] = matches(program, i, difference);
    for (const Operand& operand : program.steps[i].operands) {
      if (operand.value && operand.value->step >= 0 && touched[static_cast<size_t>(operand.value->step)])
        touched[i] = true;
    }
    any = any || touched[i];
    const std::string name = short_name(program.steps[i].op);
    in_gradient = in_gradient || std::any_of(patterns_.begin(), patterns_.end(), [&](const Pattern& pattern) {
                    return pattern.op == "gradient" && pattern.under == name;
                  });
  }
  if (in_gradient && difference.step == static_cast<int>(program.steps.size())) return true;
  if (difference.step < 0 || difference.step >= static_cast<int>(program.steps.size())) return any;
  return touched[static_cast<size_t>(difference.step)];
}

}  // namespace sluice::fuzz
