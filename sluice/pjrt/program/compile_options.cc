#include "sluice/pjrt/program/compile_options.h"

#include <cstdint>

#include "sluice/base/formats/proto_writer.h"

namespace sluice::pjrt {
namespace {

// Writes a DeviceAssignmentProto: replica_count, computation_count, and for each computation (partition)
// computation_devices {replica_device_ids}. One of the counts is 1.
std::string device_assignment(std::span<const int> device_ids, bool partitions) {
  const size_t lists = partitions ? device_ids.size() : 1;
  base::ProtoWriter assignment;
  assignment.number(1, static_cast<int64_t>(device_ids.size() / lists));
  assignment.number(2, static_cast<int64_t>(lists));
  for (size_t i = 0; i < lists; ++i) {
    base::ProtoWriter ids;
    for (int id : partitions ? device_ids.subspan(i, 1) : device_ids)
      ids.varint(static_cast<uint64_t>(static_cast<int64_t>(id)));
    assignment.bytes(3, base::ProtoWriter().bytes(1, ids.bytes()).bytes());
  }
  return assignment.bytes();
}

// Writes a CompileOptionsProto with these ExecutableBuildOptionsProto fields, and env_option_overrides: a map
// from a flag's name to an OptionOverrideProto, whose string_field XLA reads as it reads $XLA_FLAGS.
std::string options_of(int64_t num_replicas, int64_t num_partitions, const std::string& assignment,
                       const XlaFlags& flags) {
  base::ProtoWriter build;
  build.number(1, -1);  // device_ordinal: use the assignment
  build.number(4, num_replicas);
  build.number(5, num_partitions);             // without this count XLA ends the process
  if (num_partitions > 1) build.number(6, 1);  // use_spmd_partitioning
  if (!assignment.empty()) build.bytes(9, assignment);
  if (num_partitions > 1) build.number(19, 1);  // use_shardy_partitioner
  base::ProtoWriter options;
  options.bytes(3, build.bytes());
  for (const auto& [name, value] : flags)
    options.bytes(
        7, base::ProtoWriter().bytes(1, name).bytes(2, base::ProtoWriter().bytes(1, value).bytes()).bytes());
  return options.bytes();
}

}  // namespace

c::PJRT_Program mlir_program(std::string_view text) {
  static constexpr std::string_view kFormat = "mlir";
  auto program = c::make<c::PJRT_Program>();
  program.code = text.data();
  program.code_size = text.size();
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  return program;
}

std::string serialize_compile_options(std::span<const int> device_ids, const XlaFlags& flags) {
  return options_of(static_cast<int64_t>(device_ids.size()), 1, device_assignment(device_ids, false), flags);
}

std::string serialize_partitioned_options(std::span<const int> device_ids, const XlaFlags& flags) {
  return options_of(1, static_cast<int64_t>(device_ids.size()), device_assignment(device_ids, true), flags);
}

std::string serialize_compile_options(int num_replicas, const XlaFlags& flags) {
  return options_of(num_replicas, 1, {}, flags);
}

}  // namespace sluice::pjrt
