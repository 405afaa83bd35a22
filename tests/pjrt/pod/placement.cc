#include "sluice/pjrt/proto_reader.h"
#include "tests/pjrt/pod/facts.h"

namespace emulated_pod {
namespace {

using sluice::pjrt::ProtoReader;

constexpr const char kBadOptions[] = "PJRT_Client_Compile: failed to deserialize CompileOptionsProto";

std::vector<int> read_packed(std::string_view bytes, bool& broken) {
  std::vector<int> numbers;
  ProtoReader packed(bytes);
  while (!packed.at_end()) numbers.push_back(static_cast<int>(packed.varint()));
  broken = broken || packed.broken();
  return numbers;
}

// What the options hold, as it stands there.
struct Asked {
  int replicas = 0, partitions = 0;
  bool assigned = false;
  std::vector<std::vector<int>> of_partition;  // [partition][replica]
};

// DeviceAssignmentProto: computation_devices 3 { replica_device_ids 1 }.
bool read_assignment(std::string_view bytes, Asked& asked) {
  ProtoReader assignment(bytes);
  bool broken = false;
  while (assignment.next()) {
    if (assignment.field() != 3) continue;
    std::vector<int> ids;
    ProtoReader computation(assignment.bytes());
    while (computation.next()) {
      if (computation.field() != 1) continue;
      if (computation.is_bytes()) {
        for (const int id : read_packed(computation.bytes(), broken)) ids.push_back(id);
      } else {
        ids.push_back(static_cast<int>(computation.number()));
      }
    }
    broken = broken || computation.broken();
    asked.of_partition.push_back(std::move(ids));
  }
  asked.assigned = true;
  return !broken && !assignment.broken();
}

// CompileOptionsProto: executable_build_options 3 { num_replicas 4, num_partitions 5, device_assignment 9 }.
Result<Asked> read_options(std::string_view bytes) {
  Asked asked;
  ProtoReader options(bytes);
  while (options.next()) {
    if (options.field() != 3) continue;
    ProtoReader build(options.bytes());
    while (build.next()) {
      if (build.field() == 4) asked.replicas = static_cast<int>(build.number());
      if (build.field() == 5) asked.partitions = static_cast<int>(build.number());
      if (build.field() == 9 && !read_assignment(build.bytes(), asked))
        return fail(Code::kInvalidArgument, kBadOptions);
    }
    if (build.broken()) return fail(Code::kInvalidArgument, kBadOptions);
  }
  if (options.broken()) return fail(Code::kInvalidArgument, kBadOptions);
  return asked;
}

Status check_assignment(const Asked& asked) {
  if (asked.of_partition.size() != static_cast<size_t>(asked.partitions)) {
    return fail(Code::kInvalidArgument, "the device assignment is for ", asked.of_partition.size(),
                " partitions, the build options are for ", asked.partitions);
  }
  for (const std::vector<int>& ids : asked.of_partition) {
    if (ids.size() != static_cast<size_t>(asked.replicas)) {
      return fail(Code::kInvalidArgument, "the device assignment has ", ids.size(), " device ids for ",
                  asked.replicas, " replicas");
    }
  }
  return {};
}

Status check_devices(const Placement& placement, int devices) {
  for (size_t i = 0; i < placement.devices.size(); ++i) {
    const int id = placement.devices[i];
    if (id < 0 || id >= devices) {
      return fail(Code::kInvalidArgument, "No matching device found for device_id ", id,
                  ": the pod has devices 0 to ", devices - 1);
    }
    for (size_t j = 0; j < i; ++j) {
      if (placement.devices[j] == id) {
        return fail(Code::kInvalidArgument, "the device assignment gives device ", id, " to replicas ",
                    j / static_cast<size_t>(placement.partitions), " and ",
                    i / static_cast<size_t>(placement.partitions));
      }
    }
  }
  return {};
}

}  // namespace

Result<Placement> read_placement(std::string_view compile_options, int devices) {
  SLUICE_TRY(const Asked asked, read_options(compile_options));
  const int64_t total = int64_t{asked.replicas} * asked.partitions;
  if (asked.replicas < 1 || asked.partitions < 1) {
    // XLA ends the process that asks for this.
    return fail(Code::kInvalidArgument,
                "Not enough cores available for device assignment. Requested total cores: ", total,
                " (replica_count=", asked.replicas, ", computation_count=", asked.partitions,
                "). Available cores: ", devices);
  }
  if (total > devices) {
    return fail(Code::kInvalidArgument, "Invalid (replica_count, computation_count) -> (", asked.replicas,
                ", ", asked.partitions, "): the pod has ", devices, " devices");
  }
  Placement placement{asked.replicas, asked.partitions, {}};
  if (asked.assigned) SLUICE_OK(check_assignment(asked));
  for (int r = 0; r < asked.replicas; ++r) {
    for (int p = 0; p < asked.partitions; ++p) {
      placement.devices.push_back(asked.assigned ? asked.of_partition[p][r] : r * asked.partitions + p);
    }
  }
  SLUICE_OK(check_devices(placement, devices));
  return placement;
}

}  // namespace emulated_pod
