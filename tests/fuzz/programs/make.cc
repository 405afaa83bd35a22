// Making the program of (seed, number): chains of the rows' samples, each with earlier results in its
// arguments.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "sluice/ops/families.h"
#include "tests/fuzz/programs/program.h"

namespace sluice::fuzz {
namespace {

using conformance::Inputs;
using conformance::Planned;
using conformance::Sample;

constexpr int64_t kMaxElements = 4000;

struct Family {
  const char* name;
  std::span<const ops::Row> (*rows)();
  double weight;  // how often a step is of it
};
const Family kFamilies[] = {
    {"pointwise", ops::pointwise_rows, 40},
    {"activation", ops::activation_rows, 8},
    {"compare", ops::compare_rows, 5},
    {"reduce", ops::reduce_rows, 14},
    {"shape", ops::shape_rows, 8},
    {"view", ops::view_rows, 2},
    {"index", ops::index_rows, 5},
    {"softmax", ops::softmax_rows, 3},
    {"matmul", ops::matmul_rows, 3},
    {"normalization", ops::normalization_rows, 3},
    {"loss", ops::loss_rows, 3},
    {"pooling", ops::pooling_rows, 2},
    {"convolution", ops::convolution_rows, 2},
    {"create", ops::create_rows, 1},
    {"distance", ops::distance_rows, 1},
    {"complex", ops::complex_rows, 2},
    {"quantize", ops::quantize_rows, 1},
    {"resample", ops::resample_rows, 1},
    {"patches", ops::patches_rows, 1},
    {"float8", ops::float8_rows, 0.5},
    {"attention", ops::attention_rows, 0.4},
    {"recurrent", ops::recurrent_rows, 0.2},
    {"linear_algebra", ops::linear_algebra_rows, 0.3},
    {"fft", ops::fft_rows, 0.5},
};
// Steps that are no row's sample: views and conversions.
constexpr double kViews = 9, kConversions = 12;

bool elementwise(const std::string& family) {
  return family == "pointwise" || family == "activation" || family == "compare";
}

bool fractional(at::ScalarType type) { return at::isFloatingType(type); }

std::vector<double> special_numbers(at::ScalarType type) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> numbers{0.0, -0.0, inf, -inf, nan, 1,   -1,   0.5,      -0.5,
                              2,   -2,   3,   89,   -89, 710, 1e-4, 16777217, 0.1};
  const std::vector<double> wide{1e20,  -1e20,        1e-20,         -1e-20,         1e-40, -1e-40,
                                 1e-45, 3.4028234e38, -3.4028234e38, 1.17549435e-38, 1e10,  1e30};
  const std::vector<double> f16{65504, -65504, 6e-8, 6.1e-5, 300};
  const auto& more = type == at::kHalf ? f16 : wide;
  numbers.insert(numbers.end(), more.begin(), more.end());
  if (type == at::kDouble)
    numbers.insert(numbers.end(), {1e300, 1e-300, 5e-324, 1.7976931348623157e308, 1e200});
  return numbers;
}

std::vector<int64_t> special_integers(at::ScalarType type) {
  std::vector<int64_t> numbers{0, 1, -1, 2, 3, 7, -2, -128, 127};
  if (type == at::kByte) numbers = {0, 1, 2, 3, 7, 127, 128, 255};
  if (type == at::kShort) numbers.insert(numbers.end(), {-32768, 32767});
  if (type == at::kInt)
    numbers.insert(numbers.end(),
                   {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max(), 46341});
  if (type == at::kLong)
    numbers.insert(numbers.end(), {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(),
                                   int64_t{1} << 31, int64_t{1} << 53, 3037000500});
  return numbers;
}

class Maker {
 public:
  Maker(const Catalogue& catalogue, uint64_t seed, int64_t number) : catalogue_(catalogue) {
    program_.seed = seed;
    program_.number = number;
    std::seed_seq seeds{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                        static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32)};
    random_.seed(seeds);
  }

  Program make() {
    program_.gradients = chance(0.4);
    program_.keep_all = chance(0.4);
    const int64_t steps = 2 + below(7);
    first_leaf();
    for (int tries = 0; static_cast<int64_t>(program_.steps.size()) < steps && tries < 40; ++tries) {
      if (ended_) break;
      add_step();
    }
    return program_;
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool chance(double p) { return static_cast<double>(random_() >> 11) * 0x1p-53 < p; }
  template <typename T>
  const T& one_of(const std::vector<T>& items) {
    return items[static_cast<size_t>(below(static_cast<int64_t>(items.size())))];
  }
  double uniform(double low, double high) {
    return low + (high - low) * (static_cast<double>(random_() >> 11) * 0x1p-53);
  }
  double normal() {
    return std::sqrt(-2 * std::log(uniform(1e-12, 1))) * std::cos(6.283185307179586 * uniform(0, 1));
  }

  at::Tensor numbers(at::ScalarType type, const std::vector<int64_t>& shape) {
    at::Tensor values = at::empty(shape, type == at::kBool || !fractional(type) ? at::kLong : at::kDouble);
    const int64_t count = values.numel();
    const int style = static_cast<int>(below(10));
    if (type == at::kBool) {
      for (int64_t i = 0; i < count; ++i)
        values.data_ptr<int64_t>()[i] = style == 0 ? 0 : style == 1 ? 1 : below(2);
      return values.to(type);
    }
    if (!fractional(type)) {
      const std::vector<int64_t> special = special_integers(type);
      for (int64_t i = 0; i < count; ++i) {
        values.data_ptr<int64_t>()[i] = style < 6   ? (type == at::kByte ? below(10) : below(13) - 4)
                                        : style < 9 ? one_of(special)
                                                    : special[0];
      }
      return values.to(type);
    }
    const std::vector<double> special = special_numbers(type);
    const double same = one_of(special);
    for (int64_t i = 0; i < count; ++i) {
      double value = normal();
      if (style == 3) value = static_cast<double>(below(7) - 3);
      if (style == 4) value = uniform(0.1, 2.1);
      if ((style == 5 || style == 6) && chance(0.3)) value = one_of(special);
      if (style == 7 || style == 8) value = one_of(special);
      if (style == 9) value = same;
      values.data_ptr<double>()[i] = value;
    }
    return values.to(type);
  }

  ValueId add_leaf(const at::Tensor& value) {
    Leaf leaf{value, false};
    leaf.gradient = program_.gradients && (fractional(value.scalar_type()) || value.is_complex()) &&
                    chance(0.8) && !c10::isFloat8Type(value.scalar_type());
    program_.leaves.push_back(leaf);
    if (state_) state_->outcome().leaves.push_back(value);
    return {-1, static_cast<int>(program_.leaves.size()) - 1};
  }

  at::ScalarType any_type() {
    static const std::vector<at::ScalarType> types{
        at::kFloat, at::kFloat, at::kFloat, at::kFloat,  at::kFloat,    at::kFloat,
        at::kFloat, at::kFloat, at::kFloat, at::kDouble, at::kBFloat16, at::kHalf,
        at::kLong,  at::kInt,   at::kChar,  at::kByte,   at::kBool,     at::kShort};
    return one_of(types);
  }

  void first_leaf() {
    static const std::vector<std::vector<int64_t>> shapes{{},     {1},    {0},       {3},    {5},
                                                          {2, 3}, {3, 4}, {1, 5},    {0, 3}, {2, 3, 4},
                                                          {4, 1}, {17},   {2, 1, 3}, {6},    {3, 40}};
    add_leaf(numbers(any_type(), one_of(shapes)));
  }

  // Values so far, the newest first.
  std::vector<ValueId> values() const {
    std::vector<ValueId> ids;
    for (int step = static_cast<int>(program_.steps.size()) - 1; step >= 0; --step) {
      const auto& results = state_->outcome().results[static_cast<size_t>(step)];
      for (size_t i = 0; i < results.size(); ++i) {
        if (results[i].defined()) ids.push_back({step, static_cast<int>(i)});
      }
    }
    for (int leaf = static_cast<int>(program_.leaves.size()) - 1; leaf >= 0; --leaf)
      ids.push_back({-1, leaf});
    return ids;
  }

  const at::Tensor& tensor(const ValueId& id) const { return state_->value(id); }

  std::optional<ValueId> pick(const std::function<bool(const at::Tensor&)>& fits) {
    std::vector<ValueId> fitting;
    for (const ValueId& id : values()) {
      if (fits(tensor(id))) fitting.push_back(id);
    }
    if (fitting.empty()) return std::nullopt;
    if (chance(0.6)) return fitting[0];
    return one_of(fitting);
  }

  void add_step() {
    // Leaves that an attempt added and no step needs go again.
    const size_t leaves = program_.leaves.size();
    state_.emplace(program_, at::kCPU);
    for (size_t i = 0; i < program_.steps.size(); ++i) state_->step(i);
    Step step;
    const double sum = 108 + kViews + kConversions;
    const double chosen = uniform(0, sum);
    bool made = chosen < kViews                  ? view_step(step)
                : chosen < kViews + kConversions ? conversion_step(step)
                                                 : sample_step(step);
    if (!made || !accept(step)) program_.leaves.resize(leaves);
  }

  bool accept(const Step& step) {
    const bool gradients = program_.gradients;
    program_.steps.push_back(step);
    Execution trial(program_, at::kCPU);
    bool good = true;
    for (size_t i = 0; i < program_.steps.size() && good; ++i) good = trial.step(i);
    bool keep = good;
    if (good) {
      int64_t elements = 0;
      for (const at::Tensor& result : trial.outcome().results.back()) {
        if (!result.defined()) continue;
        elements += result.numel();
        if (result.is_sparse() || result.is_quantized() || result.scalar_type() == at::kComplexHalf)
          keep = false;
      }
      keep = keep && elements <= kMaxElements && !trial.outcome().results.back().empty();
      if (keep && gradients && step.in_place) {
        // What autograd refuses because a saved value was overwritten is LibTorch's to test.
        trial.gradients();
        if (!trial.outcome().gradient_error.empty()) keep = false;
      }
    } else if (trial.outcome().error.find("not implemented") == std::string::npos &&
               trial.outcome().error.find("not support") == std::string::npos && chance(0.04)) {
      keep = ended_ = true;
    }
    if (!keep) program_.steps.pop_back();
    return keep;
  }

  static Planned plain(const char* name, c10::IValue value) {
    Planned planned;
    planned.name = name;
    planned.value = std::move(value);
    return planned;
  }
  static Planned first_tensor(const char* name, int index = 0) {
    Planned planned;
    planned.name = name;
    planned.kind = Planned::Kind::kTensor;
    planned.tensors = {index};
    return planned;
  }

  bool conversion_step(Step& step) {
    const auto from =
        pick([](const at::Tensor& t) { return !t.is_complex() && !c10::isFloat8Type(t.scalar_type()); });
    if (!from) return false;
    step.op = "aten::to.dtype";
    step.family = "view";
    at::ScalarType type = any_type();
    if (type == tensor(*from).scalar_type()) type = chance(0.5) ? at::kFloat : at::kBFloat16;
    step.operands = {Operand{from, {}, {}}};
    step.arguments = {first_tensor("self"), plain("dtype", static_cast<int64_t>(type))};
    step.tolerance = 1e-6;
    return true;
  }

  bool view_step(Step& step) {
    const auto from = pick([](const at::Tensor&) { return true; });
    const at::Tensor& value = tensor(*from);
    const int64_t dims = value.dim();
    step.family = "view";
    step.exact_layout = true;
    step.operands = {Operand{from, {}, {}}};
    step.arguments = {first_tensor("self")};
    const int64_t dim = dims > 0 ? below(dims) : 0;
    switch (below(8)) {
      case 0:
        step.op = "aten::transpose.int";
        if (dims < 2) return false;
        step.arguments.push_back(plain("dim0", dim));
        step.arguments.push_back(plain("dim1", below(dims)));
        return true;
      case 1: {
        step.op = "aten::slice.Tensor";
        if (dims < 1 || value.size(dim) < 2) return false;
        const int64_t start = below(value.size(dim));
        step.arguments.push_back(plain("dim", dim));
        step.arguments.push_back(plain("start", start));
        step.arguments.push_back(plain("end", start + 1 + below(value.size(dim) - start)));
        step.arguments.push_back(plain("step", 1 + below(2)));
        return true;
      }
      case 2:
        step.op = "aten::select.int";
        if (dims < 1 || value.size(dim) < 1) return false;
        step.arguments.push_back(plain("dim", dim));
        step.arguments.push_back(plain("index", below(value.size(dim))));
        return true;
      case 3: {
        step.op = "aten::expand";
        std::vector<int64_t> sizes = value.sizes().vec();
        for (int64_t& size : sizes) {
          if (size == 1) size = 3;
        }
        sizes.insert(sizes.begin(), 2);
        step.arguments.push_back(plain("size", sizes));
        return true;
      }
      case 4:
        step.op = "aten::unsqueeze";
        if (dims > 3) return false;
        step.arguments.push_back(plain("dim", below(dims + 1)));
        return true;
      case 5:
        step.op = "aten::reshape";
        step.arguments.push_back(plain("shape", std::vector<int64_t>{value.numel()}));
        return true;
      case 6:
        step.op = "aten::flip";
        if (dims < 1) return false;
        step.arguments.push_back(plain("dims", std::vector<int64_t>{dim}));
        return true;
      default:
        step.op = "aten::clone";
        return true;
    }
  }

  bool sample_step(Step& step) {
    const Catalogue::Row& row = catalogue_.pick(random_);
    const Template& chosen =
        row.samples[static_cast<size_t>(below(static_cast<int64_t>(row.samples.size())))];
    const Sample& sample = chosen.sample;
    const auto op = conformance::find_op(sample.op);
    if (!op) return false;
    std::string floating = one_of(sample.dtypes);
    if (chance(0.5)) floating = sample.dtypes[0];
    const std::string integer = one_of(sample.itypes);
    const bool free_form = elementwise(row.family);
    std::optional<ValueId> focus;
    if (chance(0.9))
      focus =
          pick([&](const at::Tensor& t) { return !t.is_complex() || row.family == "complex" || free_form; });
    if (focus && fractional(tensor(*focus).scalar_type())) {
      // The step in the type of what it is given, if the operation takes it.
      for (const std::string& name : sample.dtypes) {
        if (conformance::scalar_type(name) == tensor(*focus).scalar_type()) floating = name;
      }
      if (free_form && tensor(*focus).scalar_type() == at::kHalf) floating = "f16";
    }
    Inputs inputs =
        conformance::make_inputs(sample, op->schema(), {floating, integer}, conformance::View::kPlain);
    step.op = sample.op;
    step.family = row.family;
    step.floating = floating;
    step.tolerance = std::max(sample.tolerance, 1e-6);
    step.differentiable = !sample.gradfallback && row.differentiable;
    step.arguments = inputs.arguments;
    // What a forward pass left (a buffer) fits no other values.
    if (free_form && op->schema().argumentIndexWithName("buffer")) return false;
    if (!sample.results.empty()) return false;  // its other results may be anything
    for (Planned& planned : step.arguments) scalar(planned, row.family, *op);
    if (free_form) {
      elementwise_operands(step, inputs, focus);
    } else {
      shaped_operands(step, inputs, focus);
    }
    if (chance(0.2) && conformance::find_in_place(*op) && !step.operands.empty() && step.operands[0].value &&
        step.operands[0].value->step >= 0 && !step.operands[0].type && !step.operands[0].shape)
      step.in_place = true;
    return true;
  }

  // Numbers at which compilers have rules of their own.
  void scalar(Planned& planned, const std::string& family, const Op& op) {
    if (family != "pointwise" || planned.kind != Planned::Kind::kValue || !chance(0.3)) return;
    const auto index = op.schema().argumentIndexWithName(planned.name);
    if (!index ||
        op.schema().arguments()[static_cast<size_t>(*index)].real_type()->kind() != c10::TypeKind::NumberType)
      return;
    static const std::vector<double> fractions{
        0, 1, -1, 2, 0.5, -0.5, 3, -2, 0.1, 1e20, 1e-20, std::numeric_limits<double>::infinity(), -0.0};
    static const std::vector<int64_t> whole{0, 1, -1, 2, 3, -2, 7};
    if (planned.value.isDouble()) planned.value = c10::IValue(at::Scalar(one_of(fractions)));
    if (planned.value.isInt()) planned.value = c10::IValue(at::Scalar(one_of(whole)));
  }

  void elementwise_operands(Step& step, const Inputs& inputs, std::optional<ValueId> focus) {
    if (inputs.tensors.empty()) return;
    const at::Tensor& lead = inputs.tensors[0].base;
    const bool wants_fraction = fractional(lead.scalar_type());
    if (focus && !wants_fraction && tensor(*focus).scalar_type() != lead.scalar_type() &&
        (fractional(tensor(*focus).scalar_type()) || tensor(*focus).is_complex())) {
      const auto other =
          pick([&](const at::Tensor& t) { return !fractional(t.scalar_type()) && !t.is_complex(); });
      focus = other;
    }
    const std::vector<int64_t> target = focus ? tensor(*focus).sizes().vec() : lead.sizes().vec();
    const at::ScalarType main = focus ? tensor(*focus).scalar_type() : lead.scalar_type();
    const bool mixes = step.family != "activation" && chance(0.25);
    for (size_t i = 0; i < inputs.tensors.size(); ++i) {
      const at::Tensor& model = inputs.tensors[i].base;
      Operand operand;
      const at::ScalarType wanted =
          model.scalar_type() == lead.scalar_type() && !mixes ? main : model.scalar_type();
      const bool whole = model.sizes() == lead.sizes();
      const bool narrow = !fractional(model.scalar_type()) && !model.is_complex();
      if (i == 0 && focus) {
        operand.value = focus;
        if (wants_fraction && !fractional(main) && !tensor(*focus).is_complex() && chance(0.6))
          operand.type = at::kFloat;
      } else if (focus && whole && chance(0.2) && main == wanted) {
        operand.value = focus;
      } else if (const auto other = chance(0.45) ? pick([&](const at::Tensor& t) {
                   if (narrow && (fractional(t.scalar_type()) || t.is_complex())) return false;
                   if (t.is_complex() != model.is_complex()) return false;
                   if (t.dim() > static_cast<int64_t>(target.size()) && step.family == "activation")
                     return false;
                   return broadcasts(t.sizes().vec(), target);
                 })
                                                 : std::nullopt) {
        operand.value = other;
        if (tensor(*other).scalar_type() != wanted && (!mixes || wanted == at::kBool)) operand.type = wanted;
      } else {
        std::vector<int64_t> shape = target;
        if (!whole) {
          if (chance(0.3)) {
            shape.clear();
          } else if (!shape.empty()) {
            shape[static_cast<size_t>(below(static_cast<int64_t>(shape.size())))] = 1;
          }
        }
        const bool keep_values = narrow && model.scalar_type() != at::kBool && shifts(step.op) && i > 0;
        at::Tensor made = keep_values || model.is_complex() ? model.reshape({-1}) : numbers(wanted, shape);
        if (keep_values || model.is_complex()) {
          int64_t count = 1;
          for (int64_t dim : shape) count *= dim;
          made = made.repeat({count / std::max<int64_t>(made.numel(), 1) + 1})
                     .narrow(0, 0, count)
                     .reshape(shape)
                     .contiguous();
        }
        operand.value = add_leaf(made);
      }
      step.operands.push_back(operand);
    }
  }

  // Its arguments belong together, as a forward pass left them.
  static bool of_a_forward_pass(const std::string& op) { return op.find("_backward") != std::string::npos; }

  static bool shifts(const std::string& op) { return op.find("shift") != std::string::npos; }

  static bool broadcasts(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      const int64_t x = a[a.size() - 1 - i], y = b[b.size() - 1 - i];
      if (x != y && x != 1 && y != 1) return false;
    }
    return true;
  }

  void shaped_operands(Step& step, const Inputs& inputs, std::optional<ValueId> focus) {
    const bool calm = step.family == "linear_algebra" || step.family == "recurrent" ||
                      step.family == "quantize" || of_a_forward_pass(step.op);
    bool placed = false;
    for (size_t i = 0; i < inputs.tensors.size(); ++i) {
      const at::Tensor& model = inputs.tensors[i].base;
      const at::ScalarType type = model.scalar_type();
      Operand operand;
      const bool integers = !fractional(type) && !model.is_complex();
      const bool open = step.family == "reduce" || step.family == "shape" || step.family == "view";
      const bool takes = !c10::isFloat8Type(type) && (!integers || (i == 0 && open));
      if (focus && takes && !calm && (!placed || chance(0.3))) {
        const at::Tensor& value = tensor(*focus);
        operand.value = focus;
        if (value.scalar_type() != type && !(open && i == 0 && chance(0.3))) operand.type = type;
        const bool loose = (open || step.family == "softmax") && i == 0 && value.dim() == model.dim() &&
                           inputs.tensors.size() == 1;
        if (!loose && value.sizes() != model.sizes()) operand.shape = model.sizes().vec();
        placed = true;
      } else {
        at::Tensor made = model;
        if (!calm && fractional(type) && !c10::isFloat8Type(type) && chance(0.25)) {
          made = model.clone();
          const std::vector<double> special = special_numbers(type);
          const int64_t count = std::min<int64_t>(made.numel(), 1 + below(2));
          for (int64_t k = 0; k < count; ++k)
            made.view({-1}).select(0, below(made.numel())).fill_(one_of(special));
        }
        operand.value = add_leaf(made);
      }
      step.operands.push_back(operand);
    }
  }

  const Catalogue& catalogue_;
  Program program_;
  std::mt19937_64 random_;
  std::optional<Execution> state_;
  bool ended_ = false;
};

}  // namespace

namespace {

// Whether one of the parts "log,exp" is in the name; all names for "".
bool named(const std::string& name, const std::string& parts) {
  for (size_t start = 0; start <= parts.size();) {
    const size_t end = std::min(parts.find(',', start), parts.size());
    if (name.find(parts.substr(start, end - start)) != std::string::npos) return true;
    start = end + 1;
  }
  return false;
}

}  // namespace

Catalogue::Catalogue(const std::string& folder, const std::string& pattern) {
  std::map<std::string, std::vector<Sample>> samples;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    for (Sample& sample : conformance::read_samples(path)) samples[sample.op].push_back(std::move(sample));
  }
  double sum = 0;
  for (const Family& family : kFamilies) {
    std::vector<Row> rows;
    for (const ops::Row& row : family.rows()) {
      Row usable{std::string(row.name), family.name, {}, false};
      if (!named(usable.name, pattern)) continue;
      for (const Sample& sample : samples[usable.name]) {
        const bool fits =
            !row.random && !sample.random && !sample.throws && !sample.fallback && sample.reference.empty();
        if (fits && row.name.rfind("aten::", 0) == 0) {
          usable.samples.push_back({sample, family.name});
          usable.differentiable = usable.differentiable || !sample.nograd;
        }
      }
      if (usable.samples.empty()) {
        left_out_.push_back(usable.name);
      } else {
        rows.push_back(std::move(usable));
      }
    }
    for (Row& row : rows) {
      sum += family.weight / static_cast<double>(rows.size());
      rows_.push_back(std::move(row));
      sums_.push_back(sum);
    }
  }
}

const Catalogue::Row& Catalogue::pick(std::mt19937_64& random) const {
  const double chosen = static_cast<double>(random() >> 11) * 0x1p-53 * sums_.back();
  const size_t index =
      static_cast<size_t>(std::upper_bound(sums_.begin(), sums_.end(), chosen) - sums_.begin());
  return rows_[std::min(index, rows_.size() - 1)];
}

Program make_program(const Catalogue& catalogue, const Known& known, uint64_t seed, int64_t number) {
  Program program = Maker(catalogue, seed, number).make();
  for (Step& step : program.steps) step.either_zero = known.either_zero(step);
  return program;
}

}  // namespace sluice::fuzz
