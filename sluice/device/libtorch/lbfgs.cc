// LBFGS for parameters of the device. LibTorch's own step reads a number from the device twice for each pair
// of its history. Here one wait reads all results of an evaluation of the closure, together with the
// direction that would follow from it. The method, its constants, its state and its effects on the parameters
// are LibTorch's (torch/csrc/api/src/optim/lbfgs.cpp), so that a run saved on one can continue on the other.
#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>
#include <torch/library.h>
#include <torch/optim/lbfgs.h>
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/base/check.h"
#include "sluice/device/program/record.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/runtime.h"
#include "sluice/device/storage.h"

namespace sluice::device {
namespace {

using at::Tensor;
using Closure = std::function<Tensor()>;
using State = torch::optim::LBFGSParamState;
using Options = torch::optim::LBFGSOptions;

constexpr double kMinCurvature = 1e-10;  // a pair with more than this is kept

Tensor direction_of(const Tensor& gradient, const Tensor& steps, const Tensor& changes, const Tensor& inverse,
                    const Tensor& scale) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("sluice::lbfgs_direction", "")
          .typed<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&)>();
  return op.call(gradient, steps, changes, inverse, scale);
}

// Returns the table whose last rows are these tensors, in their order; undefined if there is no such table.
Tensor table_of(const std::deque<Tensor>& rows) {
  const Tensor& last = rows.back();
  const int64_t size = last.numel();
  const auto all = static_cast<int64_t>(last.storage().nbytes() / last.itemsize());
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t behind = static_cast<int64_t>(rows.size() - i) * size;
    if (!on_device(rows[i]) || !rows[i].is_alias_of(last) || !rows[i].is_contiguous() ||
        !rows[i].sizes().equals(last.sizes()) || rows[i].storage_offset() != all - behind)
      return {};
  }
  std::vector<int64_t> dims = last.sizes().vec(), strides = last.strides().vec();
  dims.insert(dims.begin(), all / size);
  strides.insert(strides.begin(), size);
  return last.as_strided(dims, strides, 0);
}

// The history of the last steps, with the newest pair last. Rows before the last `count` rows are zeros,
// which add nothing, so that there are few kinds of program, independent of the history's length.
struct History {
  Tensor steps, changes, inverse;  // [rows, n], [rows, n], [rows]: see ops/lbfgs.cc; undefined: none
  Tensor scale;                    // 0-d
  int64_t count = 0;

  static History of(const State& state, const Tensor& like) {
    History h;
    h.scale = state.H_diag().to(like.options());
    h.count = static_cast<int64_t>(state.old_dirs().size());
    if (h.count == 0) return h;
    h.steps = table_of(state.old_stps()), h.changes = table_of(state.old_dirs());
    h.inverse = table_of(state.ro());
    if (h.steps.defined() && h.changes.defined() && h.inverse.defined() &&
        h.steps.size(0) == h.changes.size(0) && h.steps.size(0) == h.inverse.size(0))
      return h;
    const auto stacked = [&](const std::deque<Tensor>& rows) {
      return at::stack(std::vector<Tensor>(rows.begin(), rows.end())).to(like.options());
    };
    h.steps = stacked(state.old_stps()), h.changes = stacked(state.old_dirs());
    h.inverse = stacked(state.ro()).view({h.count});
    return h;
  }

  // Returns the history with one more pair, of at most `limit` pairs.
  History with(const Tensor& step, const Tensor& change, const Tensor& curvature, int64_t limit) const {
    const int64_t rows = steps.defined() ? steps.size(0) : 0;
    const int64_t wanted =
        count < rows || count >= limit ? rows : std::min(limit, std::max<int64_t>(8, 2 * rows));
    const auto longer = [&](const Tensor& table, const Tensor& row) {
      if (wanted == rows) return at::cat({table.narrow(0, 1, rows - 1), row.unsqueeze(0)});
      std::vector<int64_t> dims = row.sizes().vec();
      dims.insert(dims.begin(), wanted - rows - 1);
      std::vector<Tensor> parts = {at::zeros(dims, row.options())};
      if (rows > 0) parts.push_back(table);
      parts.push_back(row.unsqueeze(0));
      return at::cat(parts);
    };
    return {longer(steps, step), longer(changes, change), longer(inverse, curvature.reciprocal()),
            curvature / change.dot(change), std::min(count + 1, std::max(limit, count))};
  }

  Tensor direction(const Tensor& gradient) const {
    if (!steps.defined()) return gradient.neg() * scale;
    return direction_of(gradient, steps, changes, inverse, scale);
  }

  void keep_in(State& state) const {
    state.H_diag(scale);
    for (auto [kept, table] : {std::pair{&state.old_stps(), &steps}, std::pair{&state.old_dirs(), &changes},
                               std::pair{&state.ro(), &inverse}}) {
      kept->clear();
      for (int64_t i = count; i > 0; --i) kept->push_back(table->select(0, table->size(0) - i));
    }
  }
};

// A direction from a point, with its numbers on the host.
struct Direction {
  History history;
  Tensor values;
  double slope = 0;    // the gradient · `values`
  double largest = 0;  // the largest absolute value of its elements
};

// The parameters at step size t along the direction that is searched.
struct Point {
  double t = 0, loss = 0, slope = 0;
  double largest = 0;  // the largest absolute value of the gradient's elements
  Tensor gradient;
};

// Returns the minimum, within bounds, of the cubic through two points with their slopes.
double cubic_minimum(const Point& a, const Point& b, double low, double high) {
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const Point &from = a.t <= b.t ? a : b, &to = a.t <= b.t ? b : a;
  const double at = to.t - (to.t - from.t) * ((to.slope + d2 - d1) / (to.slope - from.slope + 2 * d2));
  return std::min(std::max(at, low), high);
}

// A step size that fulfils the strong Wolfe conditions (Nocedal and Wright, 3.5), as LibTorch searches it.
class WolfeSearch {
 public:
  WolfeSearch(const Point& start, double largest, std::function<Point(double t)> at)
      : start_(start), largest_(largest), at_(std::move(at)) {}

  Point from(double t) {
    const bool done = bracket(t);
    if (!done && searched_ < kMaxEvaluations) narrow();
    return ends_[low_];
  }
  int64_t evaluations() const { return evaluations_; }

 private:
  static constexpr double kDecrease = 1e-4, kCurvature = 0.9, kMinChange = 1e-9;
  static constexpr int kMaxEvaluations = 25;

  Point evaluate(double t) {
    ++evaluations_;
    return at_(t);
  }
  bool too_high(const Point& p) const { return p.loss > start_.loss + kDecrease * p.t * start_.slope; }
  bool flat(const Point& p) const { return std::abs(p.slope) <= -kCurvature * start_.slope; }
  void between(const Point& one, const Point& other) {
    ends_ = {one, other};
    order();
  }
  void order() { low_ = ends_[0].loss <= ends_[1].loss ? 0 : 1; }

  // Finds two points that enclose an acceptable one, or an acceptable point; then returns true.
  bool bracket(double t) {
    Point before = start_, now = evaluate(t);
    for (; searched_ < kMaxEvaluations; ++searched_) {
      if (too_high(now) || (searched_ > 1 && now.loss >= before.loss)) return between(before, now), false;
      if (flat(now)) return between(now, now), true;
      if (now.slope >= 0) return between(before, now), false;
      const double next = cubic_minimum(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10);
      before = std::exchange(now, evaluate(next));
    }
    between(start_, now);
    return false;
  }

  // Returns the next step size to try within the bracket; not near its ends twice in a row.
  double trial() {
    const auto [low, high] = std::minmax(ends_[0].t, ends_[1].t);
    const double t = cubic_minimum(ends_[0], ends_[1], low, high), margin = 0.1 * (high - low);
    if (std::min(high - t, t - low) >= margin) {
      stuck_ = false;
      return t;
    }
    if (stuck_ || t >= high || t <= low) {
      stuck_ = false;
      return std::abs(t - high) < std::abs(t - low) ? high - margin : low + margin;
    }
    stuck_ = true;
    return t;
  }

  void narrow() {
    while (searched_ < kMaxEvaluations) {
      const Point now = evaluate(trial());
      ++searched_;
      const size_t high = 1 - low_;
      bool done = false;
      if (too_high(now) || now.loss >= ends_[low_].loss) {
        ends_[high] = now;
        order();
      } else {
        done = flat(now);
        if (!done && now.slope * (ends_[high].t - ends_[low_].t) >= 0) ends_[high] = ends_[low_];
        ends_[low_] = now;
      }
      if (done || std::abs(ends_[1].t - ends_[0].t) * largest_ < kMinChange) return;
    }
  }

  const Point start_;
  const double largest_;
  const std::function<Point(double)> at_;
  std::array<Point, 2> ends_;
  size_t low_ = 0;
  int searched_ = 0;
  int64_t evaluations_ = 0;
  bool stuck_ = false;
};

// One call of step().
class Steps {
 public:
  Steps(std::vector<Tensor>& params, const Options& options, State& state, const Closure& closure)
      : params_(params), options_(options), state_(state), closure_(closure) {}

  Tensor run() {
    const Tensor loss = evaluate();
    Point at = look(loss, state_.t(), /*goes_on=*/true);
    int64_t evaluations = 1;
    state_.func_evals(state_.func_evals() + 1);
    if (at.largest <= options_.tolerance_grad()) return loss;
    for (int64_t n = 1; n <= options_.max_iter(); ++n) {
      const Point from = at;
      const double slope = set_out(from);
      if (slope > -options_.tolerance_change()) break;
      const int64_t used = move(from, n < options_.max_iter(), slope, at);
      evaluations += used;
      state_.func_evals(state_.func_evals() + used);
      if (n == options_.max_iter() || evaluations >= *options_.max_eval() ||
          at.largest <= options_.tolerance_grad() ||
          largest_ * std::abs(state_.t()) <= options_.tolerance_change() ||
          std::abs(at.loss - from.loss) < options_.tolerance_change())
        break;
    }
    return loss;
  }

 private:
  Tensor evaluate() const {
    at::AutoGradMode with_gradients(true);
    return closure_();
  }

  Tensor gradient() const {
    std::vector<Tensor> parts;
    for (const Tensor& p : params_)
      parts.push_back(p.grad().defined() ? p.grad().reshape(-1) : at::zeros({p.numel()}, p.options()));
    return at::cat(parts);
  }

  void add(const Tensor& direction, double t) {
    int64_t offset = 0;
    for (Tensor& p : params_) {
      p.add_(direction.narrow(0, offset, p.numel()).view_as(p), t);
      offset += p.numel();
    }
  }

  // Returns the direction from here after a step of t along the last direction; before the first step,
  // downhill.
  Direction prepare(const Tensor& gradient, double t, Tensor& curvature) const {
    Direction next;
    if (state_.n_iter() == 0) {
      next.history.scale = at::ones({}, gradient.options());
      next.values = gradient.neg();
      return next;
    }
    const Tensor change = gradient - state_.prev_flat_grad(), step = state_.d() * t;
    curvature = change.dot(step);
    next.history = History::of(state_, gradient).with(step, change, curvature, options_.history_size());
    next.values = next.history.direction(gradient);
    return next;
  }

  // Reads all numbers of this point at once. goes_on: another direction may follow.
  Point look(const Tensor& loss, double t, bool goes_on) {
    Point at;
    at.t = t, at.gradient = gradient();
    {
      // This cut makes the closure's program independent of the history.
      TraceLock lock = lock_trace();
      cut(kHostRead);
    }
    const Tensor none = at::zeros({}, at.gradient.options());
    Tensor curvature = none;
    ready_.reset();
    std::optional<Direction> next;
    if (goes_on) next = prepare(at.gradient, t, curvature);
    const Tensor towards = next ? next->values : at.gradient;
    const std::vector<double> n = numbers({loss.reshape({}), at.gradient.abs().max(), at.gradient.abs().sum(),
                                           state_.n_iter() == 0 ? none : at.gradient.dot(state_.d()),
                                           curvature, at.gradient.dot(towards), towards.abs().max()});
    at.loss = n[0], at.largest = n[1], total_ = n[2], at.slope = n[3];
    if (next && (state_.n_iter() == 0 || n[4] > kMinCurvature)) {
      next->slope = n[5], next->largest = n[6];
      ready_ = std::move(next);
      ready_for_ = t;
    }
    return at;
  }

  static std::vector<double> numbers(std::vector<Tensor> of) {
    at::ScalarType type = of.front().scalar_type();
    for (const Tensor& x : of) type = at::promote_types(type, x.scalar_type());
    for (Tensor& x : of) x = x.to(type);
    const Tensor host = at::stack(of).cpu().to(at::kDouble);
    return {host.const_data_ptr<double>(), host.const_data_ptr<double>() + host.numel()};
  }

  // Chooses the direction from this point and the first step size; returns the slope.
  double set_out(const Point& from) {
    if (!ready_ || ready_for_ != from.t) {
      // This is not the point that was looked at last, or its pair is not to be kept. LibTorch keeps the pair
      // of every accepted point with a large enough curvature.
      Tensor curvature;
      Direction kept = prepare(from.gradient, from.t, curvature);
      Direction same;
      same.history = History::of(state_, from.gradient);
      same.values = same.history.direction(from.gradient);
      const std::vector<double> n =
          numbers({curvature, from.gradient.dot(kept.values), kept.values.abs().max(),
                   from.gradient.dot(same.values), same.values.abs().max()});
      kept.slope = n[1], kept.largest = n[2], same.slope = n[3], same.largest = n[4];
      ready_ = n[0] > kMinCurvature ? std::move(kept) : std::move(same);
    }
    state_.n_iter(state_.n_iter() + 1);
    ready_->history.keep_in(state_);
    state_.d(ready_->values);
    state_.prev_flat_grad(from.gradient);
    state_.prev_loss(from.loss);
    state_.t(state_.n_iter() == 1 ? std::min(1., 1. / total_) * options_.lr() : options_.lr());
    largest_ = ready_->largest;
    const double slope = ready_->slope;
    ready_.reset();
    return slope;
  }

  // Moves along the direction and sets `at` to the new point. Returns the number of times that the closure
  // was evaluated.
  int64_t move(const Point& from, bool goes_on, double slope, Point& at) {
    const Tensor direction = state_.d();
    if (!options_.line_search_fn()) {
      add(direction, state_.t());
      if (!goes_on) return 0;
      at = look(evaluate(), state_.t(), goes_on);
      return 1;
    }
    TORCH_CHECK(*options_.line_search_fn() == "strong_wolfe", "only 'strong_wolfe' is supported");
    std::vector<Tensor> before;
    for (const Tensor& p : params_) before.push_back(p.clone());
    Point start = from;
    start.t = 0, start.slope = slope;
    WolfeSearch search(start, largest_, [&](double t) {
      add(direction, t);
      const Tensor loss = evaluate();
      const Point found = look(loss, t, goes_on);
      for (size_t i = 0; i < params_.size(); ++i) params_[i].copy_(before[i]);
      return found;
    });
    at = search.from(state_.t());
    state_.t(at.t);
    add(direction, at.t);
    return search.evaluations();
  }

  std::vector<Tensor>& params_;
  const Options& options_;
  State& state_;
  const Closure& closure_;
  std::optional<Direction> ready_;  // the direction from the point that was looked at last, at ready_for_
  double ready_for_ = 0;
  double total_ = 0;    // the sum of the absolute values of the latest gradient's elements
  double largest_ = 0;  // the largest absolute value of the direction's elements
};

// Returns whether all tensors are on the device and of one type that this LBFGS supports.
bool are_ours(const std::vector<Tensor>& params) {
  return !params.empty() && std::all_of(params.begin(), params.end(), [&](const Tensor& p) {
    return on_device(p) && p.scalar_type() == params[0].scalar_type() &&
           (p.scalar_type() == at::kFloat || p.scalar_type() == at::kDouble);
  });
}

using Step = Tensor (torch::optim::LBFGS::*)(torch::optim::Optimizer::LossClosure);

// Returns LibTorch's own step. It is virtual, so a pointer to it would not give its address.
Step libtorchs_step() {
  void* const address = dlsym(RTLD_NEXT, "_ZN5torch5optim5LBFGS4stepESt8functionIFN2at6TensorEvEE");
  SLUICE_CHECK(address != nullptr, "this LibTorch has no torch::optim::LBFGS::step");
  Step step{};  // an address, and nothing to add to `this` (Itanium C++ ABI, 2.3)
  std::memcpy(&step, &address, sizeof address);
  return step;
}

}  // namespace

void register_lbfgs() {
  static auto* own = new torch::Library(torch::Library::FRAGMENT, "sluice", std::nullopt, __FILE__, __LINE__);
  own->def(
      "lbfgs_direction(Tensor gradient, Tensor steps, Tensor changes, Tensor inverse, Tensor scale) -> "
      "Tensor");
}

}  // namespace sluice::device

// Replaces LibTorch's step, as the functions in overrides.cc do.
__attribute__((visibility("default"))) at::Tensor torch::optim::LBFGS::step(LossClosure closure) {
  static const auto next = sluice::device::libtorchs_step();
  auto& group = param_groups_.at(0);
  const auto& options = static_cast<const LBFGSOptions&>(group.options());
  if (closure == nullptr || options.history_size() < 1 || !sluice::device::are_ours(group.params()))
    return (this->*next)(std::move(closure));
  NoGradGuard no_grad;
  auto& state = state_[group.params()[0].unsafeGetTensorImpl()];
  if (state == nullptr) state = std::make_unique<LBFGSParamState>();
  return sluice::device::Steps(group.params(), options, static_cast<LBFGSParamState&>(*state), closure).run();
}
