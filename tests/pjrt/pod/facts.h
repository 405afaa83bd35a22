// What is known of a compiled program: what the compiler was asked for and what it gave out.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sluice/pjrt/c_api.h"
#include "tests/pjrt/pod/wire.h"

namespace emulated_pod {

namespace c = sluice::pjrt::c;

struct Shape {
  c::PJRT_Buffer_Type type = c::kInvalid;
  std::vector<int64_t> dims;
  // In memory, the last dimension fastest.
  size_t bytes() const;
};

// Bytes of one element; 0 for a type that buffers do not have here.
size_t element_bytes(c::PJRT_Buffer_Type type);

// Where the copies of a program run.
struct Placement {
  int replicas = 0, partitions = 0;
  std::vector<int> devices;  // of replica r and partition p at [r × partitions + p]
};

// What becomes of an argument. Otherwise: the output that takes its memory over.
constexpr int64_t kKept = -1;
constexpr int64_t kConsumed = -2;  // no output takes its memory, which is free after the launch

struct Facts {
  std::string key;   // the same for the same text and options, in all processes
  std::string name;  // of the module
  Placement placement;
  std::vector<Shape> parameters, outputs;
  std::vector<int64_t> donation;  // of each parameter
  // The fields of PJRT_Executable_GetCompiledMemoryStats_Args, in their order.
  std::array<int64_t, 15> memory{};
  std::vector<std::pair<std::string, float>> cost;

  int64_t temporary_bytes() const { return memory[4]; }
  void write(Writer& out) const;
  static Result<Facts> read(Reader& in);
};

// The placement that a serialised CompileOptionsProto asks for, checked against the devices of the pod
// (numbered from 0). Without an assignment the first devices are taken.
Result<Placement> read_placement(std::string_view compile_options, int devices);

// Fills in name, parameters, outputs and donation from a serialised HloModuleProtoWithConfig.
Status read_module(std::string_view hlo_with_config, Facts& facts);

}  // namespace emulated_pod
