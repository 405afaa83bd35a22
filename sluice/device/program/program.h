// Programs: lowered, compiled and kept by the signature of their cut.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sluice/device/program/lower.h"
#include "sluice/stablehlo/live_ranges.h"

namespace sluice::device {

// Run-time numbers of one type on the replicas. Most programs take the same numbers at every launch.
struct SentScalars {
  std::string bytes;                                   // the bytes of the numbers
  std::shared_ptr<std::vector<pjrt::Buffer>> buffers;  // [replica]
};

struct Program {
  mutable std::shared_ptr<pjrt::Executable> executable;  // null after forget_programs()
  std::vector<uint32_t> instances;     // the nodes' instances, for the report of what changed if the next one
                                       // differs
  uint64_t canonical = 0;              // the same in every process
  std::vector<ValueCheck> checks;      // if there are any, its last result is what they found
  stablehlo::MemoryEstimate estimate;  // estimated from the text, for errors about memory
  stablehlo::Flops flops;              // the FLOPs of one launch on one replica
  stablehlo::LayerWorks layers;        // the layers' work in that launch, without bytes
  mutable int64_t launches = 0;        // the number of launches so far
  mutable std::array<SentScalars, kScalarClasses> scalars;  // the numbers of the latest launch
};

using ProgramPtr = std::shared_ptr<const Program>;

// Finds the plan's program, or lowers and compiles it. Reports what changed if the same boundary got another
// program. Programs are kept up to DeviceOptions::kept_operations recorded operations in all; each program
// counts kOperationsOfAProgram more, for its cost that is independent of its size. The least recently used
// programs are dropped first.
ProgramPtr find_program(const Trace& trace, const Plan& plan, std::string_view what);
constexpr size_t kOperationsOfAProgram = 100;
// Returns the number of programs that are kept.
size_t programs_kept();
// Frees the instances that no program needs, once there are many of them. The trace must be empty.
void free_instances(Trace& trace);
// While such an object lives, free_instances() frees none: the trace's are held elsewhere.
class KeptInstances {
 public:
  KeptInstances();
  ~KeptInstances();
  KeptInstances(const KeptInstances&) = delete;
  KeptInstances& operator=(const KeptInstances&) = delete;
};
// Drops all programs and everything they hold on the device, even if a captured function still has one.
void forget_programs();

// The number of launches of each program. The caller holds the lock, here and below.
using LaunchCounts = std::unordered_map<ProgramPtr, int64_t>;
LaunchCounts launch_counts();
// Returns the work since `before`: the FLOPs of all launches, the bytes of the program that needs most.
stablehlo::Work work_since(const LaunchCounts& before);

}  // namespace sluice::device
