// Making a program smaller while the device still differs.
#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "tests/fuzz/programs/program.h"

namespace sluice::fuzz {
namespace {

// Operands that used the results of a step use leaves of the same values, and later steps move up.
std::optional<Program> without_step(const Program& program, size_t gone, const Outcome& plain) {
  Program smaller = program;
  std::map<int, int> leaf_of;
  smaller.steps.erase(smaller.steps.begin() + static_cast<std::ptrdiff_t>(gone));
  for (size_t s = gone; s < smaller.steps.size(); ++s) {
    for (Operand& operand : smaller.steps[s].operands) {
      if (!operand.value || operand.value->step < static_cast<int>(gone)) continue;
      if (operand.value->step > static_cast<int>(gone)) {
        --operand.value->step;
        continue;
      }
      const int index = operand.value->index;
      if (!leaf_of.count(index)) {
        if (gone >= plain.results.size()) return std::nullopt;
        const at::Tensor& value = plain.results[gone].at(static_cast<size_t>(index));
        if (!value.defined()) return std::nullopt;
        leaf_of[index] = static_cast<int>(smaller.leaves.size());
        const bool gradient =
            program.gradients && (at::isFloatingType(value.scalar_type()) || value.is_complex());
        smaller.leaves.push_back({value.contiguous().clone(), gradient});
      }
      operand.value = ValueId{-1, leaf_of[index]};
    }
  }
  return smaller;
}

Program without_unused_leaves(Program program) {
  std::vector<int> new_index(program.leaves.size(), -1);
  std::vector<Leaf> kept;
  for (Step& step : program.steps) {
    for (Operand& operand : step.operands) {
      if (!operand.value || operand.value->step >= 0) continue;
      int& index = new_index[static_cast<size_t>(operand.value->index)];
      if (index < 0) {
        index = static_cast<int>(kept.size());
        kept.push_back(program.leaves[static_cast<size_t>(operand.value->index)]);
      }
      operand.value->index = index;
    }
  }
  program.leaves = kept;
  return program;
}

class Shrinker {
 public:
  Shrinker(Program program, const std::function<bool(const Program&)>& differs, int tries)
      : program_(std::move(program)), differs_(differs), tries_(tries) {}

  Program shrink() {
    for (bool changed = true; changed && tries_ > 0;) {
      changed = steps() | options() | shapes();
      changed = values() || changed;
    }
    return program_;
  }

 private:
  bool take(Program smaller) {
    if (tries_-- <= 0) return false;
    smaller = without_unused_leaves(std::move(smaller));
    if (!differs_(smaller)) return false;
    program_ = std::move(smaller);
    return true;
  }

  bool steps() {
    bool changed = false;
    for (size_t i = program_.steps.size(); i-- > 0 && program_.steps.size() > 1;) {
      if (i >= program_.steps.size()) continue;
      Program all = program_;
      all.keep_all = true;
      if (auto smaller = without_step(program_, i, run_on_cpu(all))) changed = take(*smaller) || changed;
    }
    return changed;
  }

  bool options() {
    bool changed = false;
    if (program_.gradients) {
      Program smaller = program_;
      smaller.gradients = false;
      changed = take(smaller) || changed;
    }
    if (!program_.keep_all) {
      Program smaller = program_;
      smaller.keep_all = true;
      changed = take(smaller) || changed;
    }
    for (size_t i = 0; program_.gradients && i < program_.leaves.size(); ++i) {
      if (!program_.leaves[i].gradient) continue;
      Program smaller = program_;
      smaller.leaves[i].gradient = false;
      changed = take(smaller) || changed;
    }
    for (size_t s = 0; s < program_.steps.size(); ++s) {
      if (program_.steps[s].in_place) {
        Program smaller = program_;
        smaller.steps[s].in_place = false;
        changed = take(smaller) || changed;
      }
      for (size_t i = 0; i < program_.steps[s].operands.size(); ++i) {
        for (bool type : {true, false}) {
          if (type ? !program_.steps[s].operands[i].type : !program_.steps[s].operands[i].shape) continue;
          Program smaller = program_;
          if (type) {
            smaller.steps[s].operands[i].type.reset();
          } else {
            smaller.steps[s].operands[i].shape.reset();
          }
          changed = take(smaller) || changed;
        }
      }
    }
    return changed;
  }

  // All leaves of one size in a dimension counted from the last, and what operands are cut to, down to one
  // element.
  bool shapes() {
    bool changed = false;
    for (int64_t back = 1; back <= 4; ++back) {
      std::set<int64_t> sizes;
      for (const Leaf& leaf : program_.leaves) {
        if (leaf.value.dim() >= back && leaf.value.size(-back) > 1) sizes.insert(leaf.value.size(-back));
      }
      for (int64_t size : sizes) {
        for (int64_t start = 0; start < std::min<int64_t>(size, 8); ++start) {
          Program smaller = program_;
          for (Leaf& leaf : smaller.leaves) {
            if (leaf.value.dim() >= back && leaf.value.size(-back) == size)
              leaf.value = leaf.value.narrow(-back, start, 1).clone();
          }
          for (Step& step : smaller.steps) {
            for (Operand& operand : step.operands) {
              if (!operand.shape || static_cast<int64_t>(operand.shape->size()) < back) continue;
              int64_t& dim = (*operand.shape)[operand.shape->size() - static_cast<size_t>(back)];
              if (dim == size) dim = 1;
            }
          }
          if (take(smaller)) {
            changed = true;
            break;
          }
        }
      }
    }
    return changed;
  }

  bool values() {
    bool changed = false;
    for (size_t i = 0; i < program_.leaves.size(); ++i) {
      for (double simple : {1.0, 0.0, 2.0}) {
        const at::Tensor& value = program_.leaves[i].value;
        const at::Tensor filled = at::full_like(value, simple);
        if (at::equal(filled, value)) break;
        Program smaller = program_;
        smaller.leaves[i].value = filled;
        if (take(smaller)) {
          changed = true;
          break;
        }
      }
      if (program_.leaves[i].value.numel() > 8 || program_.leaves[i].value.is_complex()) continue;
      for (int64_t k = 0; k < program_.leaves[i].value.numel(); ++k) {
        const double now = program_.leaves[i].value.reshape({-1})[k].to(at::kDouble).item<double>();
        for (double simple : {1.0, 0.0, std::round(now)}) {
          if (now == simple || (simple != 0 && (now == 1 || now == 0)) || !std::isfinite(simple) ||
              std::abs(simple) > 1e9)
            continue;
          Program smaller = program_;
          at::Tensor copy = program_.leaves[i].value.clone();
          copy.view({-1})[k].fill_(simple);
          smaller.leaves[i].value = copy;
          if (take(smaller)) {
            changed = true;
            break;
          }
        }
      }
    }
    return changed;
  }

  Program program_;
  const std::function<bool(const Program&)>& differs_;
  int tries_;
};

}  // namespace

Program shrink(Program program, const std::function<bool(const Program&)>& differs, int tries) {
  return Shrinker(std::move(program), differs, tries).shrink();
}

}  // namespace sluice::fuzz
