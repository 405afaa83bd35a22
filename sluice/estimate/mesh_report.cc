#include "sluice/estimate/mesh_report.h"

#include <algorithm>
#include <cstdio>

#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/strings.h"
#include "sluice/base/text/table.h"
#include "sluice/estimate/slice_figures.h"

namespace sluice::estimate {
namespace {

using stablehlo::LaidOutProgram;
using stablehlo::LaidOutValue;

std::string name_of(const std::vector<std::string>& names, size_t argument) {
  return argument < names.size() ? names[argument] : std::string();
}

MemoryByKind memory_by_kind(const LaidOutProgram& program, const std::vector<std::string>& names,
                            const pjrt::ProgramMemory& compiled) {
  MemoryByKind memory;
  const bool named = std::any_of(names.begin(), names.end(), [](const auto& name) { return !name.empty(); });
  int64_t taken = 0;
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    const LaidOutValue& value = program.arguments[i];
    const std::string name = name_of(names, i);
    const int64_t bytes = value.block_bytes(program.mesh);
    const bool state = base::starts_with(name, "optimizer.") || (named && name.empty() && value.taken);
    const bool weight = !state && (named ? !name.empty() : value.taken);
    (state ? memory.optimizer : weight ? memory.weights : memory.inputs) += bytes;
    if (value.taken) taken += bytes;
  }
  for (const LaidOutValue& value : program.results) memory.results += value.block_bytes(program.mesh);
  memory.results = std::max<int64_t>(0, memory.results - taken);
  memory.temporary = compiled.temporary;
  memory.code = compiled.code;
  return memory;
}

std::vector<WholeValue> whole_values(const LaidOutProgram& program, const std::vector<std::string>& names) {
  std::vector<WholeValue> whole;
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    const LaidOutValue& value = program.arguments[i];
    if (value.layout.is_replicated(program.mesh) && value.bytes() > kListedWholeBytes)
      whole.push_back({name_of(names, i), value.type(), value.bytes()});
  }
  std::stable_sort(whole.begin(), whole.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return whole;
}

// Returns the bytes that must cross the links of a chip for a collective, for each group that the chip has
// devices in. The devices of one chip send and receive what they share once.
double crossing_bytes(const pjrt::Collective& collective, double group, double on_chip) {
  const double bytes = static_cast<double>(collective.bytes), remote = (group - on_chip) / group;
  if (collective.kind == "all-reduce") return 2 * bytes * remote;  // as a reduce-scatter and an all-gather
  if (collective.kind == "reduce-scatter") return bytes * group * remote;
  if (collective.kind == "all-to-all" || collective.kind == "ragged-all-to-all")
    return bytes * on_chip * remote;
  if (collective.kind == "collective-permute") return remote > 0 ? bytes : 0;
  return bytes * remote;
}

double seconds_of(const TpuSlice& slice, const pjrt::Collective& collective) {
  if (collective.group.empty()) return 0;
  const TpuGeneration& chip = *slice.generation;
  const int64_t first = collective.group.front() / chip.devices_per_chip;
  const auto on_chip = std::count_if(collective.group.begin(), collective.group.end(),
                                     [&](int64_t device) { return device / chip.devices_per_chip == first; });
  const auto group = static_cast<double>(collective.group.size());
  const double groups_of_chip = chip.devices_per_chip / static_cast<double>(on_chip);
  return crossing_bytes(collective, group, static_cast<double>(on_chip)) * groups_of_chip /
         (chip.link_gb_per_second * 1e9);
}

// Returns the axes along which slices differ.
std::string axes_between(const TpuSlice& slice, const Mesh& mesh) {
  std::vector<int64_t> firsts;  // the first device of each slice
  for (int i = 0; i < slice.slices; ++i) firsts.push_back(int64_t{i} * (slice.devices / slice.slices));
  return axes_of(mesh, firsts);
}

std::vector<Exchange> exchanges_of(const TpuSlice& slice, const Mesh& mesh,
                                   const std::vector<pjrt::Collective>& collectives) {
  std::vector<Exchange> exchanges;
  for (const pjrt::Collective& one : collectives)
    exchanges.push_back({one.between_slices ? axes_between(slice, mesh) : axes_of(mesh, one.group), one.kind,
                         one.count, one.bytes, seconds_of(slice, one),
                         one.between_slices ? one.bytes * (slice.devices / slice.hosts) : 0});
  std::stable_sort(exchanges.begin(), exchanges.end(), [](const Exchange& a, const Exchange& b) {
    return a.axes != b.axes ? a.axes < b.axes : a.kind < b.kind;
  });
  return exchanges;
}

}  // namespace

double MeshReport::exchange_seconds() const {
  double all = 0;
  for (const Exchange& exchange : exchanges) all += exchange.seconds;
  return all;
}

int64_t MeshReport::host_bytes() const {
  int64_t all = 0;
  for (const Exchange& exchange : exchanges) all += exchange.host_bytes;
  return all;
}

std::string axes_of(const Mesh& mesh, const std::vector<int64_t>& group) {
  std::vector<std::string> names;
  int64_t devices = 1;
  for (const MeshAxis& axis : mesh.axes()) {
    const auto differs = [&](int64_t device) {
      return mesh.place(device, axis.name) != mesh.place(group.front(), axis.name);
    };
    if (!std::any_of(group.begin(), group.end(), differs)) continue;
    names.push_back(axis.name);
    devices *= axis.size;
  }
  const bool all = devices == static_cast<int64_t>(group.size());
  return names.empty() ? "other devices" : base::join(names, "+") + (all ? "" : " (a part)");
}

base::Result<MeshReport> mesh_report(const TpuSlice& slice, const LaidOutProgram& laid_out,
                                     const std::vector<std::string>& names,
                                     const pjrt::AheadProgram& program) {
  for (size_t i = 0; i < laid_out.results.size() && i < program.output_types.size(); ++i) {
    const std::string expected = laid_out.results[i].block_type(laid_out.mesh);
    if (program.output_types[i] != expected)
      return base::fail(Code::kInternal, "result ", i, " of the program over ", laid_out.mesh.str(), " is a ",
                        program.output_types[i], " on each device of ", slice.name, ": expected ", expected);
  }
  return MeshReport{laid_out.mesh, memory_by_kind(laid_out, names, program.memory),
                    exchanges_of(slice, laid_out.mesh, program.collectives), whole_values(laid_out, names)};
}

namespace {

std::string kept(int64_t bytes) { return base::memory_text(static_cast<uint64_t>(bytes)); }

void print_exchanges(const MeshReport& report) {
  std::vector<base::TableRow> rows{{"", "exchanged along", "by", "times", "bytes a device", "bound"}};
  for (const Exchange& one : report.exchanges)
    if (one.host_bytes == 0)
      rows.push_back({"", one.axes, one.kind, std::to_string(one.count),
                      base::size_text(static_cast<uint64_t>(one.bytes)), in_time(one.seconds)});
  if (rows.size() == 1) rows.push_back({"", "none"});
  base::print_table(rows, "l");
}

void print_exchanges_between_slices(const MeshReport& report) {
  if (report.host_bytes() == 0) return;
  std::vector<base::TableRow> rows{
      {"", "exchanged between slices along", "by", "times", "bytes a device", "bytes a host"}};
  for (const Exchange& one : report.exchanges)
    if (one.host_bytes > 0)
      rows.push_back({"", one.axes, one.kind, std::to_string(one.count),
                      base::size_text(static_cast<uint64_t>(one.bytes)),
                      base::size_text(static_cast<uint64_t>(one.host_bytes))});
  base::print_table(rows, "l");
  std::printf("  They cross the network of the data center, whose time no bound counts.\n");
}

}  // namespace

void print_mesh(const std::string& slice, const MeshReport& report, double compute_seconds) {
  const MemoryByKind& memory = report.memory;
  std::printf("\n%s over %s, memory a device (blocks of the layouts; the last two compiled):\n",
              slice.c_str(), report.mesh.str().c_str());
  base::print_table({{"", "weights", kept(memory.weights)},
                     {"", "optimizer's state", kept(memory.optimizer)},
                     {"", "batch and numbers", kept(memory.inputs)},
                     {"", "gradients and other results", kept(memory.results)},
                     {"", "activations and other temporary values", kept(memory.temporary)},
                     {"", "code", kept(memory.code)}},
                    "l");
  print_exchanges(report);
  print_exchanges_between_slices(report);
  std::printf("  A step takes at least %s for exchanges on the chip's links, and %s without them.\n",
              in_time(report.exchange_seconds()).c_str(), in_time(compute_seconds).c_str());
  std::vector<base::TableRow> rows;
  for (const WholeValue& whole : report.whole)
    rows.push_back({"", kept(whole.bytes), whole.type, whole.name.empty() ? "without a name" : whole.name});
  if (rows.empty()) return;
  std::printf("  Whole on every device, above 1 MiB:\n");
  base::print_table(rows, "l");
}

nlohmann::json mesh_json(const MeshReport& report) {
  using Json = nlohmann::json;
  Json exchanges = Json::array(), whole = Json::array();
  for (const Exchange& one : report.exchanges)
    exchanges.push_back({{"axes", one.axes},
                         {"kind", one.kind},
                         {"count", one.count},
                         {"bytes", one.bytes},
                         {"bound_seconds", one.seconds},
                         {"host_bytes_between_slices", one.host_bytes}});
  for (const WholeValue& one : report.whole)
    whole.push_back({{"name", one.name}, {"type", one.type}, {"bytes", one.bytes}});
  const MemoryByKind& memory = report.memory;
  return {{"mesh", report.mesh.str()},
          {"memory",
           {{"weights", memory.weights},
            {"optimizer", memory.optimizer},
            {"inputs", memory.inputs},
            {"results", memory.results},
            {"temporary", memory.temporary},
            {"code", memory.code}}},
          {"exchanges", std::move(exchanges)},
          {"exchange_seconds", report.exchange_seconds()},
          {"host_bytes_between_slices", report.host_bytes()},
          {"whole", std::move(whole)}};
}

}  // namespace sluice::estimate
