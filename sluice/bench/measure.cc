#include "sluice/bench/measure.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/bench/foreign_program.h"
#include "sluice/bench/other_side.h"
#include "sluice/device/capture/capture.h"
#include "sluice/device/device.h"
#include "sluice/device/program/program.h"
#include "sluice/device/runtime.h"

namespace sluice::bench {
namespace measure_detail {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

struct Times {
  std::vector<double> trace, launch, host, step;
};

// Returns the CPU seconds that this thread has worked, without its waits.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Runs this number of steps and waits at the end; appends the times of one step to `times`.
void xla_steps(Step& step, int steps, Times* times) {
  double tracing = 0, launching = 0, worked = 0;
  const double start = base::monotonic_seconds();
  for (int i = 0; i < steps; ++i) {
    const double begin = base::monotonic_seconds();
    step.record();
    const double traced = base::monotonic_seconds(), before = thread_seconds();
    sync("step");
    tracing += traced - begin;
    launching += base::monotonic_seconds() - traced;
    worked += thread_seconds() - before;
  }
  wait();
  if (times == nullptr) return;
  times->trace.push_back(tracing / steps);
  times->launch.push_back(launching / steps);
  times->host.push_back((tracing + worked) / steps);
  times->step.push_back((base::monotonic_seconds() - start) / steps);
}

// Returns the host's work for one step: recording, and launching without its waits. A pause before each step
// lets the plugin's threads come to rest, so that they do not share this thread's core.
double measure_host(Step& step, int rounds) {
  Times times;
  for (int round = 0; round < rounds; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    xla_steps(step, 1, &times);
  }
  return median(times.host);
}

// Measures the step again, captured (sluice::capture), so that the host only replays it.
nlohmann::json measure_captured(Step& step, int rounds, int steps) {
  auto replay = capture([&] { return step.run(); }, {.name = "captured step"});
  const auto run = [&](int count) {
    const double start = base::monotonic_seconds();
    double worked = 0;
    for (int i = 0; i < count; ++i) {
      const double before = thread_seconds();
      replay();
      sync("step");
      worked += thread_seconds() - before;
    }
    wait();
    return std::pair{worked / count, (base::monotonic_seconds() - start) / count};
  };
  run(2 * device::Captured::kRecordings);
  std::vector<double> host, all;
  for (int round = 0; round < rounds; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    const auto [worked, took] = run(steps);
    host.push_back(worked);
    all.push_back(took);
  }
  return {{"host_ms", median(host) * 1e3},
          {"step_ms", median(all) * 1e3},
          {"replays", replay.captured().replays()},
          {"why_not", replay.captured().reason()}};
}

// Returns the bytes of device memory that a program needs, as its compiler reports; null if it reports none.
nlohmann::json needed_bytes(const pjrt::Executable& executable) {
  const auto memory = executable.memory();
  if (!memory) return nullptr;
  return memory->arguments + memory->outputs - memory->aliased + memory->temporary;
}

// Returns the bytes of device memory that the step's largest program needs.
nlohmann::json memory_of_step(Step& step) {
  const auto counts = [] {
    const auto lock = device::lock_trace();
    return device::launch_counts();
  };
  const device::LaunchCounts before = counts();
  xla_steps(step, 1, nullptr);
  nlohmann::json largest;
  for (const auto& [program, launches] : counts()) {
    const auto found = before.find(program);
    if (program->executable == nullptr || (found != before.end() && found->second == launches)) continue;
    const nlohmann::json bytes = needed_bytes(*program->executable);
    if (largest.is_null() || (!bytes.is_null() && bytes > largest)) largest = bytes;
  }
  return largest;
}

void multiply(Products& products) {
  products.record();
  sync("products");
  wait();
}

double timed(const std::function<void()>& work) {
  const double start = base::monotonic_seconds();
  work();
  return base::monotonic_seconds() - start;
}

// Returns the CPU's best instruction set among those for which kernels differ.
std::string instruction_set() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return "AVX-512";
  if (__builtin_cpu_supports("avx2")) return "AVX2";
#endif
  return "basic";
}

// Runs a side until the effects of the other sides are gone: their threads spin for some milliseconds, and
// their data is in the caches.
void settle(const std::function<void()>& work) {
  const double end = base::monotonic_seconds() + 0.1;
  do work();
  while (base::monotonic_seconds() < end);
}

double timed_settled(const std::function<void()>& work) {
  settle(work);
  return timed(work);
}

bool is_over(const StepOptions& options, double started) {
  return options.seconds > 0 && base::monotonic_seconds() - started > options.seconds;
}

}  // namespace measure_detail

nlohmann::json measure_step(const StepOptions& options) {
  using namespace measure_detail;
  const double started = base::monotonic_seconds();
  const Case bench = find_case(options.model, options.sizes);
  DeviceOptions device;
  device.plugin = options.plugin;
  device.devices = options.devices;
  device.cpu_kernels = options.cpu_kernels;
  init(device);
  if (options.threads > 0) torch::set_num_threads(options.threads);

  // The programs of the products are compiled here, so that the counters of the step do not include them.
  std::map<std::string, std::unique_ptr<Products>> products;
  const auto add_products = [&](const std::string& name, torch::Device device) {
    products[name] = std::make_unique<Products>(bench, options.batch_size, device);
    multiply(*products[name]);
  };
  if (bench.only_products) add_products("xla_ms", torch::Device(torch::kXLA, 0));
  if (bench.only_products && options.eager) add_products("eager_ms", torch::kCPU);
  Step ours(bench, options.batch_size, torch::Device(torch::kXLA, 0), torch::MemoryFormat::Contiguous,
            options.bf16);
  wait();
  const Counters before = counters();
  const double first = timed([&] {
    for (int i = 0; i < options.warmup; ++i) xla_steps(ours, 1, nullptr);
  });
  const Counters warm = counters();

  std::map<std::string, std::unique_ptr<Step>> eager;
  if (options.eager) {
    eager["eager contiguous"] = std::make_unique<Step>(bench, options.batch_size, torch::kCPU,
                                                       torch::MemoryFormat::Contiguous, options.bf16);
    if (bench.images) {
      eager["eager channels_last"] = std::make_unique<Step>(bench, options.batch_size, torch::kCPU,
                                                            torch::MemoryFormat::ChannelsLast, options.bf16);
    }
  }
  std::optional<ForeignProgram> foreign;
  if (!options.against.empty()) {
    // It uses the same client: a second client would reserve another share of a GPU's memory.
    foreign = base::value_or_throw(ForeignProgram::load(options.against, device::runtime().client));
    base::value_or_throw(foreign->run());
  }
  OtherSides beside(options.beside, options.keep_going);
  // Every side runs once in turn, so that each has its memory before the rounds begin.
  for (auto& [name, step] : eager) step->record();
  const auto recorded = counters().recorded;
  xla_steps(ours, 1, nullptr);
  const auto operations = counters().recorded - recorded;

  Times times;
  std::map<std::string, std::vector<double>> others, multiplied;
  int rounds = 0;
  for (; rounds < options.rounds && (rounds < 1 || !is_over(options, started)); ++rounds) {
    settle([&] { xla_steps(ours, options.steps, nullptr); });
    xla_steps(ours, options.steps, &times);
    for (auto& [name, all] : products) multiplied[name].push_back(timed_settled([&] { multiply(*all); }));
    for (auto& [name, step] : eager)
      others[name].push_back(timed_settled([&] {
                               for (int i = 0; i < options.steps; ++i) step->record();
                             }) /
                             options.steps);
    if (foreign) {
      const auto run = [&] { base::value_or_throw(foreign->run(options.steps)); };
      others["against"].push_back(timed_settled(run) / options.steps);
    }
    for (const auto& [command, seconds] : beside.run(options.steps)) others[command].push_back(seconds);
  }
  const Counters after = counters();
  const double host_seconds = measure_host(ours, rounds);

  const double step_seconds = median(times.step);
  nlohmann::json result = {
      {"model", bench.name},
      {"batch_size", options.batch_size},
      {"image_size", options.sizes.image_size},
      {"length", options.sizes.length},
      {"device", describe_device()},
      {"devices", replicas()},
      {"precision", options.bf16 ? "bf16" : "f32"},
      {"rounds", rounds},
      {"steps", options.steps},
      {"threads", torch::get_num_threads()},
      {"cores", std::thread::hardware_concurrency()},
      {"instruction_set", instruction_set()},
      {"cpu_kernels", options.cpu_kernels},
      {"xla",
       {{"trace_ms", median(times.trace) * 1e3},
        {"cut_and_launch_ms", median(times.launch) * 1e3},
        {"host_ms", host_seconds * 1e3},
        {"step_ms", step_seconds * 1e3},
        {"examples_per_s", static_cast<double>(options.batch_size * replicas()) / step_seconds},
        {"first_steps_s", first},
        {"compile_s", warm.compile_seconds - before.compile_seconds},
        {"programs_compiled", warm.compiles - before.compiles},
        {"programs_from_cache", warm.cache_hits - before.cache_hits},
        {"programs_after_warmup", after.programs - warm.programs},
        {"operations", operations},
        {"fallbacks", after.fallbacks},
        {"loss", ours.loss()}}}};
  result["xla"]["program_bytes"] = memory_of_step(ours);
  if (options.captured) result["captured"] = measure_captured(ours, rounds, options.steps);
  for (const auto& [name, values] : others) {
    std::vector<double> ratios;
    // A side that failed during the rounds has fewer values.
    for (size_t i = 0; i < values.size(); ++i) ratios.push_back(times.step[i] / values[i]);
    result[name] = {{"step_ms", median(values) * 1e3}, {"xla_to_this", median(ratios)}};
  }
  for (const auto& [command, bytes] : beside.bytes()) result[command]["program_bytes"] = bytes;
  for (const auto& [command, error] : beside.errors()) result[command]["error"] = error;
  if (foreign) {
    result["against"]["program_bytes"] = needed_bytes(foreign->executable());
    result["against"]["compile_s"] = foreign->compile_seconds();
  }
  for (const auto& [name, values] : multiplied) result["products"][name] = median(values) * 1e3;
  return result;
}

}  // namespace sluice::bench
