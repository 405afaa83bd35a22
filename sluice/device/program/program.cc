#include "sluice/device/program/program.h"

#include <algorithm>
#include <iterator>
#include <list>
#include <unordered_map>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/formats/hash.h"
#include "sluice/base/log.h"
#include "sluice/base/result.h"
#include "sluice/base/span.h"
#include "sluice/device/report/busy_clock.h"
#include "sluice/device/report/metrics.h"
#include "sluice/device/report/recompiles.h"
#include "sluice/device/report/shortage.h"
#include "sluice/device/report/slow_compile.h"
#include "sluice/device/sharding/layouts.h"

namespace sluice::device {
namespace {

struct Entry {
  uint64_t hash;
  std::vector<uint64_t> signature;
  ProgramPtr program;
};
using Entries = std::list<Entry>;
struct Programs {
  Entries entries;  // the most recently used first
  std::unordered_multimap<uint64_t, Entries::iterator> by_hash;
  std::vector<std::weak_ptr<const Program>> dropped;  // a launch or a captured function may still hold one
  size_t operations = 0;                              // the operations of all entries, counted as for
                                                      // kept_operations
  size_t instances_after_freeing = 0;
  int keepers = 0;  // the KeptInstances that are alive
  int dumped = 0;
};
Programs& programs() {
  static auto* all = new Programs();
  return *all;
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

bool is_exact(const Trace& trace, const Plan& plan) {
  return std::any_of(plan.nodes.begin(), plan.nodes.end(),
                     [&](uint32_t node) { return trace.nodes[node].instance->exact; });
}

// Returns the types of a program's results on one device, with what the checks of values found.
std::vector<stablehlo::Type> block_types_of_outputs(const Trace& trace, const Plan& plan, const Mesh& mesh,
                                                    bool checks) {
  std::vector<stablehlo::Type> types;
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const Ref output = plan.outputs[i];
    const TypeRef type = trace.nodes[output.node].instance->results[output.output];
    types.push_back(block_type(mesh, type->type, plan.layouts[i]));
  }
  if (checks) types.push_back({stablehlo::DType::kS64, {2}});
  return types;
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
  const Mesh* const mesh = rt.world.mesh.get();
  (mesh != nullptr ? options.num_partitions : options.num_replicas) = static_cast<int>(rt.device_ids.size());
  options.device_ids = rt.device_ids;
  options.name = what;
  if (is_exact(trace, plan)) options.flags["xla_allow_excess_precision"] = "False";
  for (uint32_t leaf : plan.leaves) {
    const Data& data = *trace.leaves[leaf];
    options.argument_types.push_back(mesh == nullptr ? data.type->type
                                                     : block_type(*mesh, data.type->type, data.layout));
  }
  if (mesh != nullptr)
    options.output_types = block_types_of_outputs(trace, plan, *mesh, !made.checks.empty());
  for (size_t k = 0; k < kScalarClasses; ++k) {
    if (plan.scalars[k] > 0)
      options.argument_types.push_back({kScalarTypes[k], {static_cast<int64_t>(plan.scalars[k])}});
  }
  Program program;
  program.canonical = canonical_hash(trace, plan);
  program.checks = std::move(made.checks);
  program.flops = made.flops;
  program.layers = std::move(made.layers);
  if (mesh != nullptr)  // the text says nothing of one device's memory
    program.flops = program.flops.times(1.0 / static_cast<double>(mesh->devices()));
  else if (auto estimate = stablehlo::estimate_memory(text))
    program.estimate = std::move(*estimate);
  auto executable = [&] {
    const SlowCompile watched{std::string(what), plan.nodes.size()};
    return rt.client->compile(text, options);
  }();
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

namespace {

size_t operations_of(const Program& program) { return program.instances.size() + kOperationsOfAProgram; }

// Drops the least recently used programs, but never the newest.
void drop_oldest(Programs& all) {
  const auto limit = static_cast<size_t>(runtime_options().kept_operations);
  while (all.operations > limit && all.entries.size() > 1) {
    const Entries::iterator oldest = std::prev(all.entries.end());
    auto [first, last] = all.by_hash.equal_range(oldest->hash);
    all.by_hash.erase(std::find_if(first, last, [&](const auto& pair) { return pair.second == oldest; }));
    all.operations -= operations_of(*oldest->program);
    all.dropped.push_back(oldest->program);
    all.entries.erase(oldest);
  }
  std::erase_if(all.dropped, [](const auto& program) { return program.expired(); });
}

Entries::iterator find_entry(Programs& all, uint64_t hash, const std::vector<uint64_t>& signature) {
  auto [first, last] = all.by_hash.equal_range(hash);
  for (; first != last; ++first)
    if (first->second->signature == signature) return first->second;
  return all.entries.end();
}

}  // namespace

ProgramPtr find_program(const Trace& trace, const Plan& plan, std::string_view what) {
  Programs& all = programs();
  const uint64_t hash = base::hash_words(plan.signature.size(), plan.signature);
  Entries::iterator found = find_entry(all, hash, plan.signature);
  if (found == all.entries.end()) {
    ProgramSite& site = site_of(what);
    report_new_program(site, trace, plan, what);
    const double start = base::monotonic_seconds();
    const auto program = std::make_shared<const Program>(compile(trace, plan, what));
    site.seconds += base::monotonic_seconds() - start;
    site.last = program;
    all.operations += operations_of(*program);
    all.entries.push_front({hash, plan.signature, program});
    all.by_hash.emplace(hash, all.entries.begin());
    drop_oldest(all);
  } else {
    all.entries.splice(all.entries.begin(), all.entries, found);
  }
  const ProgramPtr& program = all.entries.front().program;
  if (!is_host_read(what)) site_of(what).last = program;
  return program;
}

size_t programs_kept() { return programs().entries.size(); }

KeptInstances::KeptInstances() { ++programs().keepers; }
KeptInstances::~KeptInstances() { --programs().keepers; }

void free_instances(Trace& trace) {
  Programs& all = programs();
  if (all.keepers > 0) return;
  const auto limit = static_cast<size_t>(runtime_options().kept_operations);
  if (instances_alive() <= std::max(limit / 2, 2 * all.instances_after_freeing)) return;
  std::vector<uint32_t> used;
  const auto add = [&](const Program& program) {
    used.insert(used.end(), program.instances.begin(), program.instances.end());
  };
  for (const Entry& entry : all.entries) add(*entry.program);
  for (const auto& dropped : all.dropped)
    if (const ProgramPtr program = dropped.lock()) add(*program);
  trace.expect_nothing();
  keep_instances(used);
  all.instances_after_freeing = instances_alive();
}

void forget_programs() {
  const auto release = [](const Program& program) {
    program.executable.reset();
    program.scalars = {};
  };
  for (const Entry& entry : programs().entries) release(*entry.program);
  for (const auto& dropped : programs().dropped)
    if (const ProgramPtr program = dropped.lock()) release(*program);
  forget_sites();
  programs() = Programs();
}

LaunchCounts launch_counts() {
  LaunchCounts counts;
  for (const Entry& entry : programs().entries) counts[entry.program] = entry.program->launches;
  return counts;
}

stablehlo::Work work_since(const LaunchCounts& before) {
  stablehlo::Work work;
  const Program* largest = nullptr;
  for (const Entry& entry : programs().entries) {
    const Program& program = *entry.program;
    const auto found = before.find(entry.program);
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
