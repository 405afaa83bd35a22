#include "sluice/device/capture/step_numbers.h"

#include <torch/optim.h>

#include <cmath>
#include <typeinfo>

namespace sluice::device {
namespace {

namespace optim = torch::optim;

using OptimizerState = optim::OptimizerParamState;

// 1 − betaⁿ, kept for the next parameter: most parameters have made the same number of steps.
class Corrections {
 public:
  Corrections(double beta1, double beta2) : beta1_(beta1), beta2_(beta2) {}
  void at(int64_t step) {
    if (step == step_) return;
    step_ = step;
    // LibTorch's own expressions, so that the bits are the same.
    first = 1 - std::pow(beta1_, step);
    second = std::sqrt(1 - std::pow(beta2_, step));
  }
  double first = 0, second = 0;

 private:
  const double beta1_, beta2_;
  int64_t step_ = -1;
};

// One kind of optimizer: its options as numbers, its branches, and the numbers of one parameter's update in
// the order of LibTorch's step().
struct Sgd {
  using Optimizer = optim::SGD;
  using Options = optim::SGDOptions;
  using ParamState = optim::SGDParamState;
  static constexpr bool kCounts = false;
  explicit Sgd(const Options& options) : o(options) {}
  void describe(StepNumbers& all) const {
    all.options.insert(all.options.end(), {o.lr(), o.momentum(), o.dampening(), o.weight_decay()});
    all.branches.insert(all.branches.end(), {o.weight_decay() != 0, o.momentum() != 0, o.nesterov()});
  }
  bool needs_state() const { return o.momentum() != 0; }
  void update(const OptimizerState*, std::vector<double>& numbers) {
    if (o.weight_decay() != 0) numbers.push_back(o.weight_decay());
    if (o.momentum() != 0) numbers.insert(numbers.end(), {o.momentum(), 1 - o.dampening()});
    if (o.momentum() != 0 && o.nesterov()) numbers.push_back(o.momentum());
    numbers.push_back(-1 * o.lr());
  }
  const Options& o;
};

template <typename AnyOptimizer, typename AnyOptions, typename AnyState, bool decoupled>
struct AnyAdam {
  using Optimizer = AnyOptimizer;
  using Options = AnyOptions;
  using ParamState = AnyState;
  static constexpr bool kCounts = true;
  explicit AnyAdam(const Options& options)
      : o(options), corrections(std::get<0>(options.betas()), std::get<1>(options.betas())) {}
  void describe(StepNumbers& all) const {
    const auto [beta1, beta2] = o.betas();
    all.options.insert(all.options.end(), {o.lr(), beta1, beta2, o.eps(), o.weight_decay()});
    all.branches.insert(all.branches.end(), {o.weight_decay() != 0, o.amsgrad()});
  }
  bool needs_state() const { return true; }
  void update(const OptimizerState* state, std::vector<double>& numbers) {
    const auto [beta1, beta2] = o.betas();
    corrections.at(static_cast<const ParamState*>(state)->step() + 1);
    if (o.weight_decay() != 0)
      numbers.push_back(decoupled ? 1 - o.lr() * o.weight_decay() : o.weight_decay());
    numbers.insert(numbers.end(), {beta1, 1 - beta1, beta2, 1 - beta2, corrections.second, o.eps(),
                                   -(o.lr() / corrections.first)});
  }
  const Options& o;
  Corrections corrections;
};
using Adam = AnyAdam<optim::Adam, optim::AdamOptions, optim::AdamParamState, false>;
using AdamW = AnyAdam<optim::AdamW, optim::AdamWOptions, optim::AdamWParamState, true>;

struct Rmsprop {
  using Optimizer = optim::RMSprop;
  using Options = optim::RMSpropOptions;
  using ParamState = optim::RMSpropParamState;
  static constexpr bool kCounts = true;
  explicit Rmsprop(const Options& options) : o(options) {}
  void describe(StepNumbers& all) const {
    all.options.insert(all.options.end(), {o.lr(), o.alpha(), o.eps(), o.weight_decay(), o.momentum()});
    all.branches.insert(all.branches.end(), {o.weight_decay() != 0, o.centered(), o.momentum() > 0});
  }
  bool needs_state() const { return true; }
  void update(const OptimizerState*, std::vector<double>& numbers) {
    if (o.weight_decay() != 0) numbers.push_back(o.weight_decay());
    numbers.insert(numbers.end(), {o.alpha(), 1 - o.alpha()});
    if (o.centered()) numbers.insert(numbers.end(), {o.alpha(), 1 - o.alpha(), -1.0});
    numbers.push_back(o.eps());
    if (o.momentum() > 0) numbers.insert(numbers.end(), {o.momentum(), 1.0});
    numbers.push_back(-o.lr());
  }
  const Options& o;
};

struct Adagrad {
  using Optimizer = optim::Adagrad;
  using Options = optim::AdagradOptions;
  using ParamState = optim::AdagradParamState;
  static constexpr bool kCounts = true;
  explicit Adagrad(const Options& options) : o(options) {}
  void describe(StepNumbers& all) const {
    all.options.insert(all.options.end(), {o.lr(), o.lr_decay(), o.weight_decay(), o.eps()});
    all.branches.push_back(o.weight_decay() != 0);
  }
  bool needs_state() const { return true; }
  void update(const OptimizerState* state, std::vector<double>& numbers) {
    // step() is the count before this step.
    const auto before = static_cast<double>(static_cast<const ParamState*>(state)->step());
    if (o.weight_decay() != 0) numbers.push_back(o.weight_decay());
    numbers.insert(numbers.end(), {1.0, o.eps(), -(o.lr() / (1 + before * o.lr_decay()))});
  }
  const Options& o;
};

// Calls visit(a kind's update, group) for each group, with the kind of this optimizer. Returns false for an
// optimizer of any other class, even if it is derived from one of these.
template <typename Visit>
bool with_kind(optim::Optimizer& optimizer, const Visit& visit) {
  const auto visited = [&]<typename Kind>(Kind*) {
    if (typeid(optimizer) != typeid(typename Kind::Optimizer)) return false;
    for (size_t i = 0; i < optimizer.param_groups().size(); ++i) {
      auto& group = optimizer.param_groups()[i];
      visit(Kind(static_cast<const typename Kind::Options&>(group.options())), i, group.params());
    }
    return true;
  };
  return visited(static_cast<Sgd*>(nullptr)) || visited(static_cast<Adam*>(nullptr)) ||
         visited(static_cast<AdamW*>(nullptr)) || visited(static_cast<Rmsprop*>(nullptr)) ||
         visited(static_cast<Adagrad*>(nullptr));
}

OptimizerState* state_of(optim::Optimizer& optimizer, const at::Tensor& parameter) {
  const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
  return found == optimizer.state().end() ? nullptr : found->second.get();
}

}  // namespace

OptimizerStep step_now(optim::Optimizer& optimizer) {
  OptimizerStep step{&optimizer, {}};
  for (const auto& group : optimizer.param_groups()) {
    auto& numbers = step.parameters.emplace_back();
    for (uint32_t i = 0; i < group.params().size(); ++i)
      if (group.params()[i].grad().defined()) numbers.push_back(i);
  }
  return step;
}

bool step_numbers(const OptimizerStep& step, StepNumbers& all) {
  optim::Optimizer& optimizer = *step.optimizer;
  if (step.parameters.size() != optimizer.param_groups().size()) return false;
  bool whole = true;
  const bool known = with_kind(optimizer, [&](auto kind, size_t group, const auto& parameters) {
    kind.describe(all);
    for (const uint32_t i : step.parameters[group]) {
      const OptimizerState* state = nullptr;
      if (i < parameters.size() && kind.needs_state()) state = state_of(optimizer, parameters[i]);
      if (i >= parameters.size() || (kind.needs_state() && state == nullptr)) {
        whole = false;
        return;
      }
      kind.update(state, all.numbers);
    }
  });
  return known && whole;
}

void count_step(const OptimizerStep& step) {
  with_kind(*step.optimizer, [&](auto kind, size_t group, const auto& parameters) {
    using Kind = decltype(kind);
    if constexpr (Kind::kCounts) {
      for (const uint32_t i : step.parameters[group]) {
        auto& state = static_cast<typename Kind::ParamState&>(*state_of(*step.optimizer, parameters[i]));
        state.step(state.step() + 1);
        // These optimizers write the parameter itself, and a graph that saved it must notice that.
        parameters[i].unsafeGetTensorImpl()->bump_version();
      }
    }
  });
}

void add_state(const optim::Optimizer& optimizer, std::vector<uint64_t>& state) {
  for (const auto& group : optimizer.param_groups()) {
    state.push_back(group.params().size());
    for (const at::Tensor& parameter : group.params()) {
      const auto* storage = parameter.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
      state.push_back(reinterpret_cast<uintptr_t>(storage) | (parameter.requires_grad() ? 1 : 0));
      const at::Tensor& gradient = parameter.grad();
      const auto* held = gradient.defined()
                             ? gradient.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()
                             : nullptr;
      state.push_back(reinterpret_cast<uintptr_t>(held));
    }
  }
}

}  // namespace sluice::device
