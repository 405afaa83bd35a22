#include "sluice/device/program.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "sluice/base/clock.h"
#include "sluice/base/file.h"
#include "sluice/base/hash.h"
#include "sluice/base/log.h"
#include "sluice/base/result.h"
#include "sluice/base/span.h"
#include "sluice/device/report/busy_clock.h"
#include "sluice/device/report/metrics.h"
#include "sluice/device/report/shortage.h"

namespace sluice::device {
namespace {

struct Entry {
  std::vector<uint64_t> signature;
  Program program;
};
struct Programs {
  std::unordered_multimap<uint64_t, std::unique_ptr<Entry>> by_hash;
  struct Boundary {
    const Program* last = nullptr;
    int count = 0;
  };
  std::map<std::string, Boundary, std::less<>> boundaries;
  int dumped = 0;
};
Programs& programs() {
  static auto* all = new Programs();
  return *all;
}

// "aten::mm: operand 1 is tensor<3x4xf32>, was tensor<5x4xf32>", for the first operation that differs.
std::string difference(const Program& before, const Trace& trace, const Plan& plan) {
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const Instance& now = *trace.nodes[plan.nodes[i]].instance;
    if (i >= before.instances.size()) return base::str("operation ", i, " (", now.row->name, ") is new");
    if (before.instances[i] == now.id) continue;
    const Instance& was = instance_by_id(before.instances[i]);
    if (was.row != now.row) return base::str("operation ", i, " is ", now.row->name, ", was ", was.row->name);
    for (size_t k = 0; k < now.operands.size() && k < was.operands.size(); ++k) {
      if (now.operands[k] == was.operands[k]) continue;
      return base::str(now.row->name, ": operand ", k, " is ", now.operands[k]->type.str(), ", was ",
                       was.operands[k]->type.str());
    }
    return base::str(now.row->name, ": a constant argument changed (a size, a slice start, an exponent)");
  }
  if (plan.nodes.size() < before.instances.size())
    return base::str(before.instances.size() - plan.nodes.size(), " operations are gone");
  return base::str("the operations are the same; what is kept of their results changed (",
                   plan.outputs.size(), " results)");
}

constexpr int kManyReads = 50;

void report_recompile(const Trace& trace, const Plan& plan, std::string_view what) {
  auto& boundary = programs().boundaries.try_emplace(std::string(what)).first->second;
  ++boundary.count;
  if (what == kHostRead && boundary.count == kManyReads && !runtime_options().eager) {
    base::warn(kManyReads,
               " programs were compiled for values that the host reads, one for each kind of value; ",
               "metrics_report() names the places; copy one tensor that holds them all (torch::stack)");
  }
  // The first two are expected: the first step creates the optimizer's state. Each host read has its own
  // program.
  if (boundary.count <= 2 || boundary.last == nullptr || what == kHostRead || runtime_options().eager) return;
  std::string text = base::str("'", what, "' needs a new program (its number ", boundary.count,
                               "): ", difference(*boundary.last, trace, plan));
  // A program that never settles would flood the log; the report keeps counting.
  constexpr int kWarned = 10;
  if (boundary.count <= kWarned)
    base::warn("recompile: ", text, boundary.count == kWarned ? "; later ones are only counted" : "");
  Metrics& metrics = Metrics::get();
  std::scoped_lock lock(metrics.mutex);
  if (metrics.recompiles.size() < 100) metrics.recompiles.push_back(std::move(text));
}

void dump(const std::string& text, std::string_view what) {
  const std::string& folder = runtime_options().dump;
  if (folder.empty()) return;
  std::string name(what);
  for (char& c : name) {
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  char number[16];
  snprintf(number, sizeof number, "%04d", programs().dumped++);
  const std::string path = base::str(folder, "/", number, "-", name, ".mlir");
  auto written = base::make_directories(folder);
  if (written) written = base::write_file_atomically(path, text);
  if (!written) base::warn("the program could not be dumped: ", written.error().what());
}

Program compile(const Trace& trace, const Plan& plan, std::string_view what) {
  Runtime& rt = runtime();
  const double start = base::monotonic_seconds(), busy = BusyClock::get().seconds();
  const base::Span span("compile");
  Lowered made = lower(trace, plan, rt.world, rt.options.donate);
  const std::string& text = made.text;
  const double lowered = base::monotonic_seconds();
  dump(text, what);
  pjrt::CompileOptions options;
  options.num_replicas = static_cast<int>(rt.device_ids.size());
  options.device_ids = rt.device_ids;
  options.name = what;
  for (uint32_t leaf : plan.leaves) options.argument_types.push_back(trace.leaves[leaf]->type->type);
  for (size_t k = 0; k < kScalarClasses; ++k) {
    if (plan.scalars[k] > 0)
      options.argument_types.push_back({kScalarTypes[k], {static_cast<int64_t>(plan.scalars[k])}});
  }
  Program program;
  program.canonical = canonical_hash(trace, plan);
  program.checks = std::move(made.checks);
  program.flops = made.flops;
  program.layers = std::move(made.layers);
  if (auto estimate = stablehlo::estimate_memory(text)) program.estimate = std::move(*estimate);
  auto executable = rt.client->compile(text, options);
  if (!executable)
    throw_error(explained(executable.error(), base::str("compiling the program for '", what, "'"), &program));
  program.executable = std::move(*executable);
  for (uint32_t node : plan.nodes) program.instances.push_back(trace.nodes[node].instance->id);
  const double done = base::monotonic_seconds();
  const bool hit = program.executable->from_cache();
  base::debug("program for '", what, "': ", plan.nodes.size(), " operations, lowered in ", lowered - start,
              " s, ", hit ? "loaded in " : "compiled in ", done - lowered, " s");
  Metrics& metrics = Metrics::get();
  std::scoped_lock lock(metrics.mutex);
  ++metrics.counters.programs;
  ++(hit ? metrics.counters.cache_hits : metrics.counters.compiles);
  metrics.counters.compile_seconds += done - start;
  metrics.counters.idle_compile_seconds += std::max(0.0, done - start - (BusyClock::get().seconds() - busy));
  metrics.lower.add(lowered - start);
  (hit ? metrics.load : metrics.compile).add(done - lowered);
  return program;
}

}  // namespace

const Program& find_program(const Trace& trace, const Plan& plan, std::string_view what) {
  Programs& all = programs();
  const uint64_t hash = base::hash_words(plan.signature.size(), plan.signature);
  auto [first, last] = all.by_hash.equal_range(hash);
  const Program* found = nullptr;
  for (; first != last && found == nullptr; ++first) {
    if (first->second->signature == plan.signature) found = &first->second->program;
  }
  if (found == nullptr) {
    report_recompile(trace, plan, what);
    auto entry = std::make_unique<Entry>(Entry{plan.signature, compile(trace, plan, what)});
    found = &entry->program;
    all.by_hash.emplace(hash, std::move(entry));
  }
  all.boundaries.try_emplace(std::string(what)).first->second.last = found;
  return *found;
}

void forget_programs() { programs() = Programs(); }

LaunchCounts launch_counts() {
  LaunchCounts counts;
  for (const auto& [hash, entry] : programs().by_hash) counts[&entry->program] = entry->program.launches;
  return counts;
}

stablehlo::Work work_since(const LaunchCounts& before) {
  stablehlo::Work work;
  const Program* largest = nullptr;
  for (const auto& [hash, entry] : programs().by_hash) {
    const Program& program = entry->program;
    const auto found = before.find(&program);
    const int64_t times = program.launches - (found == before.end() ? 0 : found->second);
    if (times == 0) continue;
    for (const auto& [layer, own] : program.layers) {
      stablehlo::LayerWork& sum = work.layers[layer];
      sum.forward += own.forward.times(static_cast<double>(times));
      sum.backward += own.backward.times(static_cast<double>(times));
    }
    if (largest == nullptr || program.estimate.peak_bytes > largest->estimate.peak_bytes) largest = &program;
  }
  if (largest == nullptr) return work;
  for (const auto& [layer, bytes] : largest->estimate.by_layer) work.layers[layer].bytes = bytes;
  work.peak_bytes = largest->estimate.peak_bytes;
  work.argument_bytes = largest->estimate.argument_bytes;
  return work;
}

}  // namespace sluice::device
