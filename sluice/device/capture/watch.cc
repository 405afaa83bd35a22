#include "sluice/device/capture/watch.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <cstring>

#include "sluice/base/text/join.h"
#include "sluice/device/runtime.h"

namespace sluice::device {
namespace {

c10::weak_intrusive_ptr<c10::StorageImpl> weak_to(LazyStorage& storage) {
  return c10::weak_intrusive_ptr<c10::StorageImpl>(
      c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(static_cast<c10::StorageImpl*>(&storage)));
}

at::Generator copy_of(at::Generator generator) {
  std::scoped_lock lock(generator.mutex());
  return generator.clone();
}

// Returns whether the generator is where drawing this number of keys after `before` leaves it.
bool drew_only(const at::Generator& before, at::Generator now, size_t keys) {
  at::Generator expected = before.clone();
  auto* cpu = at::check_generator<at::CPUGeneratorImpl>(expected);
  for (size_t i = 0; i < keys; ++i) cpu->random64();
  std::scoped_lock lock(now.mutex());
  const at::Tensor a = expected.get_state(), b = now.get_state();
  return a.nbytes() == b.nbytes() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

// Returns only the step's options.
std::vector<double> options_of(torch::optim::Optimizer& optimizer) {
  StepNumbers all;
  step_numbers({&optimizer, std::vector<std::vector<uint32_t>>(optimizer.param_groups().size())}, all);
  return all.options;
}

std::vector<uint64_t> state_of(const torch::optim::Optimizer& optimizer) {
  std::vector<uint64_t> state;
  add_state(optimizer, state);
  return state;
}

// Matches the recorded numbers with a step's: all of them in order, except for constants of the program (a
// factor of exactly 1). Returns false if they do not match.
bool match(const std::vector<double>& expected, c10::ArrayRef<Number> recorded,
           std::vector<uint32_t>& numbers, std::vector<std::pair<uint32_t, double>>& fixed) {
  for (uint32_t i = 0; i < expected.size(); ++i) {
    const size_t next = numbers.size();
    if (next < recorded.size() && recorded[next].real == expected[i])
      numbers.push_back(i);
    else if (expected[i] == 1 || expected[i] == 0)
      fixed.emplace_back(i, expected[i]);
    else
      return false;
  }
  return numbers.size() == recorded.size();
}

}  // namespace

thread_local Watch* Watch::current_ = nullptr;

Watch::Watch(const std::vector<at::Tensor>& arguments, const Tape* before)
    : first_serial_(LazyStorage::next_serial()),
      default_began_(copy_of(at::detail::getDefaultCPUGenerator())) {
  tape_.opening = runtime().opening;
  for (const at::Tensor& argument : arguments) {
    LazyStorage& storage = *LazyStorage::of(argument);
    const auto place = static_cast<uint32_t>(tape_.places.size());
    tape_.places.push_back({.kind = CapturedPlace::Kind::kArgument, .storage = weak_to(storage)});
    seen_.emplace_back();
    places_.emplace(&storage, place);
  }
  if (before != nullptr)
    for (const CapturedStep& step : before->steps)
      began_[step.step.optimizer] = {state_of(*step.step.optimizer), options_of(*step.step.optimizer)};
  current_ = this;
}

Watch::~Watch() { current_ = nullptr; }

void Watch::refuse(std::string reason) {
  if (tape_.reason.empty()) tape_.reason = std::move(reason);
}

void Watch::guard(std::function<int64_t()> now) {
  const int64_t was = now();
  tape_.guards.emplace_back(std::move(now), was);
}

uint32_t Watch::place_of(LazyStorage& storage) {
  const auto [found, is_new] = places_.emplace(&storage, static_cast<uint32_t>(tape_.places.size()));
  if (!is_new) return found->second;
  CapturedPlace place{.storage = weak_to(storage), .address = &storage};
  Seen seen;
  const bool has_data = storage.state == LazyStorage::State::kData;
  if (outside(storage)) {
    place.kind = CapturedPlace::Kind::kOutside;
    place.keep_equal = storage.keep_equal;
    if (has_data) {
      place.type = storage.data->type;
      place.strides = storage.strides;
      place.sameness = storage.data->sameness;
      place.layout = storage.data->layout;
    }
  } else {
    seen.unknown = has_data;  // made of data before anything was recorded for it
  }
  tape_.places.push_back(std::move(place));
  seen_.push_back(std::move(seen));
  return found->second;
}

// Refuses the call if a cut was made without this Watch: the tape lacks a program.
void Watch::check_trace() {
  if (Trace::get().number != trace_) refuse("the graph is cut without it: by another thread, or by an error");
}

void Watch::touch(LazyStorage& storage, bool replaced) {
  check_trace();
  if (torch::autograd::get_current_graph_task_id() != -1)
    backward_ = true;
  else if (replaced && backward_ && !in_step_ && !at::GradMode::is_enabled() && outside(storage))
    other_update_ = true;
  const uint32_t place = place_of(storage);
  Seen& seen = seen_[place];
  const uint64_t trace = Trace::get().number;
  if (seen.trace == trace) return;
  seen.trace = trace;
  seen.data = 0;
  seen.strides = storage.strides;
  if (storage.state != LazyStorage::State::kData || seen.unknown) return;
  seen.data = storage.data->serial;
  const auto [holder, first] = holders_.emplace(seen.data, place);
  const auto outside_still = [&](uint32_t p) {
    return tape_.places[p].kind != CapturedPlace::Kind::kInside && !seen_[p].stored;
  };
  if (!first && outside_still(place) && outside_still(holder->second))
    tape_.equal.emplace_back(holder->second, place);
}

void Watch::takes(LazyStorage& storage, const Data& data) {
  touch(storage, /*replaced=*/true);
  seen_[place_of(storage)].unknown = !holders_.contains(data.serial);
}

void Watch::drew(const std::optional<at::Generator>& generator, int64_t key) {
  draws_.push_back({Trace::get().number, key});
  tape_.draws.push_back(generator);
  if (!generator) return;
  for (const auto& [known, began] : generators_)
    if (known == *generator) return;
  // The state before this key is unknown by now; check_generators() compares from here.
  generators_.emplace_back(*generator, copy_of(*generator));
}

void Watch::begin_step(torch::optim::Optimizer& optimizer) {
  in_step_ = true;
  const Trace& trace = Trace::get();
  CapturedStep step{.step = step_now(optimizer)};
  Window window{.trace = trace.number, .first = trace.numbers.size()};
  if (!step_numbers(step.step, window.expected))
    refuse(
        "it steps an optimizer whose numbers are not known: not one of LibTorch's SGD, Adam, AdamW, RMSprop "
        "and "
        "Adagrad, or one without state yet");
  for (const CapturedStep& other : tape_.steps)
    if (other.step.optimizer == &optimizer) refuse("it steps one optimizer twice");
  step.branches = window.expected.branches;
  step.numbers = window.expected.numbers.size();
  if (const auto began = began_.find(&optimizer); began != began_.end()) step.state = began->second.first;
  tape_.steps.push_back(std::move(step));
  windows_.push_back(std::move(window));
}

void Watch::end_step() {
  in_step_ = false;
  const Trace& trace = Trace::get();
  Window& window = windows_.back();
  window.last = trace.numbers.size();
  if (window.trace != trace.number) {
    window.first = window.last = 0;
    return refuse("the graph is cut inside an optimizer's step");
  }
  // A gradient may be a part of another tensor. Its place there is an integer, which does not belong to the
  // step.
  std::vector<Number> recorded;
  std::vector<size_t> places;
  for (const Node& node : trace.nodes)
    for (size_t i = 0; node.first_number >= window.first && i < node.instance->slots.size(); ++i) {
      if (node.instance->slots[i].kind == ScalarClass::kI64) continue;
      places.push_back(node.first_number + i - window.first);
      recorded.push_back(trace.numbers[node.first_number + i]);
    }
  std::vector<uint32_t> numbers;
  if (!match(window.expected.numbers, recorded, numbers, tape_.steps.back().fixed))
    return refuse("the numbers of its optimizer's step follow no law that is known here");
  window.numbers.assign(window.last - window.first, Window::kConstant);
  for (size_t i = 0; i < places.size(); ++i) window.numbers[places[i]] = numbers[i];
}

void Watch::add_stores(const std::vector<uint32_t>& output_of, CapturedProgram& program) {
  std::unordered_map<const LazyStorage*, uint32_t> result_of;
  size_t next = 0;
  const uint64_t trace = Trace::get().number;
  for (LazyStorage* s = Trace::get().first_pending(); s != nullptr; s = s->next) {
    result_of.emplace(s, output_of[next++]);
    const auto known = places_.find(s);
    if (known == places_.end() || seen_[known->second].trace != trace)
      refuse("another thread records a part of it");
  }
  for (uint32_t p = 0; p < tape_.places.size(); ++p) {
    Seen& seen = seen_[p];
    if (seen.trace != trace) continue;
    const auto alive = tape_.places[p].storage.lock();
    if (!alive) continue;
    const auto& storage = static_cast<const LazyStorage&>(*alive);
    CapturedStore store{.place = p, .strides = storage.strides};
    if (storage.state == LazyStorage::State::kPending) {
      store.result = result_of.at(&storage);
    } else if (storage.state == LazyStorage::State::kData) {
      if (storage.data->serial == seen.data && storage.strides == seen.strides) continue;
      const auto holder = holders_.find(storage.data->serial);
      if (holder == holders_.end()) {
        if (tape_.places[p].kind == CapturedPlace::Kind::kOutside)
          refuse("a tensor that lives outside gets a value from the host");
        seen.unknown = true;
        continue;
      }
      store.from = holder->second;
    } else {
      continue;
    }
    seen.unknown = false;
    seen.stored = true;
    program.stores.push_back(std::move(store));
  }
}

void Watch::add_numbers(const Trace& trace, const Plan& plan, CapturedProgram& program) {
  std::unordered_map<size_t, uint32_t> draw_of;  // by the place of a random operation's key in Trace::numbers
  for (const Node& node : trace.nodes) {
    const auto& slots = node.instance->slots;
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].argument != Slot::kRandom) continue;
      const size_t number = node.first_number + i;
      const bool known = drawn_ < draws_.size() && draws_[drawn_].key == trace.numbers[number].integer;
      if (!known) refuse("a random operation has a key that it did not draw");
      draw_of[number] = static_cast<uint32_t>(drawn_++);
    }
  }
  if (drawn_ != draws_.size()) refuse("a random key was drawn and not used");
  uint32_t counts[kScalarClasses] = {};
  if (!program.scalars.i64.empty() && plan.scalars[static_cast<size_t>(ScalarClass::kI64)] > 0 &&
      runtime().world.needs_base()) {
    counts[static_cast<size_t>(ScalarClass::kI64)] = 1;
    program.owners[static_cast<size_t>(ScalarClass::kI64)].emplace_back();
  }
  for (const uint32_t live : plan.nodes) {
    const Node& node = trace.nodes[live];
    const auto& slots = node.instance->slots;
    for (size_t i = 0; i < slots.size(); ++i) {
      const size_t place = node.first_number + i;
      const auto kind = static_cast<size_t>(slots[i].kind);
      CapturedNumber number{.kind = slots[i].kind, .index = counts[kind]++};
      program.owners[kind].push_back({node.instance->row, node.name});
      if (slots[i].argument == Slot::kRandom) {
        number.number = draw_of[place];
        program.numbers.push_back(number);
        continue;
      }
      for (uint32_t s = 0; s < windows_.size(); ++s) {
        const Window& window = windows_[s];
        if (window.trace != trace.number || place < window.first || place >= window.last) continue;
        if (place - window.first >= window.numbers.size()) continue;  // refused by end_step
        if (window.numbers[place - window.first] == Window::kConstant) continue;
        number.step = s;
        number.number = window.numbers[place - window.first];
        program.numbers.push_back(number);
      }
    }
  }
  for (const CapturedNumber& number : program.numbers) {
    if (number.kind == ScalarClass::kF32) program.scalars.f32[number.index] = 0;
    if (number.kind == ScalarClass::kI64) program.scalars.i64[number.index] = 0;
    if (number.kind == ScalarClass::kF64) program.scalars.f64[number.index] = 0;
  }
}

void Watch::cut(const Trace& trace, const Plan& plan, std::shared_ptr<const Program> compiled,
                const std::vector<uint32_t>& output_of, const Scalars& scalars, std::string_view what) {
  check_trace();
  trace_ = Trace::get().number + 1;
  CapturedProgram& program = tape_.programs.emplace_back();
  program.program = std::move(compiled);
  program.boundary = what;
  program.aliases = plan.aliases;
  program.scalars = scalars;
  for (const uint32_t leaf : plan.leaves) {
    const auto holder = holders_.find(trace.leaves[leaf]->serial);
    if (holder == holders_.end()) refuse("it copies a value from the host to the device");
    program.arguments.push_back(holder == holders_.end() ? 0 : holder->second);
  }
  for (const Ref& output : plan.outputs) program.results.push_back(trace.facts(output));
  for (size_t i = 0; i < plan.layouts.size(); ++i) program.results[i].layout = plan.layouts[i];
  add_stores(output_of, program);
  add_numbers(trace, plan, program);
  holders_.clear();
}

void Watch::cut_without_program(std::string_view what) {
  check_trace();
  trace_ = Trace::get().number + 1;
  CapturedProgram program;
  program.boundary = what;
  add_stores({}, program);
  holders_.clear();
  drawn_ = draws_.size();  // no program needs these keys
  if (!program.stores.empty()) tape_.programs.push_back(std::move(program));
}

void Watch::add_result(const at::Tensor& tensor) {
  CapturedTensor result;
  if (tensor.defined()) {
    if (!on_device(tensor)) return refuse("it returns a tensor of the host");
    const auto found = places_.find(LazyStorage::of(tensor));
    const bool known = found != places_.end() && !seen_[found->second].unknown;
    if (!known) return refuse("it returns a tensor that no program of it has made");
    result = {true,
              found->second,
              tensor.sizes().vec(),
              tensor.strides().vec(),
              tensor.storage_offset(),
              tensor.scalar_type()};
    if (tensor.is_conj() || tensor.is_neg())
      refuse("it returns a tensor that is conjugated or negated lazily");
  }
  tape_.results.push_back(std::move(result));
}

void Watch::check_kept(const std::vector<at::Tensor>& results) {
  std::unordered_map<const c10::StorageImpl*, size_t> returned;
  for (const at::Tensor& result : results)
    if (on_device(result)) ++returned[LazyStorage::of(result)];
  for (const CapturedPlace& place : tape_.places) {
    if (place.kind == CapturedPlace::Kind::kOutside) {
      if (place.storage.use_count() == 0) refuse("a tensor that lived before the call was released by it");
      continue;
    }
    const auto alive = place.storage.lock();
    if (!alive) continue;
    const auto found = returned.find(alive.get());
    const size_t expected = found == returned.end() ? 0 : found->second;
    if (alive.use_count() - 1 <= expected) continue;
    const auto& storage = static_cast<const LazyStorage&>(*alive);
    const std::string what =
        storage.type == nullptr ? std::string("a tensor") : base::str("a ", storage.type->type.str());
    const bool argument = place.kind == CapturedPlace::Kind::kArgument;
    const Origin made = storage.data ? storage.data->made_by : Origin();
    refuse(base::str(argument ? "an argument, " : "it makes ", what,
                     made.row == nullptr ? std::string() : base::str(" of ", made.row->name),
                     made.layer == 0 ? std::string() : base::str(" (layer ", Names::name(made.layer), ")"),
                     argument ? ", is kept" : " that is kept",
                     " outside of the function; return it, or let it go (gradients: session.step releases "
                     "them, else optimizer.zero_grad() after the step)"));
  }
}

void Watch::check_generators() {
  const auto count = [&](const std::optional<at::Generator>& generator) {
    return static_cast<size_t>(std::count(tape_.draws.begin(), tape_.draws.end(), generator));
  };
  if (!drew_only(default_began_, at::detail::getDefaultCPUGenerator(), count(std::nullopt)))
    refuse("it draws random numbers for the host, or seeds the generator");
  // These generators were copied after their first key.
  for (const auto& [generator, began] : generators_)
    if (!drew_only(began, generator, count(generator) - 1))
      refuse("it draws random numbers for the host, or seeds the generator");
}

void Watch::check_optimizers() {
  if (backward_ && other_update_ && tape_.steps.empty())
    refuse(
        "it updates tensors after a backward pass, and no optimizer's step is known: call "
        "session.step(optimizer) or sluice::step(optimizer) instead of optimizer.step()");
  for (size_t i = 0; i < windows_.size(); ++i) {
    torch::optim::Optimizer& optimizer = *tape_.steps[i].step.optimizer;
    const auto began = began_.find(&optimizer);
    const std::vector<double>& options = windows_[i].expected.options;
    if (options_of(optimizer) != options || (began != began_.end() && began->second.second != options))
      refuse("it changes an optimizer's options (learning rate); do so outside of the function");
  }
}

Tape Watch::finish(const std::vector<at::Tensor>& results) {
  for (const at::Tensor& result : results) add_result(result);
  check_kept(results);
  check_generators();
  check_optimizers();
  if (tape_.programs.empty()) refuse("it records nothing");
  return std::move(tape_);
}

}  // namespace sluice::device
