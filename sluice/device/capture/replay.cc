#include "sluice/device/capture/replay.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <exception>
#include <optional>

#include "sluice/base/clock.h"
#include "sluice/base/error.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/random.h"
#include "sluice/device/report/metrics.h"
#include "sluice/device/runtime.h"

namespace sluice::device {
namespace {

using Kind = CapturedPlace::Kind;

// One replay of a tape. Nothing changes before run().
class Replay {
 public:
  Replay(const Tape& tape, const std::vector<at::Tensor>& arguments)
      : tape_(tape), arguments_(arguments), places_(tape.places.size()) {}

  // Returns the reason why the tape does not fit any more; "" if it fits.
  std::string obstacle() {
    if (tape_.opening != runtime().opening) return "the device was closed";
    if (!guards_hold()) return "the session is in another state (gradient accumulation)";
    if (!find_values()) return "a tensor that it uses was replaced, or has another type, layout or sameness";
    if (!are_distinct()) return "tensors that it uses share their value otherwise than before";
    if (!compute_numbers())
      return "an optimizer has other parameters, gradients or state, or its options choose another way";
    return "";
  }
  void run(std::vector<at::Tensor>& results, std::exception_ptr& wrong);

 private:
  struct Place {
    c10::intrusive_ptr<c10::StorageImpl> kept;
    LazyStorage* storage = nullptr;  // for a place outside, which holds the value
    DataPtr value;                   // for any other place
  };

  DataPtr& held(uint32_t place) {
    Place& found = places_[place];
    return found.storage != nullptr ? found.storage->data : found.value;
  }
  bool guards_hold() const;
  bool find_values();
  bool are_distinct();
  bool compute_numbers();
  Scalars scalars_of(const CapturedProgram& program, const std::vector<int64_t>& keys) const;
  void launch(const CapturedProgram& program, const Scalars& scalars);
  // Stores the program's results, and values that come from other places.
  void give(const CapturedProgram& program, const std::vector<DataPtr>& shared,
            const std::vector<DataPtr>& results);
  void lose(const CapturedProgram& program, const std::string& cause);
  at::Tensor result(const CapturedTensor& captured,
                    std::vector<std::pair<uint32_t, c10::intrusive_ptr<c10::StorageImpl>>>& made);

  const Tape& tape_;
  const std::vector<at::Tensor>& arguments_;
  std::vector<Place> places_;
  std::vector<StepNumbers> steps_;
};

bool Replay::guards_hold() const {
  for (const auto& [now, was] : tape_.guards)
    if (now() != was) return false;
  return true;
}

bool Replay::find_values() {
  for (size_t p = 0; p < places_.size(); ++p) {
    const CapturedPlace& captured = tape_.places[p];
    Place& place = places_[p];
    if (captured.kind == Kind::kArgument) {
      place.value = LazyStorage::of(arguments_[p])->data;
      continue;
    }
    if (captured.kind == Kind::kInside) continue;
    place.kept = captured.storage.lock();
    if (!place.kept) return false;
    LazyStorage& storage = static_cast<LazyStorage&>(*place.kept);
    if (storage.state != LazyStorage::State::kData || storage.data->type != captured.type ||
        storage.data->sameness != captured.sameness || storage.data->layout != captured.layout ||
        storage.strides != captured.strides || storage.keep_equal != captured.keep_equal)
      return false;
    place.storage = &storage;
  }
  return true;
}

// Returns whether equal values are still equal, and no program gets one value twice: it may take over its
// memory.
bool Replay::are_distinct() {
  for (const auto& [a, b] : tape_.equal)
    if (held(a) != held(b)) return false;
  for (const CapturedProgram& program : tape_.programs) {
    // No trace has this number: recording continues with the next one.
    const uint64_t mark = Trace::get().number++;
    for (const uint32_t argument : program.arguments) {
      const DataPtr& value = held(argument);
      if (!value) continue;  // made inside
      if (value->leaf_trace == mark && value->leaf != argument) return false;
      value->leaf_trace = mark;
      value->leaf = argument;
    }
  }
  return true;
}

bool Replay::compute_numbers() {
  for (const CapturedStep& captured : tape_.steps) {
    std::vector<uint64_t> state;
    add_state(*captured.step.optimizer, state);
    if (state != captured.state) return false;
    StepNumbers& all = steps_.emplace_back();
    if (!step_numbers(captured.step, all) || all.branches != captured.branches ||
        all.numbers.size() != captured.numbers)
      return false;
    for (const auto& [number, value] : captured.fixed)
      if (all.numbers[number] != value) return false;
  }
  return true;
}

Scalars Replay::scalars_of(const CapturedProgram& program, const std::vector<int64_t>& keys) const {
  Scalars scalars = program.scalars;
  for (const CapturedNumber& number : program.numbers) {
    if (number.step == CapturedNumber::kRandom) {
      scalars.i64[number.index] = keys[number.number];
      continue;
    }
    const double value = steps_[number.step].numbers[number.number];
    if (number.kind == ScalarClass::kF32)
      scalars.f32[number.index] = static_cast<float>(value);
    else
      scalars.f64[number.index] = value;
  }
  return scalars;
}

// Launches a program. A place that is replaced gives up its value before the launch, so that the program may
// take over its memory.
void Replay::launch(const CapturedProgram& program, const Scalars& scalars) {
  std::vector<DataPtr> shared(program.stores.size());  // the values that stores take from other places
  std::vector<bool> replaced(places_.size(), false);
  for (size_t i = 0; i < shared.size(); ++i) {
    const CapturedStore& store = program.stores[i];
    if (store.result == CapturedStore::kNoResult) shared[i] = held(store.from);
    replaced[store.place] = true;
  }
  if (program.program == nullptr) return give(program, shared, {});
  std::vector<DataPtr> leaves(program.arguments.size());
  Order order{program.program, program.boundary, {}, program.aliases, scalars, program.results};
  order.arguments.reserve(leaves.size());
  for (size_t i = 0; i < leaves.size(); ++i) {
    DataPtr& value = held(program.arguments[i]);
    // A place that keeps its value also keeps a reference, so that its memory is not taken.
    leaves[i] = replaced[program.arguments[i]] ? std::move(value) : value;
    order.arguments.push_back(&leaves[i]);
  }
  for (const CapturedStore& store : program.stores) held(store.place).reset();
  auto [results, flight] = launch_program(runtime(), order);
  give(program, shared, results);
  shared.clear();
  results.clear();
  for (DataPtr& leaf : leaves)
    if (leaf.use_count() == 1) flight.inputs.push_back(std::move(leaf));
  runtime().flights.push_back(std::move(flight));
}

void Replay::give(const CapturedProgram& program, const std::vector<DataPtr>& shared,
                  const std::vector<DataPtr>& results) {
  for (size_t i = 0; i < program.stores.size(); ++i) {
    const CapturedStore& store = program.stores[i];
    const DataPtr& value = store.result == CapturedStore::kNoResult ? shared[i] : results[store.result];
    Place& place = places_[store.place];
    if (place.storage != nullptr)
      set_data(*place.storage, value, store.strides);
    else
      place.value = value;
  }
}

// Marks values as lost, as a cut that failed does.
void Replay::lose(const CapturedProgram& program, const std::string& cause) {
  const auto lost = std::make_shared<const std::string>(cause);
  for (const CapturedStore& store : program.stores) {
    LazyStorage* const storage = places_[store.place].storage;
    if (storage == nullptr) continue;
    storage->data.reset();
    storage->state = LazyStorage::State::kLost;
    storage->lost = lost;
    storage->strides.clear();
  }
}

at::Tensor Replay::result(const CapturedTensor& captured,
                          std::vector<std::pair<uint32_t, c10::intrusive_ptr<c10::StorageImpl>>>& made) {
  if (!captured.defined) return {};
  const Place& place = places_[captured.place];
  at::Tensor tensor = make_empty(captured.sizes, captured.type);
  c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  c10::intrusive_ptr<c10::StorageImpl> storage = place.kept;
  for (const auto& [known, other] : made)
    if (known == captured.place) storage = other;
  if (!storage) {
    const DataPtr& value = held(captured.place);
    const auto bytes = value->type->type.bytes();
    auto fresh = c10::make_intrusive<LazyStorage>(bytes);
    // The strides of the last store, or of an argument that comes back unchanged.
    const std::vector<int64_t>* strides = nullptr;
    if (captured.place < arguments_.size()) strides = &LazyStorage::of(arguments_[captured.place])->strides;
    for (const CapturedProgram& program : tape_.programs)
      for (const CapturedStore& store : program.stores)
        if (store.place == captured.place) strides = &store.strides;
    set_data(*fresh, value, strides == nullptr ? std::vector<int64_t>() : *strides);
    storage = std::move(fresh);
    made.emplace_back(captured.place, storage);
  }
  impl.set_storage_keep_dtype(c10::Storage(std::move(storage)));
  impl.set_sizes_and_strides(captured.sizes, captured.strides, captured.offset);
  return tensor;
}

void Replay::run(std::vector<at::Tensor>& results, std::exception_ptr& wrong) {
  Metrics& metrics = Metrics::get();
  const double start = base::monotonic_seconds();
  // A wrong value that an earlier program found is thrown only after this call's programs, so that the state
  // is as if the call had been recorded.
  double waited = 0;
  const auto wait = [&] {
    const double before = base::monotonic_seconds();
    try {
      if (!wrong && runtime_options().run_ahead >= 0)  // a second one is found at the next wait
        wait_for_flights(static_cast<size_t>(runtime_options().run_ahead));
    } catch (const WrongValue&) {
      if (!wrong) wrong = std::current_exception();
    }
    waited += base::monotonic_seconds() - before;
  };
  wait();
  for (const CapturedStep& captured : tape_.steps) count_step(captured.step);
  std::vector<int64_t> keys;
  keys.reserve(tape_.draws.size());
  for (const auto& generator : tape_.draws)
    keys.push_back(random_key(generator ? *generator : at::detail::getDefaultCPUGenerator()));
  for (const CapturedProgram& program : tape_.programs) {
    if (&program != &tape_.programs.front()) wait();
    const Scalars scalars = scalars_of(program, keys);
    try {
      launch(program, scalars);
    } catch (const std::exception& error) {
      lose(program, error.what());
      throw;
    }
  }
  std::vector<std::pair<uint32_t, c10::intrusive_ptr<c10::StorageImpl>>> made;
  for (const CapturedTensor& captured : tape_.results) results.push_back(result(captured, made));
  {
    std::scoped_lock lock(metrics.mutex);
    metrics.counters.cuts += static_cast<int64_t>(tape_.programs.size());
    ++metrics.counters.replays;
    metrics.launch.add(base::monotonic_seconds() - start - waited);
    if (waited > 1e-4) metrics.counters.wait_seconds += waited;
  }
}

}  // namespace

std::string replay(const Tape& tape, const std::vector<at::Tensor>& arguments,
                   std::vector<at::Tensor>& results, std::exception_ptr& wrong) {
  Replay one(tape, arguments);
  if (std::string found = one.obstacle(); !found.empty()) return found;
  one.run(results, wrong);
  return "";
}

}  // namespace sluice::device
