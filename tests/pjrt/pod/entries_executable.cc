// Programs.
#include <cstring>

#include "tests/pjrt/pod/entry.h"
#include "tests/pjrt/pod/slices.h"

namespace emulated_pod {
namespace {

c::PJRT_LoadedExecutable* new_loaded(Client& client, std::shared_ptr<Executable> executable) {
  std::vector<Device*> local;
  for (const int id : executable->facts().placement.devices) {
    if (client.device(id).addressable()) local.push_back(&client.device(id));
  }
  return reinterpret_cast<c::PJRT_LoadedExecutable*>(
      new Loaded{client, std::move(executable), std::move(local)});
}

Status client_compile(c::PJRT_Client_Compile_Args& args) {
  const std::string_view format(args.program->format, args.program->format_size);
  if (format != "mlir") return fail(Code::kInvalidArgument, "Unknown program format '", format, "'.");
  const Client& client = of(args.client);
  SLUICE_TRY(const std::string options, with_inner_ids({args.compile_options, args.compile_options_size},
                                                       client.layout(), client.settings().slices));
  Writer body;
  body.text({args.program->code, args.program->code_size}).text(options);
  SLUICE_TRY(auto executable, of(args.client).obtain(Kind::kCompile, body.take()));
  args.executable = new_loaded(of(args.client), std::move(executable));
  return {};
}

Status deserialize_and_load(c::PJRT_Executable_DeserializeAndLoad_Args& args) {
  Writer body;
  body.text({args.serialized_executable, args.serialized_executable_size});
  SLUICE_TRY(auto executable, of(args.client).obtain(Kind::kLoad, body.take()));
  args.loaded_executable = new_loaded(of(args.client), std::move(executable));
  return {};
}

Status loaded_destroy(c::PJRT_LoadedExecutable_Destroy_Args& args) {
  delete &of(args.executable);
  return {};
}

Status loaded_get_executable(c::PJRT_LoadedExecutable_GetExecutable_Args& args) {
  args.executable =
      reinterpret_cast<c::PJRT_Executable*>(new ExecutableHandle{of(args.loaded_executable).executable, {}});
  return {};
}

Status loaded_addressable_devices(c::PJRT_LoadedExecutable_AddressableDevices_Args& args) {
  const auto& devices = of(args.executable).devices;
  args.addressable_devices = reinterpret_cast<c::PJRT_Device* const*>(devices.data());
  args.num_addressable_devices = devices.size();
  return {};
}

Status loaded_execute(c::PJRT_LoadedExecutable_Execute_Args& args) {
  return execute(of(args.executable), args);
}

Status executable_destroy(c::PJRT_Executable_Destroy_Args& args) {
  delete &of(args.executable);
  return {};
}

Status executable_num_outputs(c::PJRT_Executable_NumOutputs_Args& args) {
  args.num_outputs = of(args.executable).executable->facts().outputs.size();
  return {};
}

Status executable_output_types(c::PJRT_Executable_OutputElementTypes_Args& args) {
  auto& types = of(args.executable).executable->output_types;
  args.output_types = types.data();
  args.num_output_types = types.size();
  return {};
}

Status executable_output_dimensions(c::PJRT_Executable_OutputDimensions_Args& args) {
  const Executable& executable = *of(args.executable).executable;
  args.num_outputs = executable.output_ranks.size();
  args.dims = executable.output_dims.data();
  args.dim_sizes = executable.output_ranks.data();
  return {};
}

Status executable_cost(c::PJRT_Executable_GetCostAnalysis_Args& args) {
  const auto& cost = of(args.executable).executable->cost;
  args.properties = cost.data();
  args.num_properties = cost.size();
  return {};
}

Status executable_memory(c::PJRT_Executable_GetCompiledMemoryStats_Args& args) {
  const auto& memory = of(args.executable).executable->facts().memory;
  std::memcpy(&args.generated_code_size_in_bytes, memory.data(), sizeof memory);
  return {};
}

Status executable_serialize(c::PJRT_Executable_Serialize_Args& args) {
  auto& handle = of(const_cast<c::PJRT_Executable*>(args.executable));
  SLUICE_TRY(std::string bytes, handle.executable->ask(Kind::kSerialize));
  auto* kept = new std::string(std::move(bytes));
  args.serialized_bytes = kept->data();
  args.serialized_bytes_size = kept->size();
  args.serialized_executable = reinterpret_cast<c::PJRT_SerializedExecutable*>(kept);
  args.serialized_executable_deleter = [](c::PJRT_SerializedExecutable* bytes) {
    delete reinterpret_cast<std::string*>(bytes);
  };
  return {};
}

// Asked twice: for the size, then for the bytes.
Status executable_optimized(c::PJRT_Executable_OptimizedProgram_Args& args) {
  static constexpr std::string_view kFormat = "hlo_with_config";
  ExecutableHandle& handle = of(args.executable);
  if (handle.optimized.empty()) {
    SLUICE_TRY(handle.optimized, handle.executable->ask(Kind::kOptimized));
  }
  args.program->format = kFormat.data();
  args.program->format_size = kFormat.size();
  if (args.program->code != nullptr) {
    if (args.program->code_size < handle.optimized.size()) {
      return fail(Code::kInvalidArgument, "expected room for ", handle.optimized.size(), " bytes, found ",
                  args.program->code_size);
    }
    std::memcpy(const_cast<char*>(args.program->code), handle.optimized.data(), handle.optimized.size());
  }
  args.program->code_size = handle.optimized.size();
  return {};
}

}  // namespace

void set_executable_entries(c::PJRT_Api& api) {
  set_entries<&client_compile, &deserialize_and_load, &loaded_destroy, &loaded_get_executable,
              &loaded_addressable_devices, &loaded_execute, &executable_destroy, &executable_num_outputs,
              &executable_output_types, &executable_output_dimensions, &executable_cost, &executable_memory,
              &executable_serialize, &executable_optimized>(api);
}

}  // namespace emulated_pod
