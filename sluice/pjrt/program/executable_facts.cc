#include "sluice/pjrt/program/executable_facts.h"

#include <string_view>

#include "sluice/pjrt/types.h"

namespace sluice::pjrt {
namespace {

double property(const c::PJRT_Executable_GetCostAnalysis_Args& args, std::string_view name) {
  for (size_t i = 0; i < args.num_properties; ++i) {
    const c::PJRT_NamedValue& value = args.properties[i];
    if (std::string_view(value.name, value.name_size) == name && value.type == c::kFloat)
      return value.float_value;
  }
  return 0;
}

}  // namespace

base::Result<ProgramMemory> read_memory(const Api& api, c::PJRT_Executable* executable) {
  auto args = c::make<c::PJRT_Executable_GetCompiledMemoryStats_Args>();
  args.executable = executable;
  SLUICE_OK(api.call(args));
  return ProgramMemory{args.argument_size_in_bytes, args.output_size_in_bytes, args.alias_size_in_bytes,
                       args.temp_size_in_bytes, args.generated_code_size_in_bytes};
}

base::Result<int64_t> read_total_memory(const Api& api, c::PJRT_Executable* executable) {
  auto args = c::make<c::PJRT_Executable_GetCompiledMemoryStats_Args>();
  args.executable = executable;
  SLUICE_OK(api.call(args));
  return args.total_allocation_bytes;
}

base::Result<ProgramCost> read_cost(const Api& api, c::PJRT_Executable* executable) {
  auto args = c::make<c::PJRT_Executable_GetCostAnalysis_Args>();
  args.executable = executable;
  SLUICE_OK(api.call(args));
  return ProgramCost{property(args, "flops"), property(args, "bytes accessed")};
}

base::Result<std::vector<std::string>> read_output_types(const Api& api, c::PJRT_Executable* executable) {
  auto types = c::make<c::PJRT_Executable_OutputElementTypes_Args>();
  types.executable = executable;
  SLUICE_OK(api.call(types));
  auto shapes = c::make<c::PJRT_Executable_OutputDimensions_Args>();
  shapes.executable = executable;
  SLUICE_OK(api.call(shapes));
  std::vector<std::string> texts;
  const int64_t* dims = shapes.dims;
  for (size_t i = 0; i < types.num_output_types; ++i) {
    stablehlo::Type type;
    type.dims.assign(dims, dims + shapes.dim_sizes[i]);
    dims += shapes.dim_sizes[i];
    const auto dtype = from_buffer_type(types.output_types[i]);
    if (dtype) type.dtype = *dtype;
    texts.push_back(dtype ? type.str() : "");
  }
  return texts;
}

base::Result<std::string> read_serialized(const Api& api, c::PJRT_Executable* executable) {
  auto args = c::make<c::PJRT_Executable_Serialize_Args>();
  args.executable = executable;
  SLUICE_OK(api.call(args));
  std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_executable_deleter(args.serialized_executable);
  return bytes;
}

base::Result<std::string> read_optimized(const Api& api, c::PJRT_Executable* executable,
                                         std::string& format) {
  auto program = c::make<c::PJRT_Program>();
  auto args = c::make<c::PJRT_Executable_OptimizedProgram_Args>();
  args.executable = executable;
  args.program = &program;
  SLUICE_OK(api.call(args));  // gets the size
  std::string bytes(program.code_size, '\0');
  program.code = bytes.data();
  SLUICE_OK(api.call(args));
  format.assign(program.format, program.format_size);
  return bytes;
}

}  // namespace sluice::pjrt
