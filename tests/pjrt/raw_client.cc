#include "tests/pjrt/raw_client.h"

#include <dlfcn.h>

#include <stdexcept>

#include "sluice/pjrt/program/compile_options.h"
#include "sluice/pjrt/program/executable_facts.h"

namespace emulated_pod::testing {
namespace {

template <typename Args, typename Object>
void destroy(Object* Args::*field, Object* object) {
  auto args = c::make<Args>();
  args.*field = object;
  (void)pod_api().call(args);
}

Status await(c::PJRT_Event* event) {
  auto wait = c::make<c::PJRT_Event_Await_Args>();
  wait.event = event;
  Status status = pod_api().call(wait);
  destroy(&c::PJRT_Event_Destroy_Args::event, event);
  return status;
}

}  // namespace

const sluice::pjrt::Api& pod_api() {
  static const sluice::pjrt::Api api = [] {
    void* library = ::dlopen(SLUICE_POD_PLUGIN_PATH, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) throw std::runtime_error(::dlerror());
    return sluice::pjrt::Api(reinterpret_cast<const c::PJRT_Api* (*)()>(::dlsym(library, "GetPjrtApi"))());
  }();
  return api;
}

Result<std::unique_ptr<RawClient>> RawClient::create(
    const sluice::pjrt::Options& options, const std::function<void(c::PJRT_Client_Create_Args&)>& prepare) {
  const auto values = sluice::pjrt::to_named_values(options);
  auto args = c::make<c::PJRT_Client_Create_Args>();
  args.create_options = values.data();
  args.num_options = values.size();
  if (prepare) prepare(args);
  SLUICE_OK(pod_api().call(args));
  std::unique_ptr<RawClient> client(new RawClient());
  client->client_ = args.client;
  return client;
}

RawClient::~RawClient() {
  for (auto* buffer : buffers_) destroy(&c::PJRT_Buffer_Destroy_Args::buffer, buffer);
  for (auto* executable : executables_) destroy(&c::PJRT_Executable_Destroy_Args::executable, executable);
  for (auto* program : programs_) destroy(&c::PJRT_LoadedExecutable_Destroy_Args::executable, program);
  destroy(&c::PJRT_Client_Destroy_Args::client, client_);
}

std::vector<c::PJRT_Device*> RawClient::devices() const {
  auto args = c::make<c::PJRT_Client_Devices_Args>();
  args.client = client_;
  sluice::base::value_or_throw(pod_api().call(args));
  return {args.devices, args.devices + args.num_devices};
}

std::vector<c::PJRT_Device*> RawClient::local_devices() const {
  auto args = c::make<c::PJRT_Client_AddressableDevices_Args>();
  args.client = client_;
  sluice::base::value_or_throw(pod_api().call(args));
  return {args.addressable_devices, args.addressable_devices + args.num_addressable_devices};
}

int RawClient::process_index() const {
  auto args = c::make<c::PJRT_Client_ProcessIndex_Args>();
  args.client = client_;
  sluice::base::value_or_throw(pod_api().call(args));
  return args.process_index;
}

Result<c::PJRT_Buffer*> RawClient::put(const std::vector<float>& values, c::PJRT_Device* device) {
  const int64_t dims[] = {static_cast<int64_t>(values.size())};
  auto args = c::make<c::PJRT_Client_BufferFromHostBuffer_Args>();
  args.client = client_;
  args.data = values.data();
  args.type = c::kF32;
  args.dims = dims;
  args.num_dims = 1;
  args.device = device;
  SLUICE_OK(pod_api().call(args));
  buffers_.push_back(args.buffer);
  SLUICE_OK(await(args.done_with_host_buffer));
  return args.buffer;
}

Result<std::vector<float>> RawClient::read(c::PJRT_Buffer* buffer, size_t size) const {
  std::vector<float> values(size);
  char nothing = 0;  // no address asks for the size alone
  auto args = c::make<c::PJRT_Buffer_ToHostBuffer_Args>();
  args.src = buffer;
  args.dst = size == 0 ? static_cast<void*>(&nothing) : values.data();
  args.dst_size = size * sizeof(float);
  SLUICE_OK(pod_api().call(args));
  SLUICE_OK(await(args.event));
  return values;
}

bool RawClient::deleted(c::PJRT_Buffer* buffer) const {
  auto args = c::make<c::PJRT_Buffer_IsDeleted_Args>();
  args.buffer = buffer;
  sluice::base::value_or_throw(pod_api().call(args));
  return args.is_deleted;
}

Result<c::PJRT_LoadedExecutable*> RawClient::compile(const std::string& text, const std::string& options,
                                                     const std::string& format) {
  c::PJRT_Program program = sluice::pjrt::mlir_program(text);
  program.format = format.data();
  program.format_size = format.size();
  auto args = c::make<c::PJRT_Client_Compile_Args>();
  args.client = client_;
  args.program = &program;
  args.compile_options = options.data();
  args.compile_options_size = options.size();
  SLUICE_OK(pod_api().call(args));
  programs_.push_back(args.executable);
  return args.executable;
}

Result<c::PJRT_LoadedExecutable*> RawClient::load(const std::string& serialized) {
  auto args = c::make<c::PJRT_Executable_DeserializeAndLoad_Args>();
  args.client = client_;
  args.serialized_executable = serialized.data();
  args.serialized_executable_size = serialized.size();
  SLUICE_OK(pod_api().call(args));
  programs_.push_back(args.loaded_executable);
  return args.loaded_executable;
}

Result<std::string> RawClient::serialize(c::PJRT_LoadedExecutable* loaded) {
  auto args = c::make<c::PJRT_LoadedExecutable_GetExecutable_Args>();
  args.loaded_executable = loaded;
  SLUICE_OK(pod_api().call(args));
  executables_.push_back(args.executable);
  return sluice::pjrt::read_serialized(pod_api(), args.executable);
}

Result<RawClient::Buffers> RawClient::execute(c::PJRT_LoadedExecutable* loaded, const Buffers& arguments,
                                              size_t arguments_each, const std::vector<int64_t>& kept) {
  const size_t devices = arguments.size() / arguments_each;
  std::vector<c::PJRT_Buffer* const*> lists;
  for (size_t d = 0; d < devices; ++d) lists.push_back(arguments.data() + d * arguments_each);
  Buffers outputs(devices);
  std::vector<c::PJRT_Buffer**> output_lists;
  for (auto& output : outputs) output_lists.push_back(&output);
  auto options = c::make<c::PJRT_ExecuteOptions>();
  options.non_donatable_input_indices = kept.data();
  options.num_non_donatable_input_indices = kept.size();
  auto args = c::make<c::PJRT_LoadedExecutable_Execute_Args>();
  args.executable = loaded;
  args.options = &options;
  args.argument_lists = lists.data();
  args.num_devices = devices;
  args.num_args = arguments_each;
  args.output_lists = output_lists.data();
  SLUICE_OK(pod_api().call(args));
  buffers_.insert(buffers_.end(), outputs.begin(), outputs.end());
  return outputs;
}

Result<c::PJRT_Device_MemoryStats_Args> RawClient::memory(c::PJRT_Device* device) const {
  auto args = c::make<c::PJRT_Device_MemoryStats_Args>();
  args.device = device;
  SLUICE_OK(pod_api().call(args));
  return args;
}

}  // namespace emulated_pod::testing
