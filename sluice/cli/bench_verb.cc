// sluice bench step
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "sluice/base/clock.h"
#include "sluice/base/environment.h"
#include "sluice/base/strings.h"
#include "sluice/cli/bench_model.h"
#include "sluice/cli/foreign_program.h"
#include "sluice/cli/other_side.h"
#include "sluice/cli/train_flags.h"
#include "sluice/cli/verbs.h"
#include "sluice/device/capture/capture.h"
#include "sluice/device/device.h"
#include "sluice/device/program.h"
#include "sluice/device/runtime.h"

namespace sluice::cli {
namespace {

struct StepFlags {
  CLI::App* app = nullptr;  // the verb that has these flags
  std::string model = "resnet50";
  int64_t batch_size = 128;
  BenchSizes sizes;
  int rounds = 20;
  int steps = 1;  // in each round
  int warmup = 3;
  int threads = 0;
  int devices = 0;
  bool eager = true;
  bool captured = false;
  bool keep_going = false;
  double seconds = 0;
  bool cpu_kernels = true;
  train::Precision precision = train::Precision::kF32;
  std::string against;
  std::vector<std::string> beside;
  std::string plugin;
};

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
void xla_steps(BenchStep& step, int steps, Times* times) {
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
double measure_host(BenchStep& step, int rounds) {
  Times times;
  for (int round = 0; round < rounds; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    xla_steps(step, 1, &times);
  }
  return median(times.host);
}

// Measures the step again, captured (sluice::capture), so that the host only replays it.
nlohmann::json measure_captured(BenchStep& step, int rounds, int steps) {
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
nlohmann::json memory_of_step(BenchStep& step) {
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

void multiply(BenchProducts& products) {
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

bool is_over(const StepFlags& flags, double started) {
  return flags.seconds > 0 && base::monotonic_seconds() - started > flags.seconds;
}

// Runs every side in turn in each round, so that a slow minute of the machine affects all of them.
nlohmann::json measure(const StepFlags& flags) {
  const double started = base::monotonic_seconds();
  const BenchCase bench = bench_case(flags.model, flags.sizes);
  DeviceOptions device;
  device.plugin = flags.plugin;
  device.devices = flags.devices;
  device.cpu_kernels = flags.cpu_kernels;
  init(device);
  if (flags.threads > 0) torch::set_num_threads(flags.threads);

  // The programs of the products are compiled here, so that the counters of the step do not include them.
  std::map<std::string, std::unique_ptr<BenchProducts>> products;
  const auto add_products = [&](const std::string& name, torch::Device device) {
    products[name] = std::make_unique<BenchProducts>(bench, flags.batch_size, device);
    multiply(*products[name]);
  };
  if (bench.only_products) add_products("xla_ms", torch::Device(torch::kXLA, 0));
  if (bench.only_products && flags.eager) add_products("eager_ms", torch::kCPU);
  const bool bf16 = flags.precision == train::Precision::kBf16;
  BenchStep ours(bench, flags.batch_size, torch::Device(torch::kXLA, 0), torch::MemoryFormat::Contiguous,
                 bf16);
  wait();
  const Counters before = counters();
  const double first = timed([&] {
    for (int i = 0; i < flags.warmup; ++i) xla_steps(ours, 1, nullptr);
  });
  const Counters warm = counters();

  std::map<std::string, std::unique_ptr<BenchStep>> eager;
  if (flags.eager) {
    eager["eager contiguous"] = std::make_unique<BenchStep>(bench, flags.batch_size, torch::kCPU,
                                                            torch::MemoryFormat::Contiguous, bf16);
    if (bench.images) {
      eager["eager channels_last"] = std::make_unique<BenchStep>(bench, flags.batch_size, torch::kCPU,
                                                                 torch::MemoryFormat::ChannelsLast, bf16);
    }
  }
  std::optional<ForeignProgram> foreign;
  if (!flags.against.empty()) {
    // It uses the same client: a second client would reserve another share of a GPU's memory.
    foreign = base::value_or_throw(ForeignProgram::load(flags.against, device::runtime().client));
    base::value_or_throw(foreign->run());
  }
  OtherSides beside(flags.beside, flags.keep_going);
  // Every side runs once in turn, so that each has its memory before the rounds begin.
  for (auto& [name, step] : eager) step->record();
  const auto recorded = counters().recorded;
  xla_steps(ours, 1, nullptr);
  const auto operations = counters().recorded - recorded;

  Times times;
  std::map<std::string, std::vector<double>> others, multiplied;
  int rounds = 0;
  for (; rounds < flags.rounds && (rounds < 1 || !is_over(flags, started)); ++rounds) {
    settle([&] { xla_steps(ours, flags.steps, nullptr); });
    xla_steps(ours, flags.steps, &times);
    for (auto& [name, all] : products) multiplied[name].push_back(timed_settled([&] { multiply(*all); }));
    for (auto& [name, step] : eager)
      others[name].push_back(timed_settled([&] {
                               for (int i = 0; i < flags.steps; ++i) step->record();
                             }) /
                             flags.steps);
    if (foreign) {
      const auto run = [&] { base::value_or_throw(foreign->run(flags.steps)); };
      others["against"].push_back(timed_settled(run) / flags.steps);
    }
    for (const auto& [command, seconds] : beside.run(flags.steps)) others[command].push_back(seconds);
  }
  const Counters after = counters();
  const double host_seconds = measure_host(ours, rounds);

  const double step_seconds = median(times.step);
  nlohmann::json result = {
      {"model", bench.name},
      {"batch_size", flags.batch_size},
      {"image_size", flags.sizes.image_size},
      {"length", flags.sizes.length},
      {"device", describe_device()},
      {"devices", replicas()},
      {"precision", train::name_of(flags.precision)},
      {"rounds", rounds},
      {"steps", flags.steps},
      {"threads", torch::get_num_threads()},
      {"cores", std::thread::hardware_concurrency()},
      {"instruction_set", instruction_set()},
      {"cpu_kernels", flags.cpu_kernels},
      {"xla",
       {{"trace_ms", median(times.trace) * 1e3},
        {"cut_and_launch_ms", median(times.launch) * 1e3},
        {"host_ms", host_seconds * 1e3},
        {"step_ms", step_seconds * 1e3},
        {"examples_per_s", static_cast<double>(flags.batch_size * replicas()) / step_seconds},
        {"first_steps_s", first},
        {"compile_s", warm.compile_seconds - before.compile_seconds},
        {"programs_compiled", warm.compiles - before.compiles},
        {"programs_from_cache", warm.cache_hits - before.cache_hits},
        {"programs_after_warmup", after.programs - warm.programs},
        {"operations", operations},
        {"fallbacks", after.fallbacks},
        {"loss", ours.loss()}}}};
  result["xla"]["program_bytes"] = memory_of_step(ours);
  if (flags.captured) result["captured"] = measure_captured(ours, rounds, flags.steps);
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

void add_step_flags(CLI::App& app, StepFlags& flags) {
  flags.app = &app;
  app.add_option("--model", flags.model, base::str("One of ", base::join(bench_case_names(), ", ")));
  app.add_option("--batch-size", flags.batch_size, "Samples a step, per replica")->check(kAboveZero);
  app.add_option("--image-size", flags.sizes.image_size, "Side of the images, in pixels")->check(kAboveZero);
  app.add_option("--length", flags.sizes.length, "Tokens in a row, of language models")->check(kAboveZero);
  app.add_option("--rounds", flags.rounds, "Each round times every side once; medians are reported")
      ->check(kAboveZero);
  app.add_option("--steps", flags.steps,
                 "Steps that are timed together, with one wait at their end, as a training loop does it")
      ->check(kAboveZero);
  app.add_option("--warmup", flags.warmup, "Steps before the first round")->check(kAboveZero);
  app.add_option("--devices", flags.devices,
                 "Replicas, each with a batch of its own; gradients are averaged. 0: all devices of a TPU or "
                 "GPU, 1 of a CPU")
      ->check(kZeroOrMore);
  app.add_option("--threads", flags.threads, "LibTorch's threads; 0: its default");
  app.add_flag("--eager,!--no-eager", flags.eager,
               "Also time LibTorch eager on the CPU, in each memory format");
  app.add_flag("--captured", flags.captured,
               "Also time the step as a captured one (sluice::capture), after the rounds");
  app.add_option("--against", flags.against,
                 "Also time this StableHLO file with the same plugin (bench/jax_step.py writes such files)");
  app.add_option("--beside", flags.beside,
                 "Also time this command, which runs the same step (bench/torch_step.py), in turns with "
                 "ours; repeatable; sluice/cli/other_side.h has the protocol");
  app.add_flag("--keep-going", flags.keep_going,
               "Leave out a command of --beside that fails; its error is in the JSON");
  app.add_option(
         "--seconds", flags.seconds,
         "Begin no further round when the whole bench has taken this many seconds (0: run all rounds)")
      ->check(kZeroOrMore);
  add_flags(app, {{"Options", "--precision", choice("--precision", flags.precision), "",
                   "Compute the forward pass in this type (autocast)"},
                  {"Options", "--cpu-kernels", OnOffValue{&flags.cpu_kernels}, "",
                   "off: let XLA's CPU plugin compile every operation itself, without oneDNN"}});
  app.add_option("--plugin", flags.plugin, kPluginHelp);
}

}  // namespace

Verb bench_verb() {
  auto flags = std::make_shared<StepFlags>();
  Verb step = {.name = "step",
               .help = "Time one training step on xla:0 beside LibTorch eager, in one run; prints JSON",
               .add_flags = [flags](CLI::App& app) { add_step_flags(app, *flags); },
               .run =
                   [flags] {
                     if (flags->app->count("--cpu-kernels") == 0)
                       flags->cpu_kernels = base::environment_flag("SLUICE_CPU_KERNELS", flags->cpu_kernels);
                     std::printf("%s\n", measure(*flags).dump(2).c_str());
                     return 0;
                   }};
  return {.name = "bench", .help = "Measure this machine", .verbs = {std::move(step)}};
}

}  // namespace sluice::cli
