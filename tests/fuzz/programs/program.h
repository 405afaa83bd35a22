// A random program of a few operations, as data: made from (seed, number) alone, run on any device, compared,
// shrunk and written as C++. README.md says what the fuzzer checks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/conformance/call.h"
#include "tests/conformance/sample.h"

namespace sluice::fuzz {

using conformance::Op;

// A value of the program: a leaf (step -1), or a result of a step.
struct ValueId {
  int step = -1;
  int index = 0;
  bool operator==(const ValueId&) const = default;
};

// A tensor argument: a value, cast and cut to what the operation takes.
struct Operand {
  std::optional<ValueId> value;  // none: an absent tensor
  std::optional<at::ScalarType> type;
  std::optional<std::vector<int64_t>> shape;  // the first elements in row-major order, repeated when too few
};

struct Step {
  std::string op;  // "aten::add.Tensor"
  bool in_place = false;
  std::string family;                           // the row's file: "pointwise"
  std::vector<conformance::Planned> arguments;  // their tensors are numbers of `operands`
  std::vector<Operand> operands;
  std::string floating = "f32";  // what a dtype argument `float` means
  double tolerance = 1e-5;       // relative, of a result in f32
  bool differentiable = true;    // the gradients have LibTorch's values
  bool either_zero = false;      // a zero of the result may have either sign
  bool exact_layout = false;     // a view or a copy of elements
};

struct Leaf {
  at::Tensor value;  // on the host
  bool gradient = false;
};

struct Program {
  uint64_t seed = 0;
  int64_t number = 0;
  std::vector<Leaf> leaves;
  std::vector<Step> steps;
  bool gradients = false;
  bool keep_all = true;  // every result is a result of the program; else the last step's alone
};

// How LibTorch's CPU computes it: as it does, or as it may as well. An element that the other ways change is
// known as well as they agree.
struct Variation {
  uint64_t noise = 0;         // seed of rounding noise in every result that is rounded; 0: none
  double noise_scale = 0.25;  // of the step's tolerance
  bool flush = false;         // subnormal numbers count as 0
  bool saturate = false;      // a conversion to integers gives the nearest integer, of NaN 0
  bool wide = false;          // what rounds computes in f64, and rounds its result
  bool nudge = false;         // the argument of a transcendental function is rounded
  int zero_sign = 0;          // 1 or -1: of the zeros that may have either
};

// What is rounded, by the reference run: one mask for each result, undefined where nothing is.
struct Rounded {
  std::vector<std::vector<at::Tensor>> masks;
  std::vector<bool> transcendental;  // of one operand, and rounded where that is not a simple number
  std::vector<std::vector<at::ScalarType>> types;  // of each result
};

struct Outcome {
  std::vector<at::Tensor> leaves;  // their values afterwards: views are written through
  std::vector<std::vector<at::Tensor>> results;
  std::vector<at::Tensor> gradients;  // of the leaves that have one, in their order
  std::string error, gradient_error;
  int error_step = -1;
};

// One run on one device, step by step.
class Execution {
 public:
  Execution(const Program& program, at::Device device, const Variation& variation = {},
            const Rounded* rounded = nullptr);
  // Whether the step could be called; else the outcome has its error and no further step is run.
  bool step(size_t index);
  void gradients();
  // Leaves what is compared, in dense memory; lets go of everything else.
  void finish();
  // Brings the results to the host.
  Outcome& bring();
  Outcome& outcome() { return outcome_; }
  const Outcome& outcome() const { return outcome_; }
  const at::Tensor& value(const ValueId& id) const;
  // Which elements of the last step's results are rounded: those that f64 has otherwise.
  std::vector<at::Tensor> rounded_of(size_t index) const;
  bool is_transcendental(size_t index) const;
  bool failed() const { return outcome_.error_step >= 0; }

 private:
  at::Tensor operand(const Step& step, const Operand& operand, bool widen, uint64_t noise) const;
  torch::jit::Stack bind(const Step& step, const Op& op, bool widen, uint64_t noise) const;
  void vary(size_t index);

  const Program& program_;
  at::Device device_;
  Variation variation_;
  const Rounded* rounded_;
  Outcome outcome_;
};

// All of a program on the CPU in one way.
Outcome run_on_cpu(const Program& program, const Variation& variation = {}, const Rounded* rounded = nullptr);
Rounded find_rounded(const Program& program);
std::optional<Op> step_op(const Step& step);

// The rows' samples by operation, without those that a program cannot use: random numbers, fallbacks.
struct Template {
  conformance::Sample sample;
  std::string family;
};
class Catalogue {
 public:
  Catalogue(const std::string& folder, const std::string& pattern);
  struct Row {
    std::string name, family;
    std::vector<Template> samples;
    bool differentiable = false;  // gradients are compared in one sample at least
  };
  const Row& pick(std::mt19937_64& random) const;
  size_t rows() const { return rows_.size(); }
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  std::vector<Row> rows_;
  std::vector<double> sums_;
  std::vector<std::string> left_out_;
};

class Known;
// The program of (seed, number).
Program make_program(const Catalogue& catalogue, const Known& known, uint64_t seed, int64_t number);

struct Difference {
  int step = -1;  // the first step whose result differs; steps.size() for a gradient
  int index = 0;  // the result, or the leaf of a gradient
  int64_t element = -1;
  std::string kind;            // "inf, not 100", for groups
  double distance = INFINITY;  // the largest between two numbers
  std::string text;
  std::string what() const { return text; }
};

// What LibTorch gives and how well it is known.
struct Expected {
  Outcome plain;
  std::vector<Outcome> others;
};
Expected expect(const Program& program);
std::optional<Difference> compare(const Program& program, const Expected& expected, const Outcome& found);

// The program as C++, with the values of its leaves.
std::string as_code(const Program& program, const Outcome& plain);
// "log(exp), f32" : the operations that lead to the difference.
std::string chain(const Program& program, const Difference& difference);
std::string element_text(const Outcome& outcome, const Difference& difference);

// The differences that the table of special values in docs/device.md names. In its last column `log(exp)` is
// log of what exp has to do with, up to three operations before; `topk` any call of topk; `mul(Bool)` mul of
// an operand of bool; `gradient(div)` a gradient through div; `fmax = ±0` that a zero which fmax gives may
// have either sign; `rsqrt = NaN` that one of the two values is NaN, in a result that depends on rsqrt.
class Known {
 public:
  explicit Known(const std::string& page);
  // Whether a zero of the step's result may have either sign: also of what adds up.
  bool either_zero(const Step& step) const;
  // Whether the difference is in the result of a pattern, or in what depends on it.
  bool explains(const Program& program, const Difference& difference) const;

 private:
  struct Pattern {
    std::string op, under;
    bool zero_sign = false, nan = false;
    double bound = INFINITY;  // of the distance between the two numbers
  };
  void add(const std::string& cell);
  bool matches(const Program& program, size_t index, const Difference& difference) const;
  bool leads_to(const Program& program, const ValueId& id, const std::string& name, int depth) const;

  std::vector<Pattern> patterns_;
};

// Makes the program smaller while `differs` holds.
Program shrink(Program program, const std::function<bool(const Program&)>& differs, int tries);

}  // namespace sluice::fuzz
