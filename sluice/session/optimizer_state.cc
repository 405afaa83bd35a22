// The state of LibTorch's optimizers as named tensors.
#include <algorithm>
#include <map>
#include <optional>

#include "sluice/session/checkpoint.h"
#include "sluice/session/session.h"

namespace sluice::sessions {
namespace optimizer_detail {

using torch::optim::AdagradParamState;
using torch::optim::AdamParamState;
using torch::optim::AdamWParamState;
using torch::optim::OptimizerParamState;
using torch::optim::RMSpropParamState;
using torch::optim::SGDParamState;
using Fields = std::vector<std::pair<std::string, at::Tensor>>;

at::Tensor count(int64_t value) { return at::scalar_tensor(value, at::kLong); }

template <typename State>
Fields adam_fields(const State& state) {
  return {{"step", count(state.step())},
          {"exp_avg", state.exp_avg()},
          {"exp_avg_sq", state.exp_avg_sq()},
          {"max_exp_avg_sq", state.max_exp_avg_sq()}};
}

Fields fields(const OptimizerParamState& state) {
  if (auto* sgd = dynamic_cast<const SGDParamState*>(&state))
    return {{"momentum_buffer", sgd->momentum_buffer()}};
  if (auto* adam = dynamic_cast<const AdamParamState*>(&state)) return adam_fields(*adam);
  if (auto* adamw = dynamic_cast<const AdamWParamState*>(&state)) return adam_fields(*adamw);
  if (auto* rms = dynamic_cast<const RMSpropParamState*>(&state))
    return {{"step", count(rms->step())},
            {"square_avg", rms->square_avg()},
            {"momentum_buffer", rms->momentum_buffer()},
            {"grad_avg", rms->grad_avg()}};
  if (auto* ada = dynamic_cast<const AdagradParamState*>(&state))
    return {{"step", count(ada->step())}, {"sum", ada->sum()}};
  throw_error(
      Code::kUnimplemented,
      "checkpoints know the optimizers SGD, Adam, AdamW, RMSprop and Adagrad; this one has another state");
}

// The values of one parameter's state, moved to its device.
class Values {
 public:
  Values(std::map<std::string, at::Tensor> values, at::Device device)
      : values_(std::move(values)), device_(device) {}
  at::Tensor tensor(const char* name) const {
    auto found = values_.find(name);
    return found == values_.end() ? at::Tensor() : found->second.to(device_);
  }
  int64_t number(const char* name) const {
    auto found = values_.find(name);
    return found == values_.end() ? 0 : found->second.item<int64_t>();
  }

 private:
  std::map<std::string, at::Tensor> values_;
  at::Device device_;
};

template <typename State>
std::unique_ptr<OptimizerParamState> adam_state(const Values& values) {
  auto state = std::make_unique<State>();
  state->step(values.number("step"));
  state->exp_avg(values.tensor("exp_avg"));
  state->exp_avg_sq(values.tensor("exp_avg_sq"));
  state->max_exp_avg_sq(values.tensor("max_exp_avg_sq"));
  return state;
}

std::unique_ptr<OptimizerParamState> make_state(const torch::optim::Optimizer& optimizer,
                                                const Values& values) {
  if (dynamic_cast<const torch::optim::SGD*>(&optimizer)) {
    auto state = std::make_unique<SGDParamState>();
    state->momentum_buffer(values.tensor("momentum_buffer"));
    return state;
  }
  if (dynamic_cast<const torch::optim::Adam*>(&optimizer)) return adam_state<AdamParamState>(values);
  if (dynamic_cast<const torch::optim::AdamW*>(&optimizer)) return adam_state<AdamWParamState>(values);
  if (dynamic_cast<const torch::optim::RMSprop*>(&optimizer)) {
    auto state = std::make_unique<RMSpropParamState>();
    state->step(values.number("step"));
    state->square_avg(values.tensor("square_avg"));
    state->momentum_buffer(values.tensor("momentum_buffer"));
    state->grad_avg(values.tensor("grad_avg"));
    return state;
  }
  auto state = std::make_unique<AdagradParamState>();
  state->step(values.number("step"));
  state->sum(values.tensor("sum"));
  return state;
}

template <typename Options>
std::vector<std::string> adam_zeros(const Options& options) {
  std::vector<std::string> fields = {"exp_avg", "exp_avg_sq"};
  if (options.amsgrad()) fields.push_back("max_exp_avg_sq");
  return fields;
}

// The fields that an optimizer's first step starts from, if all of them are zero. Empty if it starts
// otherwise, or if the optimizer is not one of LibTorch's.
std::optional<std::vector<std::string>> zeros_before_the_first_step(
    const torch::optim::Optimizer& optimizer, const torch::optim::OptimizerOptions& group) {
  using namespace torch::optim;
  if (dynamic_cast<const SGD*>(&optimizer)) {
    const auto& options = static_cast<const SGDOptions&>(group);
    // If there is dampening, the first step takes the whole gradient, and later steps take a part of it.
    if (options.momentum() == 0 || options.dampening() != 0) return std::nullopt;
    return std::vector<std::string>{"momentum_buffer"};
  }
  if (dynamic_cast<const Adam*>(&optimizer)) return adam_zeros(static_cast<const AdamOptions&>(group));
  if (dynamic_cast<const AdamW*>(&optimizer)) return adam_zeros(static_cast<const AdamWOptions&>(group));
  if (dynamic_cast<const RMSprop*>(&optimizer)) {
    const auto& options = static_cast<const RMSpropOptions&>(group);
    std::vector<std::string> fields = {"square_avg"};
    if (options.momentum() > 0) fields.push_back("momentum_buffer");
    if (options.centered()) fields.push_back("grad_avg");
    return fields;
  }
  return std::nullopt;  // Adagrad's constructor creates its state
}

// Returns the optimizer's name for --optimizer; "" if it is not one of LibTorch's.
std::string name_of(const torch::optim::Optimizer& optimizer) {
  if (dynamic_cast<const torch::optim::SGD*>(&optimizer)) return "sgd";
  if (dynamic_cast<const torch::optim::Adam*>(&optimizer)) return "adam";
  if (dynamic_cast<const torch::optim::AdamW*>(&optimizer)) return "adamw";
  if (dynamic_cast<const torch::optim::RMSprop*>(&optimizer)) return "rmsprop";
  return dynamic_cast<const torch::optim::Adagrad*>(&optimizer) ? "adagrad" : "";
}

// Returns the names of the optimizers whose state has such fields; empty if there are none.
std::vector<std::string> names_for(const std::map<std::string, at::Tensor>& state) {
  if (state.count("exp_avg") > 0) return {"adam", "adamw"};
  if (state.count("square_avg") > 0) return {"rmsprop"};
  if (state.count("sum") > 0) return {"adagrad"};
  if (state.count("momentum_buffer") > 0) return {"sgd"};
  return {};
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
      optimizer_detail::Values values(found->second, parameter.device());
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
      auto made = optimizer_detail::make_state(optimizer, {zeros, parameter.device()});
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
