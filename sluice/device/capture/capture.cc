#include "sluice/device/capture/capture.h"

#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <exception>

#include "sluice/base/error.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/device/capture/replay.h"
#include "sluice/device/capture/watch.h"
#include "sluice/device/exact.h"
#include "sluice/device/program/record.h"
#include "sluice/device/random.h"
#include "sluice/device/runtime.h"

namespace sluice {

void step(torch::optim::Optimizer& optimizer) {
  device::Watch* const watch = device::Watch::current();
  if (watch != nullptr) {
    auto lock = device::lock_trace();
    watch->begin_step(optimizer);
  }
  optimizer.step();
  if (watch == nullptr) return;
  auto lock = device::lock_trace();
  watch->end_step();
}

namespace device {

void at_each_replay(std::function<void()> after, std::function<int64_t()> state) {
  Watch* const watch = Watch::current();
  if (watch == nullptr) return;
  watch->guard(std::move(state));
  watch->after(std::move(after));
}
void refuse_replay(std::string reason) {
  if (Watch* const watch = Watch::current()) watch->refuse(std::move(reason));
}
bool captured_call_is_recorded() { return Watch::current() != nullptr; }

// The calls whose arguments have the same shapes and types, and equal values of all arguments that are not
// tensors.
struct CapturedVariant {
  std::vector<uint64_t> key;
  Tape tape;          // the tape of the latest recorded call
  int same = 0;       // recorded calls in a row that equalled it
  int in_vain = 0;    // recorded calls in a row that did not, or that cannot be replayed
  int failed = 0;     // replays in a row that were not possible
  int64_t since = 0;  // replays since the latest recorded call
  bool warned = false;
};

namespace {

// The number of recordings in vain, or failed replays, in a row that causes a warning.
constexpr int kPatience = 6;
// The number of combinations of arguments that are remembered; the oldest is dropped first.
constexpr size_t kVariants = 16;

// Returns the modes of the thread and the device that a recording depends on besides its arguments.
uint64_t modes() {
  uint64_t all = 0;
  for (const bool on : {c10::GradMode::is_enabled(), at::autocast::is_autocast_enabled(at::kXLA),
                        shared_random(), sync_batch_norm(), records_exactly()})
    all = all * 2 + (on ? 1 : 0);
  all = all * 256 + static_cast<uint64_t>(at::autocast::get_autocast_dtype(at::kXLA));
  return all * 256 + static_cast<uint64_t>(c10::typeMetaToScalarType(c10::get_default_dtype()));
}

void add_key(const at::Tensor& argument, std::vector<uint64_t>& key) {
  const LazyStorage& storage = *LazyStorage::of(argument);
  key.push_back(reinterpret_cast<uintptr_t>(storage.data->type));
  key.push_back(static_cast<uint64_t>(storage.data->sameness) << 32 |
                static_cast<uint64_t>(argument.scalar_type()) << 16 | static_cast<uint64_t>(argument.dim()));
  key.push_back(static_cast<uint64_t>(argument.storage_offset()));
  key.push_back(reinterpret_cast<uintptr_t>(storage.data->layout));
  for (const int64_t size : argument.sizes()) key.push_back(static_cast<uint64_t>(size));
  for (const int64_t stride : argument.strides()) key.push_back(static_cast<uint64_t>(stride));
  key.push_back(storage.strides.size());
  for (const int64_t stride : storage.strides) key.push_back(static_cast<uint64_t>(stride));
}

void put_on_device(std::vector<at::Tensor>& arguments) {
  for (at::Tensor& argument : arguments) {
    if (!argument.defined())
      throw_error(Code::kInvalidArgument, "capture: an argument is an undefined tensor");
    if (argument.requires_grad())
      throw_error(Code::kInvalidArgument,
                  "capture: an argument requires gradients, and they do not leave a captured function; pass "
                  "tensor.detach()");
    argument = argument.resolve_conj().resolve_neg();
    if (!on_device(argument)) argument = argument.to(at::Device(at::kXLA, 0));
  }
}

// Returns new tensors with the arguments' values, so that writes to them stay inside.
std::vector<at::Tensor> as_values(const std::vector<at::Tensor>& arguments) {
  std::vector<at::Tensor> values;
  for (const at::Tensor& argument : arguments) {
    const LazyStorage& from = *LazyStorage::of(argument);
    at::Tensor value =
        make_empty({static_cast<int64_t>(from.nbytes() / argument.itemsize())}, argument.scalar_type());
    value.unsafeGetTensorImpl()->set_sizes_and_strides(argument.sizes(), argument.strides(),
                                                       argument.storage_offset());
    set_data(*LazyStorage::of(value), from.data, from.strides);
    values.push_back(std::move(value));
  }
  return values;
}

// Returns the results without gradients, as new tensors, so that a result that the function also keeps is
// seen to be held twice.
std::vector<at::Tensor> detached(std::vector<at::Tensor> results) {
  for (at::Tensor& result : results)
    if (result.defined()) result = result.detach();
  return results;
}

}  // namespace

struct Captured::State {
  CaptureOptions options;
  std::string before;                                      // the name of the cut that precedes a call
  std::vector<std::unique_ptr<CapturedVariant>> variants;  // the most recently used first
  int64_t replays = 0, recordings = 0;
  std::string reason;

  CapturedVariant& variant(std::vector<uint64_t> key);
  Tensors record(CapturedVariant& variant, const Tensors& arguments, Body body);
  void learn(CapturedVariant& variant, Tape now);
  void say_why(CapturedVariant& variant);
};

Captured::Captured(CaptureOptions options) : state_(std::make_unique<State>()) {
  if (options.check_every < 1)
    throw_error(Code::kInvalidArgument,
                base::str("capture: check_every must be at least 1, found ", options.check_every));
  state_->options = std::move(options);
  state_->before = "before " + state_->options.name;
}
Captured::~Captured() = default;
Captured::Captured(Captured&&) noexcept = default;
Captured& Captured::operator=(Captured&&) noexcept = default;
int64_t Captured::replays() const { return state_->replays; }
int64_t Captured::recordings() const { return state_->recordings; }
const std::string& Captured::reason() const { return state_->reason; }

CapturedVariant& Captured::State::variant(std::vector<uint64_t> key) {
  auto found = std::find_if(variants.begin(), variants.end(),
                            [&](const std::unique_ptr<CapturedVariant>& known) { return known->key == key; });
  if (found == variants.end()) {
    if (variants.size() == kVariants) variants.pop_back();
    variants.push_back(std::make_unique<CapturedVariant>());
    variants.back()->key = std::move(key);
    found = variants.end() - 1;
  }
  std::rotate(variants.begin(), found, found + 1);
  return *variants.front();
}

// Warns once, with the reason, if calls are recorded instead of replayed.
void Captured::State::say_why(CapturedVariant& variant) {
  if (variant.in_vain < kPatience || variant.warned) return;
  variant.warned = true;
  base::warn("'", options.name, "' is recorded at each call instead of replayed: ", reason);
}

void Captured::State::learn(CapturedVariant& variant, Tape now) {
  const bool checked = variant.same + 1 >= kRecordings && variant.since > 0;
  reason = now.reason;
  if (reason.empty() && !variant.tape.programs.empty() && variant.tape.reason.empty())
    reason = difference(variant.tape, now);
  const bool as_before = reason.empty() && !variant.tape.programs.empty() && variant.tape.reason.empty();
  std::string said;
  if (checked && !as_before) {
    said = base::str("'", options.name, "' is no longer what was captured: ", reason, "; ", variant.since,
                     " calls since the latest recorded one were replayed as they were recorded before");
  }
  variant.since = 0;
  variant.same = as_before ? variant.same + 1 : 0;
  variant.in_vain = as_before ? 0 : variant.in_vain + 1;
  variant.tape = std::move(now);
  if (said.empty()) return say_why(variant);
  if (runtime_options().strict) throw_error(Code::kFailedPrecondition, said);
  base::warn("capture: ", said);
}

Captured::Tensors Captured::State::record(CapturedVariant& variant, const Tensors& arguments, Body body) {
  ++recordings;
  Tensors values;
  {
    TraceLock lock = lock_trace();
    values = as_values(arguments);
  }
  Watch watch(values, variant.tape.programs.empty() ? nullptr : &variant.tape);
  Tensors results = detached(body(values));
  values.clear();
  TraceLock lock = lock_trace();
  sluice::sync(options.name);
  Tape tape = watch.finish(results);
  const Watch::Pause over(nullptr);
  learn(variant, std::move(tape));
  return results;
}

Captured::Tensors Captured::call(Tensors arguments, std::vector<uint64_t> numbers, Body body) {
  // Inside another captured function, the call is a part of that one.
  if (!is_initialized() || runtime_options().eager || runtime().ahead || Watch::current() != nullptr) {
    if (is_initialized()) put_on_device(arguments);
    for (at::Tensor& argument : arguments) argument = argument.detach().clone();
    return detached(body(arguments));
  }
  State& state = *state_;
  put_on_device(arguments);
  CapturedVariant* variant = nullptr;
  {
    TraceLock lock = lock_trace();
    check_thread(Trace::get());
    // A call begins with data only, so that it has the same program no matter what was recorded before it.
    sluice::sync(state.before);
    check_thread(Trace::get());  // a new trace has no owner yet
    for (const at::Tensor& argument : arguments) {
      if (LazyStorage::of(argument)->state != LazyStorage::State::kData) {
        read(argument);  // never written: zeros
        sluice::sync(state.before);
      }
      add_key(argument, numbers);
    }
    numbers.push_back(modes());
    variant = &state.variant(std::move(numbers));
    if (variant->same + 1 >= kRecordings && variant->since + 1 < state.options.check_every) {
      Tensors results;
      std::exception_ptr wrong;
      const std::string changed = replay(variant->tape, arguments, results, wrong);
      if (changed.empty()) {
        ++variant->since;
        ++state.replays;
        variant->failed = 0;
        lock.unlock();  // these functions may wait for threads that record or fetch
        for (const auto& call : variant->tape.after) call();
        if (wrong) std::rethrow_exception(wrong);
        return results;
      }
      variant->same = 0;
      variant->since = 0;
      if (++variant->failed == kPatience)
        base::warn("'", state.options.name, "' is recorded again and again: ", changed);
    }
  }
  return state.record(*variant, arguments, body);
}

}  // namespace device
}  // namespace sluice
