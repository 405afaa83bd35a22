// What a program over a mesh keeps and exchanges on each device (docs/sharding.md), from the layouts in its
// text and the compiler's figures.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/estimate/tpu_slice.h"
#include "sluice/mesh/mesh.h"
#include "sluice/pjrt/program/topology.h"
#include "sluice/stablehlo/partitions.h"

namespace sluice::estimate {

// Bytes on each device. Arguments and results count with their blocks, without the padding of the
// device's own layouts; temporary memory and code are the compiler's.
struct MemoryByKind {
  int64_t weights = 0;    // named arguments: weights, and buffers such as running means
  int64_t optimizer = 0;  // the optimizer's state
  int64_t inputs = 0;     // what the host sends: batches, run-time numbers
  int64_t results = 0;    // results with memory of their own: gradients that outlive the step, losses
  int64_t temporary = 0;  // activations, gradients that do not outlive the step, gathered weights
  int64_t code = 0;
};

// The exchanges of one kind between the same devices, in one step.
struct Exchange {
  std::string axes;    // axes_of()
  std::string kind;    // "all-gather"
  int64_t count = 0;   // instructions
  int64_t bytes = 0;   // of their results on one device
  double seconds = 0;  // the least time: what must cross a chip's links, at their published speed
  // Above 0: between slices, over the network of the data center, these bytes for all devices of a host. No
  // bound counts them: the speed of the network is not known here.
  int64_t host_bytes = 0;
};

// An argument that every device has all of.
struct WholeValue {
  std::string name, type;
  int64_t bytes = 0;
};
// Smaller ones are not listed.
constexpr int64_t kListedWholeBytes = 1 << 20;

struct MeshReport {
  Mesh mesh;
  MemoryByKind memory;
  std::vector<Exchange> exchanges;  // by axes, then by kind
  std::vector<WholeValue> whole;    // the largest first
  double exchange_seconds() const;
  // Returns the bytes that the devices of a host receive from other slices in one step.
  int64_t host_bytes() const;
};

// `names` has the names of the arguments (device::Ahead::arguments): "" or none for those without one. Where
// no argument has a name, arguments that results take over count as weights. kInternal if a result is not the
// block that the program's layouts promise.
base::Result<MeshReport> mesh_report(const TpuSlice& slice, const stablehlo::LaidOutProgram& laid_out,
                                     const std::vector<std::string>& names,
                                     const pjrt::AheadProgram& program);

// Returns the axes along which the devices of a group differ: "fsdp", "data+fsdp"; "fsdp (a part)" if they
// are not all devices along them; "other devices" for a group of one device or none.
std::string axes_of(const Mesh& mesh, const std::vector<int64_t>& group);

// Prints what follows the table of a slice. `compute` is the bound of a step without exchanges.
void print_mesh(const std::string& slice, const MeshReport& report, double compute_seconds);
nlohmann::json mesh_json(const MeshReport& report);

}  // namespace sluice::estimate
