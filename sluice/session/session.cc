#include "sluice/session/session.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>

#include "sluice/base/clock.h"
#include "sluice/base/environment.h"
#include "sluice/base/files/safe_join.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/quantity.h"
#include "sluice/replica/collectives.h"
#include "sluice/replica/connect.h"
#include "sluice/replica/placement.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/session/log_line.h"
#include "sluice/session/pieces/shared_checkpoint.h"
#include "sluice/session/rates/device_peak.h"
#include "sluice/session/session_state.h"

namespace sluice {

namespace session_detail {

constexpr char kProfilerPort[] = "the profiler's port";

std::vector<std::pair<std::string, at::Tensor>> named_tensors(const torch::nn::Module& model) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto& item : model.named_parameters()) tensors.emplace_back(item.key(), item.value());
  for (const auto& item : model.named_buffers()) tensors.emplace_back(item.key(), item.value());
  return tensors;
}

std::vector<torch::Tensor> parameters_of(const torch::optim::Optimizer& optimizer) {
  std::vector<torch::Tensor> result;
  for (const auto& group : optimizer.param_groups())
    result.insert(result.end(), group.params().begin(), group.params().end());
  return result;
}

// The processes that the options or the environment name; null if this is the only one.
std::shared_ptr<replica::Processes> join_others(const Options& options) {
  replica::Placement placement{options.process_index, options.process_count, options.coordinator,
                               "the options"};
  if (options.process_count == 0) {
    const auto found = base::value_or_throw(replica::find_placement(base::environment));
    if (!found) return nullptr;
    placement = *found;
  }
  if (placement.processes == 1) return nullptr;
  if (options.device != "xla")
    throw_error(Code::kInvalidArgument,
                base::str("the device \"", options.device, "\" trains in one process, and ", placement.source,
                          " started ", placement.processes, "; use the device \"xla\""));
  auto joined = base::value_or_throw(replica::Processes::join(placement));
  if (const int slices = placement.slice.count; slices > 1 && joined->index() == 0)
    base::info(slices, " TPU slices of ", base::counted(joined->count() / slices, "process"),
               " each run one program");
  return joined;
}

std::shared_ptr<const sessions::Backend> open_backend(const Options& options,
                                                      const std::shared_ptr<replica::Processes>& processes) {
  if (processes == nullptr)
    return std::make_shared<sessions::Backend>(options.device, options.xla, options.mesh);
  DeviceOptions xla = options.xla;
  xla.processes = processes->count();
  xla.process_index = processes->index();
  replica::connect_device(processes);
  try {
    return std::make_shared<sessions::Backend>(options.device, xla, options.mesh);
  } catch (const std::exception& error) {
    processes->fail(error.what());  // otherwise the other processes would wait for this one's devices
    throw;
  }
}

monitor::ProcessIdentity identity_of(const sessions::Backend& backend, const replica::Processes* processes) {
  monitor::ProcessIdentity identity = monitor::own_identity();
  if (processes != nullptr) {
    identity.index = processes->index();
    identity.count = processes->count();
    identity.coordinator = processes->placement().coordinator;
    if (processes->placement().slice.count > 1) identity.slice = processes->placement().slice.index;
  }
  identity.replicas = backend.local_replicas();
  identity.device = backend.device().str();
  return identity;
}

std::unique_ptr<monitor::StatusServer> serve_status(const std::string& port, replica::Processes* processes) {
  auto server = monitor::StatusServer::start(port, ::getpid());
  if (!server && processes != nullptr) processes->fail(server.error().what());
  if (!server) throw_error(server.error());
  base::info("status: /status and /metrics on port ", (*server)->port());
  return std::move(*server);
}

// Each process of a host has its own port.
cloud::ListenAddress profiler_address(const std::string& text, const replica::Processes* processes) {
  cloud::ListenAddress address = base::value_or_throw(cloud::parse_listen_address(text, kProfilerPort));
  const int local =
      processes == nullptr ? 0 : replica::local_index(processes->placement(), base::environment);
  if (address.port == 0) return address;
  if (address.port + local > 65535)
    throw_error(Code::kInvalidArgument,
                base::str(kProfilerPort, ": process ", local, " of this host would have the port ",
                          address.port + local, "; choose a lower one"));
  address.port += local;
  return address;
}

std::unique_ptr<profile::ProfilerService> serve_profiles(const std::string& port, Session::State& state) {
  profile::ProfilerService::Training training;
  replica::Processes* processes = state.processes.get();
  training.about = sessions::describe_process(*state.backend, processes == nullptr ? 0 : processes->index(),
                                              processes == nullptr ? 1 : processes->count());
  training.plugin = state.backend->plugin();
  training.requests = state.requests;
  training.figures = [&state] { return sessions::figures_of(state.status.latest()); };
  training.status = [&state] {
    monitor::ProcessStatus status = state.status.latest();
    status.step = state.requests->progress().steps;
    status.time = base::wall_seconds();
    status.identity.coordinator.clear();  // the processes' meeting point is private
    return monitor::text_of(status);
  };
  auto service = profile::ProfilerService::start(profiler_address(port, processes), std::move(training));
  if (!service && processes != nullptr) processes->fail(service.error().what());
  if (!service) throw_error(service.error());
  base::info("profiler: process ", training.about.process, " at ", cloud::text_of((*service)->address()));
  return std::move(*service);
}

}  // namespace session_detail

Session::State::State(const Options& options)
    : processes(session_detail::join_others(options)),
      backend(session_detail::open_backend(options, processes)),
      deliveries(backend, processes),
      meter(base::monotonic_seconds(), backend->local_replicas()),
      peak(backend->is_xla() ? sessions::replica_peak() : std::nullopt),
      requests(options.profiler_port.empty() ? nullptr : std::make_shared<profile::StepRequests>()),
      spans(backend, requests),
      status(session_detail::identity_of(*backend, processes.get())) {
  if (!options.status_port.empty() && (processes == nullptr || processes->index() == 0))
    status_server = session_detail::serve_status(options.status_port, processes.get());
  if (options.profiler_port.empty()) return;
  profiler = session_detail::serve_profiles(options.profiler_port, *this);
  status.set_profiler(cloud::text_of(profiler->address()));
}

Session::State::~State() {
  const bool failing = std::uncaught_exceptions() > exceptions;
  if (failing && processes != nullptr) {
    // The other processes must not wait for this one, nor this one for them.
    processes->fail("it ended with an error");
    return;
  }
  try {
    spans.finish(steps);
    deliveries.deliver(/*wait=*/true);
  } catch (const std::exception& error) {
    base::error("while the session ended: ", error.what());
  }
}

void Session::State::beat() {
  heartbeat.beat();
  const double now = base::monotonic_seconds();
  if (!status.is_due(now)) return;
  status.write(
      {steps, meter.epoch() + 1, meter.all_examples(), meter.starving(), backend->times(), backend->is_xla()},
      rates(records, std::nullopt), now);
}

void Session::State::update(const std::vector<torch::optim::Optimizer*>& optimizers, bool keep_gradients) {
  for (auto* optimizer : optimizers) backend->step(*optimizer);
  // A gradient that lives past the end of the graph would be a result of the program, written to memory.
  if (!keep_gradients)
    for (auto* optimizer : optimizers) optimizer->zero_grad();
  reduced = false;
}

void Session::State::end_step() {
  step_log.begin(meter.take_begin());
  sessions::StepWork work = meter.take_work();
  if (const auto flops = backend->flops()) {
    work.flops = flops_before ? *flops - *flops_before : *flops;
    flops_before = flops;
  }
  // The first step compiles; so does the second if the first one creates the optimizer's state.
  bool counts = steps > 2;
  if (steps == 1) first_compiles = backend->compiles();
  if (steps == 2) counts = backend->compiles() == first_compiles;
  backend->at_end(step_log.step(work, counts));
}

StepRates Session::State::rates(sessions::StepLog::Reader& reader, std::optional<int64_t> until) {
  return sessions::rates_of(step_log.take(reader, until), backend->batch_parts(), peak, backend->memory());
}

Feed::State::OnBatch Session::State::count_batches(const std::shared_ptr<State>& state, int64_t epoch) {
  auto source = std::make_shared<const sessions::StepMeter::Source>(
      sessions::StepMeter::Source{epoch, base::monotonic_seconds()});
  return [state, source](const sessions::StepMeter::Handed& batch) {
    if (state->meter.hand_out(source, batch, base::monotonic_seconds()))
      state->flops_before = state->backend->flops();
  };
}

void Session::State::hold_equal(torch::optim::Optimizer& optimizer, const replica::NamedTensors& others,
                                bool from_leader) {
  if (!prepared.insert(&optimizer).second) return;
  const std::vector<torch::Tensor> parameters = session_detail::parameters_of(optimizer);
  replica::NamedTensors tensors = sessions::create_missing_state(optimizer);
  if (backend->replicas() > 1 || processes != nullptr) {
    tensors.insert(tensors.end(), others.begin(), others.end());
    for (size_t i = 0; i < parameters.size(); ++i)
      tensors.emplace_back(base::str("parameter ", i), parameters[i]);
    replica::make_global(processes.get(), tensors, from_leader);
  }
  backend->keep_equal(parameters);
}

torch::Device Session::device() const { return state_->backend->device(); }
void Session::place(torch::nn::Module& module, const std::vector<ShardRule>& rules) {
  state_->backend->place(module, rules);
}
int Session::replicas() const { return state_->backend->replicas(); }
int Session::local_replicas() const { return state_->backend->local_replicas(); }
int Session::first_replica() const { return state_->backend->first_replica(); }
int Session::batch_part() const { return state_->backend->batch_part(); }
int Session::batch_parts() const { return state_->backend->batch_parts(); }
int Session::process_index() const { return state_->processes ? state_->processes->index() : 0; }
int Session::processes() const { return state_->processes ? state_->processes->count() : 1; }
bool Session::is_leader() const { return process_index() == 0; }
int64_t Session::steps() const { return state_->steps; }

Feed Session::feed(const data::Dataset& dataset, const FeedOptions& options) {
  FeedOptions chosen = options;
  int64_t& next = state_->epochs[&dataset];
  if (chosen.epoch < 0) chosen.epoch = next;
  next = chosen.epoch + 1;
  auto source = sessions::dataset_source(dataset, local_replicas(), batch_part(), batch_parts(), chosen);
  auto feed =
      std::make_unique<Feed::State>(state_->backend, std::move(source.next), chosen,
                                    State::count_batches(state_, chosen.epoch), std::move(source.statistics));
  if (chosen.normalize) feed->set_normalization(dataset.mean(), dataset.deviation());
  return Feed(std::move(feed));
}

Feed Session::feed_source(sessions::HostSource source, const FeedOptions& options) {
  auto feed = std::make_unique<Feed::State>(state_->backend, std::move(source), options,
                                            State::count_batches(state_, options.epoch));
  feed->normalize = options.normalize;
  return Feed(std::move(feed));
}

torch::Tensor Session::upload(const std::vector<torch::Tensor>& one_per_replica) {
  return state_->backend->upload(one_per_replica);
}

std::vector<torch::Tensor> Session::read(const torch::Tensor& tensor) {
  state_->backend->cut("read");
  return state_->backend->fetch(tensor).get();
}

const sessions::Backend& Session::backend() const { return *state_->backend; }

std::shared_ptr<sessions::SavePeers> Session::save_peers() {
  std::shared_ptr<sessions::SavePeers>& peers = state_->save_peers;
  if (peers != nullptr) return peers;
  peers = std::make_shared<sessions::SavePeers>();
  const std::shared_ptr<replica::Processes> processes = state_->processes;
  if (processes == nullptr) return peers;
  peers->index = processes->index();
  peers->count = processes->count();
  peers->put = [processes](const std::string& key, const std::string& text) {
    return processes->put(key, text);
  };
  peers->get = [processes](const std::string& key) { return processes->try_get(key); };
  peers->status = [processes] { return processes->status(); };
  return peers;
}

void Session::before_update(const std::vector<torch::optim::Optimizer*>& optimizers,
                            const StepOptions& options) {
  std::vector<torch::Tensor> parameters;
  for (auto* optimizer : optimizers) {
    std::vector<torch::Tensor> own = session_detail::parameters_of(*optimizer);
    state_->hold_equal(*optimizer, {}, /*from_leader=*/false);
    parameters.insert(parameters.end(), own.begin(), own.end());
  }
  reduce_gradients(parameters);
  if (options.clip_value > 0) torch::nn::utils::clip_grad_value_(parameters, options.clip_value);
  if (options.clip_norm > 0) clip_grad_norm_(parameters, options.clip_norm);
}

void Session::update(torch::optim::Optimizer& optimizer, const StepOptions& options) {
  if (state_->accumulating > 0)
    throw_error(Code::kFailedPrecondition,
                "session.update() while gradients are accumulated: call it outside of an Accumulate's life");
  before_update({&optimizer}, options);
  state_->update({&optimizer}, options.keep_gradients);
}

void Session::step(torch::optim::Optimizer& optimizer, const StepOptions& options) {
  step(std::vector{&optimizer}, options);
}

// A captured function may outlive the session with which it was recorded.
void Session::State::count_replays(const std::shared_ptr<State>& state, bool updates) {
  device::at_each_replay(
      [weak = std::weak_ptr<State>(state), updates] {
        const auto self = weak.lock();
        if (!self) return;
        self->meter.step(base::monotonic_seconds());
        if (updates) ++self->steps;
        if (updates) self->end_step();
        self->beat();
        self->deliveries.deliver(/*wait=*/false);
        if (updates) self->spans.step(self->steps);
      },
      [weak = std::weak_ptr<State>(state)]() -> int64_t {
        const auto self = weak.lock();
        return self ? self->accumulating - self->accumulating_inside : -1;
      });
}

void Session::step(const std::vector<torch::optim::Optimizer*>& optimizers, const StepOptions& options) {
  state_->meter.step(base::monotonic_seconds());
  State::count_replays(state_, /*updates=*/state_->accumulating == 0);
  if (state_->accumulating > 0) return sync("accumulate");
  before_update(optimizers, options);
  state_->update(optimizers, options.keep_gradients);
  if (options.behind_update) options.behind_update();
  ++state_->steps;
  sync("step");
  state_->end_step();
  state_->spans.step(state_->steps);
}

torch::Tensor Session::step(torch::optim::Optimizer& optimizer,
                            const std::function<torch::Tensor()>& closure) {
  device::refuse_replay("an optimizer that evaluates its loss several times decides by values");
  state_->backend->warn_of_flat_vectors();
  state_->meter.step(base::monotonic_seconds());
  torch::Tensor loss = optimizer.step([&] {
    torch::Tensor value = closure();
    before_update({&optimizer}, {});
    state_->reduced = false;  // each evaluation computes new gradients
    sync("closure");
    return value;
  });
  ++state_->steps;
  sync("step");
  state_->end_step();
  state_->spans.step(state_->steps);
  return loss;
}

StepRates Session::step_rates(std::optional<int64_t> until) { return state_->rates(state_->calls, until); }
std::string Session::peak_text() const { return state_->peak ? state_->peak->text() : ""; }

void Session::reduce_gradients(const std::vector<torch::Tensor>& parameters) {
  if (replicas() == 1) return;
  const auto has_gradient = [](const torch::Tensor& parameter) { return parameter.grad().defined(); };
  const int64_t averaged = replica::reduce_gradients(parameters);
  if (averaged == 0 && !state_->reduced && !state_->warned_of_equal_gradients &&
      std::any_of(parameters.begin(), parameters.end(), has_gradient)) {
    state_->warned_of_equal_gradients = true;
    base::warn(
        "all gradients are equal on the ", replicas(),
        " replicas before they are averaged: the batch was not split, and every replica did the same ",
        "work. Take batches from session.feed, or give each replica its part by sluice::split(tensor)");
  }
  state_->reduced = true;
}

void Session::sync_buffers(const torch::nn::Module& model) { replica::make_equal(model.buffers()); }

void Session::check_replicas(const torch::nn::Module& model) {
  for (const auto& item : model.named_parameters()) {
    const std::vector<torch::Tensor> parts = read(item.value());
    for (size_t r = 1; r < parts.size(); ++r) {
      const auto bytes = static_cast<size_t>(parts[r].nbytes());
      if (bytes == 0 || std::memcmp(parts[r].const_data_ptr(), parts[0].const_data_ptr(), bytes) == 0)
        continue;
      throw_error(Code::kInternal,
                  base::str("the parameter '", item.key(), "' differs between replica 0 and replica ", r,
                            " after step ", steps(), ", although it is marked as equal"));
    }
  }
}

void Session::sync(const char* what) {
  state_->beat();
  state_->backend->cut(what);
  state_->deliveries.deliver(/*wait=*/false);
}

void Session::profile(int64_t first, int64_t end, const std::string& folder) {
  std::string run = profile::run_name(base::wall_seconds());
  if (state_->processes != nullptr) {
    run = base::value_or_throw(state_->processes->broadcast("profile", run));
    base::value_or_throw(base::safe_join(folder, run));  // it becomes a folder's name here
  }
  state_->spans.ask({.first = first,
                     .end = end,
                     .folder = folder,
                     .run = run,
                     .about = sessions::describe_process(*state_->backend, process_index(), processes())},
                    state_->steps);
}

Span::Span(std::string_view name) {
  if (!base::spans_are_recorded()) return;
  name_ = base::span_name(name);
  begin_ = base::span_clock();
}
Span::~Span() {
  if (name_ != nullptr) base::record_span(name_, begin_, base::span_clock());
}

void Session::barrier() {
  device::refuse_replay("it waits at a barrier");
  sync();
  state_->backend->wait();
  if (state_->processes != nullptr) base::value_or_throw(state_->processes->barrier("session"));
}

void Session::after_step(std::vector<torch::Tensor> values,
                         std::function<void(std::vector<torch::Tensor>)> function, Over over) {
  device::refuse_replay("session.after_step is called in it; call it outside with what the function returns");
  state_->deliveries.add(values, std::move(function), /*alone=*/over == Over::kLocalReplicas);
}

void Session::log_every(int64_t n, std::initializer_list<std::pair<std::string, LogValue>> values) {
  device::refuse_replay("session.log_every is called in it; call it outside with what the function returns");
  if (n <= 0 || state_->steps == 0 || state_->steps % n != 0) return;
  sessions::LogLine line{.device = device(),
                         .process = process_index(),
                         .epoch = state_->meter.epoch() + 1,
                         .step = state_->steps,
                         .rates = state_->meter.take(base::monotonic_seconds()),
                         .time = base::local_time()};
  std::vector<torch::Tensor> tensors;
  std::vector<bool> on_host;
  for (const auto& [name, value] : values) {
    const auto* number = std::get_if<double>(&value.value());
    line.values.emplace_back(name, number ? *number : 0);
    on_host.push_back(number != nullptr);
    if (!number) tensors.push_back(std::get<torch::Tensor>(value.value()));
  }
  // The pointer stays valid: the state owns the function, and calls it only while it lives.
  after_step(std::move(tensors), [this_prints = is_leader(), line = std::move(line), on_host,
                                  state = state_.get()](const std::vector<torch::Tensor>& host) mutable {
    if (!this_prints) return;
    line.steps = state->rates(state->lines, line.step);
    size_t next = 0;
    for (size_t i = 0; i < on_host.size(); ++i)
      if (!on_host[i]) line.values[i].second = host[next++].item().toDouble();
    std::printf("%s\n", sessions::text_of(line).c_str());
    std::fflush(stdout);
  });
}

void Session::print_line(const std::string& text) const {
  if (!is_leader()) return;
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

void Session::finish() {
  sync();
  state_->backend->wait();
  state_->deliveries.deliver(/*wait=*/true);
}

void Session::name(const torch::nn::Module& model) {
  state_->backend->name(session_detail::named_tensors(model));
}

void Session::prepare(const torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                      const PrepareOptions& options) {
  prepare(model, std::vector{&optimizer}, options);
}

void Session::prepare(const torch::nn::Module& model, const std::vector<torch::optim::Optimizer*>& optimizers,
                      const PrepareOptions& options) {
  name(model);
  replica::NamedTensors tensors = session_detail::named_tensors(model);
  for (auto* optimizer : optimizers) {
    // The state that a checkpoint has brought.
    for (auto& [name, tensor] : sessions::optimizer_tensors(*optimizer, model))
      tensors.emplace_back(name, tensor);
    state_->hold_equal(*optimizer, std::exchange(tensors, {}), options.from_leader);
    state_->backend->label(sessions::optimizer_tensors(*optimizer, model));
  }
}

void Session::release(const torch::optim::Optimizer& optimizer) { state_->prepared.erase(&optimizer); }

std::vector<std::string> Session::gather_on_host(const std::string& name, const std::string& bytes) {
  if (state_->processes == nullptr) return {bytes};
  return base::value_or_throw(state_->processes->gather("gather " + name, bytes));
}

bool Session::agree_to_stop(bool wish) { return agree_to("stop", wish); }

bool Session::agree_to(const std::string& what, bool wish) {
  if (state_->processes == nullptr) return wish;
  // The processes are at most a few steps apart, so no process has reached this call yet.
  constexpr int64_t kAhead = 8;
  const std::string key = what + " at call";
  const int64_t call = ++state_->agreement_calls[what];
  auto agreed = base::value_or_throw(state_->processes->try_get(key));
  if (!agreed && wish)
    agreed = base::value_or_throw(state_->processes->put_first(key, std::to_string(call + kAhead)));
  if (!agreed) return false;
  const auto at = base::number_of<int64_t>(*agreed);
  if (!at)
    throw_error(Code::kDataLoss,
                base::str("another process did not give a number for the step in which to ", what));
  return call >= *at;
}

torch::Tensor clip_grad_norm_(const std::vector<torch::Tensor>& parameters, double max_norm,
                              double norm_type) {
  torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> gradients, norms;
  for (const auto& parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    gradients.push_back(parameter.grad());
    // 16 bits round a norm by up to 0.4 %, and f16 ends at 65504, beyond which every gradient would become 0.
    const bool is_half =
        gradients.back().scalar_type() == at::kHalf || gradients.back().scalar_type() == at::kBFloat16;
    norms.push_back(at::linalg_vector_norm(gradients.back(), norm_type, at::OptionalIntArrayRef(), false,
                                           is_half ? std::optional(at::kFloat) : std::nullopt));
  }
  if (gradients.empty()) return torch::zeros({});
  torch::Tensor total = at::linalg_vector_norm(torch::stack(norms), norm_type);
  torch::Tensor factor = (max_norm / (total + 1e-6)).clamp_max(1.0);
  for (auto& gradient : gradients) gradient.mul_(factor);
  return total;
}

Accumulate::Accumulate(Session& session)
    : state_(session.state_), inside_(device::captured_call_is_recorded()) {
  ++state_->accumulating;
  if (inside_) ++state_->accumulating_inside;
}
Accumulate::~Accumulate() {
  --state_->accumulating;
  if (inside_) --state_->accumulating_inside;
}

}  // namespace sluice
