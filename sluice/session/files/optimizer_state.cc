// The state of LibTorch's optimizers as named tensors.
#include <algorithm>
#include <map>
#include <optional>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/device/sharding/shard.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/session/session.h"

namespace sluice::sessions {
namespace optimizer_detail {

namespace optim = torch::optim;
using State = optim::OptimizerParamState;
using Names = std::vector<std::string>;
using Fields = std::vector<std::pair<std::string, at::Tensor>>;

// The kinds of optimizers. kName is the kind's name for --optimizer. A state that has the field kMark is of
// the kind, or of a kind before it in any_kind(). each() calls visit(name, field) for each field of a state.
// zeros() returns the fields that the first step starts from, if all of them are zero; nothing if it starts
// otherwise.

struct Sgd {
  using Optimizer = optim::SGD;
  using Options = optim::SGDOptions;
  using ParamState = optim::SGDParamState;
  static constexpr const char *kName = "sgd", *kMark = "momentum_buffer";
  template <typename Visit>
  static void each(ParamState& state, const Visit& visit) {
    visit("momentum_buffer", state.momentum_buffer());
  }
  static std::optional<Names> zeros(const Options& options) {
    // If there is dampening, the first step takes the whole gradient, and later steps take a part of it.
    if (options.momentum() == 0 || options.dampening() != 0) return std::nullopt;
    return Names{"momentum_buffer"};
  }
};

template <typename AnyOptimizer, typename AnyOptions, typename AnyState>
struct AnyAdam {
  using Optimizer = AnyOptimizer;
  using Options = AnyOptions;
  using ParamState = AnyState;
  static constexpr const char* kMark = "exp_avg";
  template <typename Visit>
  static void each(ParamState& state, const Visit& visit) {
    visit("step", state.step());
    visit("exp_avg", state.exp_avg());
    visit("exp_avg_sq", state.exp_avg_sq());
    visit("max_exp_avg_sq", state.max_exp_avg_sq());
  }
  static std::optional<Names> zeros(const Options& options) {
    Names fields = {"exp_avg", "exp_avg_sq"};
    if (options.amsgrad()) fields.push_back("max_exp_avg_sq");
    return fields;
  }
};
struct Adam : AnyAdam<optim::Adam, optim::AdamOptions, optim::AdamParamState> {
  static constexpr const char* kName = "adam";
};
struct AdamW : AnyAdam<optim::AdamW, optim::AdamWOptions, optim::AdamWParamState> {
  static constexpr const char* kName = "adamw";
};

struct Rmsprop {
  using Optimizer = optim::RMSprop;
  using Options = optim::RMSpropOptions;
  using ParamState = optim::RMSpropParamState;
  static constexpr const char *kName = "rmsprop", *kMark = "square_avg";
  template <typename Visit>
  static void each(ParamState& state, const Visit& visit) {
    visit("step", state.step());
    visit("square_avg", state.square_avg());
    visit("momentum_buffer", state.momentum_buffer());
    visit("grad_avg", state.grad_avg());
  }
  static std::optional<Names> zeros(const Options& options) {
    Names fields = {"square_avg"};
    if (options.momentum() > 0) fields.push_back("momentum_buffer");
    if (options.centered()) fields.push_back("grad_avg");
    return fields;
  }
};

struct Adagrad {
  using Optimizer = optim::Adagrad;
  using Options = optim::AdagradOptions;
  using ParamState = optim::AdagradParamState;
  static constexpr const char *kName = "adagrad", *kMark = "sum";
  template <typename Visit>
  static void each(ParamState& state, const Visit& visit) {
    visit("step", state.step());
    visit("sum", state.sum());
  }
  // Adagrad's constructor creates its state.
  static std::optional<Names> zeros(const Options&) { return std::nullopt; }
};

// Calls visit(a kind) for one kind after the other, until it returns true. Returns whether it did.
template <typename Visit>
bool any_kind(const Visit& visit) {
  return visit(Adam()) || visit(AdamW()) || visit(Rmsprop()) || visit(Adagrad()) || visit(Sgd());
}

// Calls visit(kind) for the optimizer's kind. Returns false for an optimizer of another class.
template <typename Visit>
bool with_kind(const optim::Optimizer& optimizer, const Visit& visit) {
  return any_kind([&]<typename Kind>(Kind kind) {
    if (dynamic_cast<const typename Kind::Optimizer*>(&optimizer) == nullptr) return false;
    visit(kind);
    return true;
  });
}

at::Tensor tensor_of(const at::Tensor& field) { return field; }
at::Tensor tensor_of(int64_t field) { return at::scalar_tensor(field, at::kLong); }

Fields fields(State& state) {
  Fields result;
  const bool known = any_kind([&]<typename Kind>(Kind) {
    auto* const own = dynamic_cast<typename Kind::ParamState*>(&state);
    if (own == nullptr) return false;
    Kind::each(*own,
               [&](const char* name, const auto& field) { result.emplace_back(name, tensor_of(field)); });
    return true;
  });
  if (!known)
    throw_error(
        Code::kUnimplemented,
        "checkpoints know the optimizers SGD, Adam, AdamW, RMSprop and Adagrad; this one has another state");
  return result;
}

// The values of one parameter's state, moved to its device and laid out like it.
class Values {
 public:
  Values(std::map<std::string, at::Tensor> values, const at::Tensor& parameter)
      : values_(std::move(values)), parameter_(parameter) {}
  void read(const char* name, at::Tensor& field) const {
    auto found = values_.find(name);
    field = found == values_.end() ? at::Tensor() : move_beside(found->second, parameter_);
  }
  void read(const char* name, int64_t& field) const {
    auto found = values_.find(name);
    field = found == values_.end() ? 0 : found->second.item<int64_t>();
  }

 private:
  std::map<std::string, at::Tensor> values_;
  at::Tensor parameter_;
};

template <typename Kind>
std::unique_ptr<State> state_of(const Values& values) {
  auto state = std::make_unique<typename Kind::ParamState>();
  Kind::each(*state, [&](const char* name, auto& field) { values.read(name, field); });
  return state;
}

std::unique_ptr<State> make_state(const optim::Optimizer& optimizer, const Values& values) {
  std::unique_ptr<State> state;
  if (!with_kind(optimizer, [&]<typename Kind>(Kind) { state = state_of<Kind>(values); }))
    state = state_of<Adagrad>(values);
  return state;
}

// Returns the fields that the optimizer's first step starts from, as a kind's zeros() does. Nothing if the
// optimizer is not one of LibTorch's.
std::optional<Names> zeros_before_the_first_step(const optim::Optimizer& optimizer,
                                                 const optim::OptimizerOptions& group) {
  std::optional<Names> fields;
  with_kind(optimizer, [&]<typename Kind>(Kind) {
    fields = Kind::zeros(static_cast<const typename Kind::Options&>(group));
  });
  return fields;
}

// Returns the optimizer's name for --optimizer; "" if it is not one of LibTorch's.
std::string name_of(const optim::Optimizer& optimizer) {
  std::string name;
  with_kind(optimizer, [&]<typename Kind>(Kind) { name = Kind::kName; });
  return name;
}

// Returns the names of the optimizers whose state has such fields; empty if there are none.
Names names_for(const std::map<std::string, at::Tensor>& state) {
  Names names;
  std::string mark;
  any_kind([&]<typename Kind>(Kind) {
    if (state.count(Kind::kMark) == 0 || (!mark.empty() && mark != Kind::kMark)) return false;
    mark = Kind::kMark;
    names.emplace_back(Kind::kName);
    return false;
  });
  return names;
}

// Checks that the optimizer can continue from a parameter's state in the checkpoint `source`.
base::Status check_state(const torch::optim::Optimizer& optimizer,
                         const torch::optim::OptimizerOptions& group,
                         const std::map<std::string, at::Tensor>& state, const std::string& source) {
  const std::string name = name_of(optimizer);
  const std::vector<std::string> names = names_for(state);
  if (name.empty() || names.empty()) return {};
  const std::string held = base::join(names, " or ");
  const std::string otherwise =
      base::str("or begin again from its weights, without --resume: --weights ", source);
  if (std::find(names.begin(), names.end(), name) == names.end())
    return base::fail(Code::kInvalidArgument, source, " holds the state of ", held, ", the run has ", name,
                      ": give --optimizer ", held, ", ", otherwise);
  for (const std::string& field :
       zeros_before_the_first_step(optimizer, group).value_or(std::vector<std::string>()))
    if (state.count(field) == 0)
      return base::fail(Code::kInvalidArgument, source, " holds the state of ", held, " without ", field,
                        ", which the run's ", name, " has: give it the settings that the checkpoint was ",
                        "trained with (--momentum), ", otherwise);
  return {};
}

}  // namespace optimizer_detail

NamedTensors optimizer_tensors(torch::optim::Optimizer& optimizer, const torch::nn::Module& model) {
  NamedTensors result;
  for (const auto& item : model.named_parameters()) {
    auto found = optimizer.state().find(item.value().unsafeGetTensorImpl());
    if (found == optimizer.state().end()) continue;
    for (const auto& [field, tensor] : optimizer_detail::fields(*found->second))
      if (tensor.defined()) result.emplace_back(base::str("optimizer.", item.key(), ".", field), tensor);
  }
  return result;
}

base::Status load_optimizer(torch::optim::Optimizer& optimizer, const torch::nn::Module& model,
                            const NamedTensors& tensors, const std::string& source) {
  std::map<std::string, std::map<std::string, at::Tensor>> by_parameter;
  for (const auto& [name, tensor] : tensors) {
    if (!base::starts_with(name, "optimizer.")) continue;
    const size_t dot = name.rfind('.');
    by_parameter[name.substr(10, dot - 10)][name.substr(dot + 1)] = tensor;
  }
  std::map<const void*, std::string> names;
  for (const auto& item : model.named_parameters()) names[item.value().unsafeGetTensorImpl()] = item.key();
  // Only its own parameters: another optimizer's parameters may have state of another kind.
  for (const auto& group : optimizer.param_groups())
    for (const torch::Tensor& parameter : group.params()) {
      const auto name = names.find(parameter.unsafeGetTensorImpl());
      auto found = name == names.end() ? by_parameter.end() : by_parameter.find(name->second);
      if (found == by_parameter.end()) continue;
      SLUICE_OK(optimizer_detail::check_state(optimizer, group.options(), found->second, source));
      for (const auto& [field, tensor] : found->second)
        if (tensor.dim() > 0 && tensor.sizes() != parameter.sizes())
          return base::fail(Code::kInvalidArgument, source, ": the optimizer's ", field, " of ", name->second,
                            " has shape ", tensor.sizes(), ", the parameter has ", parameter.sizes());
      optimizer_detail::Values values(found->second, parameter);
      optimizer.state()[parameter.unsafeGetTensorImpl()] = optimizer_detail::make_state(optimizer, values);
    }
  return {};
}

NamedTensors create_missing_state(torch::optim::Optimizer& optimizer) {
  NamedTensors created;
  int64_t number = -1;
  for (const auto& group : optimizer.param_groups()) {
    const auto zero_fields = optimizer_detail::zeros_before_the_first_step(optimizer, group.options());
    for (const torch::Tensor& parameter : group.params()) {
      ++number;
      auto& state = optimizer.state();
      if (!zero_fields || !parameter.requires_grad() || state.count(parameter.unsafeGetTensorImpl()) > 0)
        continue;
      std::map<std::string, at::Tensor> zeros;
      // The zeros are made on the host and uploaded: on the device they would be an operation of the first
      // step.
      const auto host = parameter.options().device(at::kCPU).requires_grad(false);
      for (const std::string& field : *zero_fields) zeros[field] = at::zeros(parameter.sizes(), host);
      auto made = optimizer_detail::make_state(optimizer, {zeros, parameter});
      for (const auto& [field, tensor] : optimizer_detail::fields(*made))
        if (tensor.defined() && field != "step")
          created.emplace_back(base::str("optimizer.", number, ".", field), tensor);
      state[parameter.unsafeGetTensorImpl()] = std::move(made);
    }
  }
  return created;
}

}  // namespace sluice::sessions

namespace sluice {

void create_state(torch::optim::Optimizer& optimizer) { sessions::create_missing_state(optimizer); }

}  // namespace sluice
