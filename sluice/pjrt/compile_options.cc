#include "sluice/pjrt/compile_options.h"

#include <cstdint>

namespace sluice::pjrt {
namespace {

// Protocol Buffers' wire format, as far as this message needs it.
void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void put_number(std::string& out, unsigned field, int64_t value) {
  put_varint(out, field << 3);
  put_varint(out, static_cast<uint64_t>(value));
}

void put_bytes(std::string& out, unsigned field, const std::string& bytes) {
  put_varint(out, field << 3 | 2);
  put_varint(out, bytes.size());
  out += bytes;
}

// DeviceAssignmentProto: replica_count, computation_count, computation_devices { replica_device_ids }.
std::string device_assignment(std::span<const int> device_ids) {
  std::string ids, devices, assignment;
  for (int id : device_ids) put_varint(ids, static_cast<uint64_t>(static_cast<int64_t>(id)));
  put_bytes(devices, 1, ids);
  put_number(assignment, 1, static_cast<int64_t>(device_ids.size()));
  put_number(assignment, 2, 1);
  put_bytes(assignment, 3, devices);
  return assignment;
}

// CompileOptionsProto with these ExecutableBuildOptionsProto fields.
std::string options_of(int64_t num_replicas, const std::string& assignment) {
  std::string build;
  put_number(build, 1, -1);  // device_ordinal: the assignment decides
  put_number(build, 4, num_replicas);
  put_number(build, 5, 1);  // without this count XLA ends the process
  if (!assignment.empty()) put_bytes(build, 9, assignment);
  std::string options;
  put_bytes(options, 3, build);
  return options;
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

std::string serialize_compile_options(std::span<const int> device_ids) {
  return options_of(static_cast<int64_t>(device_ids.size()), device_assignment(device_ids));
}

std::string serialize_compile_options(int num_replicas) { return options_of(num_replicas, {}); }

}  // namespace sluice::pjrt
