#include "sluice/device/runtime.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <pthread.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <new>
#include <span>
#include <thread>

#include "sluice/base/clock.h"
#include "sluice/base/error.h"
#include "sluice/base/formats/hash.h"
#include "sluice/base/log.h"
#include "sluice/base/result.h"
#include "sluice/base/span.h"
#include "sluice/device/capture/watch.h"
#include "sluice/device/offsets.h"
#include "sluice/device/open.h"
#include "sluice/device/operators/factor_statuses.h"
#include "sluice/device/operators/host_shapes.h"
#include "sluice/device/program/ahead.h"
#include "sluice/device/program/program.h"
#include "sluice/device/program/record.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/report/alive.h"
#include "sluice/device/report/busy_clock.h"
#include "sluice/device/report/metrics.h"
#include "sluice/device/report/shortage.h"
#include "sluice/device/sharding/shard.h"

namespace sluice::device {
namespace {

std::unique_ptr<Runtime>& current_runtime() {
  static auto* runtime = new std::unique_ptr<Runtime>();
  return *runtime;
}
std::mutex runtime_mutex;                // guards the pointer; uploading threads do not wait for the trace
std::atomic<Runtime*> opened = nullptr;  // the pointer, once the device is open: read with each operation

// Waits at the end of the process for programs in flight: a program that still runs while the plugin's own
// clean-up frees its code would crash. The wait is short (1 s) with several processes, because others may be
// missing forever.
void wait_at_exit() {
  std::unique_lock trace(Trace::get().mutex, std::try_to_lock);
  std::unique_lock lock(runtime_mutex, std::try_to_lock);
  if (!trace || !lock || !current_runtime()) return;
  Runtime& rt = *current_runtime();
  const double deadline = base::monotonic_seconds() + (rt.world.processes > 1 ? 1 : 60);
  for (const Runtime::Flight& flight : rt.flights) {
    for (const pjrt::Event& event : flight.done) {
      while (!event.ready() && base::monotonic_seconds() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

// Waits at the end of the main thread, which comes before everything that is registered for the process's
// end: also before the clean-up of objects that a program makes when it runs for the first time (oneDNN's
// kernels).
struct WaitAtThreadEnd {
  ~WaitAtThreadEnd() { wait_at_exit(); }
};

std::atomic<bool> is_forked = false;  // forked from a process that had opened the device

// Runs in the child of a fork(): the plugin's threads do not exist there, and a lock may be held by a missing
// thread. The parent's device is left untouched, and every use of it is an error instead of an endless wait.
void forget_parents_device() {
  if (opened.exchange(nullptr) == nullptr) return;
  is_forked = true;
  new (&Trace::get().mutex) std::recursive_mutex;
  new (&runtime_mutex) std::mutex;
  [[maybe_unused]] Runtime* const left = current_runtime().release();
}

void open_with(const Settings& settings) {
  if (is_forked)
    throw_error(Code::kFailedPrecondition,
                "this process was forked from one that had opened the xla device, and a plugin does not "
                "survive a fork(): start the process with fork() and exec(), or fork before the device is "
                "used for the first time");
  [[maybe_unused]] static const int registered = ::pthread_atfork(nullptr, nullptr, forget_parents_device);
  current_runtime() = open(settings);
  opened.store(current_runtime().get(), std::memory_order_release);
}

void register_once() {
  static std::once_flag once;
  std::call_once(once, register_kernels);
}

// LibTorch's autograd engine makes its threads only once, at the first backward pass of the process: one for
// each kind of device that has a guard by then. A program may train on the CPU before it calls init(), so
// this guard is registered before main; it is next to init() so that no linker drops it. There are no streams
// to guard.
const c10::impl::DeviceGuardImplRegistrar guard_registrar(at::kXLA,
                                                          new c10::impl::NoOpDeviceGuardImpl<at::kXLA>());

}  // namespace

Runtime& runtime() {
  if (Runtime* const rt = opened.load(std::memory_order_acquire)) return *rt;
  std::scoped_lock lock(runtime_mutex);
  if (!current_runtime()) open_with(settings_of({}));
  return *current_runtime();
}
const Settings& runtime_options() { return runtime().options; }
int replicas_in_world() { return runtime().world.replicas(); }
bool sync_batch_norm() { return runtime().sync_batch_norm; }

uint64_t opening_now() {
  const Runtime* const rt = opened.load(std::memory_order_acquire);
  return rt == nullptr ? 0 : rt->opening;
}

void check_opening(const Data& data) {
  if (data.opening == opening_now()) return;
  if (is_forked) runtime();  // throws
  throw_error(Code::kFailedPrecondition,
              base::str("a ", data.type->type.str(),
                        " on xla:0 was made before sluice::shutdown() closed the device: read it before "
                        "(tensor.cpu()), or make it again"));
}

namespace {
void check_found(Runtime::Flight& flight) {
  if (flight.found.empty()) return;
  flight.found.check(flight.program->checks, base::str("program ", flight.number, " ('", flight.what, "')"));
}
}  // namespace

void wait_for_flights(size_t in_flight) {
  Runtime& rt = runtime();
  if (rt.flights.size() <= in_flight) return;
  const base::Span span("wait for the device");
  while (rt.flights.size() > in_flight) {
    Runtime::Flight flight = std::move(rt.flights.front());
    rt.flights.pop_front();
    for (pjrt::Event& event : flight.done) {
      if (auto status = event.await(); !status) {
        throw_error(explained(status.error(),
                              base::str("program ", flight.number, " ('", flight.what, "') failed"),
                              flight.program.get()));
      }
    }
    check_found(flight);
    check_statuses(flight.number);
  }
}

stablehlo::Flops launched_flops() {
  const TraceLock lock = lock_trace();
  return runtime().launched_flops;
}

void at_end_of_launch(std::function<void(double)> call) {
  const TraceLock lock = lock_trace();
  const auto& flights = runtime().flights;
  if (flights.empty()) return call(base::monotonic_seconds());
  // One more than the number of events, so that the last event cannot call before all are registered.
  auto left = std::make_shared<std::atomic<size_t>>(flights.back().done.size() + 1);
  const auto one_less = [left, call = std::move(call)](const base::Status&) {
    if (left->fetch_sub(1) == 1) call(base::monotonic_seconds());
  };
  for (const pjrt::Event& event : flights.back().done) event.on_ready(one_less);
  one_less({});
}

void check_found_values(int64_t launch) {
  for (Runtime::Flight& flight : runtime().flights)
    if (flight.number <= launch) check_found(flight);
  check_statuses(launch);
}

namespace {

std::function<void(const LaunchRecord&)> launch_check;  // belongs to the trace's lock

// Returns the numbers of one type on each replica; null for no numbers. Reuses the last launch's buffers
// for equal numbers.
template <typename Number>
std::shared_ptr<std::vector<pjrt::Buffer>> put_scalars(Runtime& rt, const std::vector<Number>& numbers,
                                                       stablehlo::DType dtype, SentScalars& sent) {
  if (numbers.empty()) return nullptr;
  const std::string_view bytes(reinterpret_cast<const char*>(numbers.data()),
                               numbers.size() * sizeof(Number));
  if (sent.buffers != nullptr && sent.bytes == bytes) return sent.buffers;
  const stablehlo::Type type{dtype, {static_cast<int64_t>(numbers.size())}};
  auto buffers = std::make_shared<std::vector<pjrt::Buffer>>();
  for (pjrt::Device* device : rt.devices) {
    buffers->push_back(
        base::value_or_throw(rt.client->put(numbers.data(), type, *device, pjrt::HostCopy::kDuringCall, {})));
  }
  sent = {std::string(bytes), buffers};
  return buffers;
}

// Checks that every process launches the same programs with the same numbers; only the base may differ.
void check_launch(Runtime& rt, const Order& order) {
  if (rt.world.processes == 1 || !launch_check) return;
  auto mix = [&rt](uint64_t word) { rt.launched_hash = base::mix_word(rt.launched_hash, word); };
  const Scalars& scalars = order.scalars;
  mix(order.program->canonical);
  for (float number : scalars.f32) mix(std::bit_cast<uint32_t>(number));
  for (size_t i = rt.world.needs_base() ? 1 : 0; i < scalars.i64.size(); ++i)
    mix(static_cast<uint64_t>(scalars.i64[i]));
  for (double number : scalars.f64) mix(std::bit_cast<uint64_t>(number));
  launch_check({rt.launches, rt.launched_hash, order.what, order.program->launches == 0, order.program.get(),
                order.plan});
}

// Decides which results take over an argument's Data: an argument that has no other owner becomes its result.
// An argument that something else still holds (a clone, a log, a checkpoint) is copied. All other results are
// new.
std::vector<int64_t> divide(const Order& order, std::vector<DataPtr>& results) {
  std::vector<int64_t> not_donated;
  for (size_t i = 0; i < order.arguments.size(); ++i) {
    if (order.aliases[i] < 0) continue;
    if (order.arguments[i]->is_uniquely_owned())
      results[static_cast<size_t>(order.aliases[i])] = *order.arguments[i];
    else
      not_donated.push_back(static_cast<int64_t>(i));
  }
  for (DataPtr& result : results)
    if (!result) result = c10::make_intrusive<Data>();
  return not_donated;
}

std::vector<DataPtr> launch(Runtime& rt, const Order& order, Runtime::Flight& flight) {
  const Program& program = *order.program;
  flight.scalars = {put_scalars(rt, order.scalars.f32, stablehlo::DType::kF32, program.scalars[0]),
                    put_scalars(rt, order.scalars.i64, stablehlo::DType::kS64, program.scalars[1]),
                    put_scalars(rt, order.scalars.f64, stablehlo::DType::kF64, program.scalars[2])};
  std::vector<std::vector<pjrt::Buffer*>> arguments(rt.devices.size());
  for (size_t r = 0; r < rt.devices.size(); ++r) {
    arguments[r].reserve(order.arguments.size() + kScalarClasses);
    for (const DataPtr* argument : order.arguments) arguments[r].push_back(&(*argument)->buffers[r]);
    for (const auto& buffers : flight.scalars) {
      if (buffers != nullptr) arguments[r].push_back(&(*buffers)[r]);
    }
  }
  std::vector<DataPtr> results(order.facts.size());
  const std::vector<int64_t> not_donated = divide(order, results);
  std::vector<std::vector<pjrt::Buffer>*> outputs;
  outputs.reserve(results.size() + 1);
  for (const DataPtr& result : results) outputs.push_back(&result->buffers);
  std::vector<pjrt::Buffer> found;
  if (!program.checks.empty()) outputs.push_back(&found);
  flight.replaced.reserve(results.size());
  BusyClock& clock = BusyClock::get();
  const int64_t began = clock.begin();
  auto done = program.executable->execute_into(outputs, flight.replaced, arguments, not_donated);
  clock.end_after(done ? std::span<const pjrt::Event>(*done) : std::span<const pjrt::Event>(), began);
  flight.done = base::value_or_throw(std::move(done));
  if (!found.empty()) flight.found = FoundValues(std::move(found));
  return results;
}

// Launches; an error of the plugin gets the program's name and, if memory was short, a list of what used it.
std::vector<DataPtr> launch_explained(Runtime& rt, const Order& order, Runtime::Flight& flight) {
  try {
    return launch(rt, order, flight);
  } catch (const Error& error) {
    throw_error(explained(error, base::str("launching program ", flight.number, " ('", flight.what, "')"),
                          order.program.get()));
  }
}

}  // namespace

std::pair<std::vector<DataPtr>, Runtime::Flight> launch_program(Runtime& rt, const Order& order) {
  const base::Span span("launch");
  const Program& program = *order.program;
  Runtime::Flight flight;
  flight.what = order.what;
  flight.number = ++rt.launches;
  flight.program = order.program;
  check_launch(rt, order);
  std::vector<DataPtr> results = launch_explained(rt, order, flight);
  rt.launched_flops += program.flops;
  // The plugin also makes objects that its clean-up destroys while it compiles and launches. A function
  // registered after them is called before their destruction.
  if (++program.launches == 1) std::atexit(wait_at_exit);
  thread_local const WaitAtThreadEnd also_before;
  std::vector<Data*> fresh;
  for (size_t i = 0; i < results.size(); ++i) {
    results[i]->renew(order.facts[i], flight.number);
    if (!results[i]->alive) fresh.push_back(results[i].get());
  }
  note_alive(fresh);
  return {std::move(results), std::move(flight)};
}

void set_launch_check(std::function<void(const LaunchRecord&)> check) {
  TraceLock lock = lock_trace();
  launch_check = std::move(check);
}

namespace {

// Returns the facts of the program's results. They are read before the launch, which may wait while the
// replicas start, and whose work drives the trace out of the processor's caches.
std::vector<ValueFacts> facts_of_outputs(const Trace& trace, const Plan& plan) {
  std::vector<ValueFacts> facts;
  facts.reserve(plan.outputs.size());
  for (const Ref& output : plan.outputs) facts.push_back(trace.facts(output));
  for (size_t i = 0; i < plan.layouts.size(); ++i) facts[i].layout = plan.layouts[i];
  return facts;
}

// Gives the pending storages their results.
void settle(Trace& trace, const std::vector<uint32_t>& output_of, const std::vector<DataPtr>& results) {
  for (uint32_t output : output_of) {
    LazyStorage& storage = *trace.first_pending();
    set_data(storage, results[output], std::move(storage.strides));
  }
}

// Leaves nothing half-recorded after a failure: pending values are lost, and reading one names the cause.
void lose_pending(Trace& trace, const std::string& cause) {
  auto shared = std::make_shared<const std::string>(cause);
  while (LazyStorage* storage = trace.first_pending()) {
    trace.unlink(*storage);
    storage->state = LazyStorage::State::kLost;
    storage->lost = shared;
    storage->strides.clear();
  }
  forget_pending_statuses();
  trace.clear();
}

// Records a span of the host's time from a graph's first operation to its end.
void record_recording(double end) {
  if (!base::spans_are_recorded()) return;
  constexpr double kNanoseconds = 1e9;
  base::record_span("record", static_cast<int64_t>(first_record_time() * kNanoseconds),
                    static_cast<int64_t>(end * kNanoseconds));
}

}  // namespace

void cut(std::string_view what) {
  Trace& trace = Trace::get();
  if (trace.first_pending() == nullptr) {
    if (Watch* watch = Watch::current()) watch->cut_without_program(what);
    trace.clear();
    return;
  }
  Runtime& rt = runtime();
  Metrics& metrics = Metrics::get();
  const double start = base::monotonic_seconds();
  record_recording(start);
  const base::Span span("cut");
  try {
    if (rt.ahead) return lower_ahead(rt, trace, what);
    std::vector<uint32_t> output_of;
    const Plan plan = make_plan(trace, rt.world, output_of);
    const std::shared_ptr<const Program> program = find_program(trace, plan, what);
    const double before_launch = base::monotonic_seconds();
    if (rt.options.run_ahead >= 0) wait_for_flights(static_cast<size_t>(rt.options.run_ahead));
    const double after_wait = base::monotonic_seconds();
    Scalars scalars;
    gather_scalars(trace, plan, rt.world, scalars);
    Watch* const watch = Watch::current();
    if (watch != nullptr) watch->cut(trace, plan, program, output_of, scalars, what);
    const Watch::Pause settling(watch);
    const std::vector<ValueFacts> facts = facts_of_outputs(trace, plan);
    Order order{program, what, {}, plan.aliases, scalars, facts, &plan};
    order.arguments.reserve(plan.leaves.size());
    for (uint32_t leaf : plan.leaves) order.arguments.push_back(&trace.leaves[leaf]);
    auto [results, flight] = launch_program(rt, order);
    settle(trace, output_of, results);
    copy_statuses();
    for (DataPtr& leaf : trace.leaves) {
      if (leaf.use_count() == 1) flight.inputs.push_back(std::move(leaf));
    }
    rt.flights.push_back(std::move(flight));
    {
      std::scoped_lock lock(metrics.mutex);
      metrics.counters.recorded += static_cast<int64_t>(trace.nodes.size());
      ++metrics.counters.cuts;
      metrics.trace.add(start - first_record_time());
      metrics.counters.trace_seconds += start - first_record_time();
      metrics.launch.add(base::monotonic_seconds() - after_wait);
      if (after_wait - before_launch > 1e-4) metrics.counters.wait_seconds += after_wait - before_launch;
    }
    trace.clear();
    free_instances(trace);
    if (rt.options.eager) wait_for_flights(0);
  } catch (const WrongValue&) {
    throw;
  } catch (const std::exception& error) {
    lose_pending(trace, error.what());
    throw;
  }
}

}  // namespace sluice::device

namespace sluice {

namespace {

void init_with(const device::Settings& settings) {
  device::register_once();
  std::scoped_lock lock(device::runtime_mutex);
  auto& current = device::current_runtime();
  if (!current) return device::open_with(settings);
  if (current->options != settings) {
    throw_error(Code::kFailedPrecondition,
                "the xla device is open with other options; call sluice::shutdown() first, or start once");
  }
}

}  // namespace

void init(const DeviceOptions& options) { init_with(device::settings_of(options)); }
void init(const Mesh& mesh, const DeviceOptions& options) { init_with(device::settings_of(options, mesh)); }

bool is_initialized() { return device::opened.load(std::memory_order_acquire) != nullptr; }

void shutdown() {
  auto lock = device::lock_trace();
  auto& current = device::current_runtime();
  if (!current) return;
  device::cut("shutdown");
  device::wait_for_flights(0);
  device::forget_statuses();
  device::forget_lengths();
  device::forget_programs();
  device::forget_instances();
  device::Offsets::get().forget();
  device::Trace::get().expect_nothing();
  std::scoped_lock guard(device::runtime_mutex);
  device::opened.store(nullptr, std::memory_order_release);
  current.reset();
  pjrt::end_waits({});
}

int replicas() { return device::runtime().world.local_replicas; }
int first_replica() { return device::runtime().world.first_replica(); }

std::string describe_device() {
  const device::Runtime& rt = device::runtime();
  const std::string path = rt.client->plugin()->path(), platform = rt.client->platform_name();
  const std::string kind = rt.devices.front()->kind();
  std::vector<int> ids;
  for (const pjrt::Device* device : rt.devices) ids.push_back(device->id());
  const bool chosen = !rt.options.device_ids.empty(), one = ids.size() == 1;
  return base::str("plugin ", rt.client->plugin()->name(), " (", path.substr(path.rfind('/') + 1),
                   "), platform ", platform, ", ", ids.size(), one ? " local device" : " local devices",
                   kind == platform ? "" : base::str(" (", kind, ")"),
                   chosen ? base::str(one ? ", id " : ", ids ", base::join(ids, ", ")) : "");
}
void set_sync_batch_norm(bool on) { device::runtime().sync_batch_norm = on; }

void sync(std::string_view what) {
  auto lock = device::lock_trace();
  device::cut(what);
}

void wait() {
  auto lock = device::lock_trace();
  const double start = base::monotonic_seconds();
  device::wait_for_flights(0);
  auto& metrics = device::Metrics::get();
  std::scoped_lock guard(metrics.mutex);
  metrics.counters.wait_seconds += base::monotonic_seconds() - start;
}

}  // namespace sluice
