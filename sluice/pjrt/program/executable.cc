#include "sluice/pjrt/program/executable.h"

#include <utility>

#include "sluice/base/log.h"
#include "sluice/pjrt/client.h"
#include "sluice/pjrt/program/executable_facts.h"
#include "sluice/pjrt/types.h"

namespace sluice::pjrt {
namespace {

// The arrays that one execute passes to the plugin. Each thread keeps its own, so that a step allocates none.
struct LaunchArrays {
  std::vector<c::PJRT_Buffer*> arguments, outputs;  // of all replicas, in sequence
  std::vector<c::PJRT_Buffer* const*> argument_lists;
  std::vector<c::PJRT_Buffer**> output_lists;
  std::vector<c::PJRT_Event*> events;

  void fill(std::span<const std::vector<Buffer*>> lists, size_t num_arguments, size_t num_outputs) {
    const size_t replicas = lists.size();
    arguments.resize(replicas * num_arguments);
    outputs.assign(replicas * num_outputs, nullptr);
    argument_lists.resize(replicas);
    output_lists.resize(replicas);
    events.assign(replicas, nullptr);
    for (size_t r = 0; r < replicas; ++r) {
      c::PJRT_Buffer** list = arguments.data() + r * num_arguments;
      for (size_t i = 0; i < num_arguments; ++i) list[i] = lists[r][i]->raw();
      argument_lists[r] = list;
      output_lists[r] = outputs.data() + r * num_outputs;
    }
  }
};

}  // namespace

base::Result<std::shared_ptr<Executable>> Executable::adopt(std::shared_ptr<Client> client,
                                                            c::PJRT_LoadedExecutable* loaded,
                                                            const CompileOptions& options) {
  std::shared_ptr<Executable> made(new Executable(std::move(client)));
  made->loaded_ = loaded;
  made->name_ = options.name;
  for (const stablehlo::Type& type : options.argument_types) made->argument_types_.push_back(interned(type));
  auto args = c::make<c::PJRT_LoadedExecutable_GetExecutable_Args>();
  args.loaded_executable = loaded;
  SLUICE_OK(made->client_->api().call(args));
  made->executable_ = args.executable;
  SLUICE_OK(made->read_outputs(options));
  SLUICE_OK(made->read_devices());
  return made;
}

Executable::~Executable() {
  const Api& api = client_->api();
  if (executable_ != nullptr) {
    auto args = c::make<c::PJRT_Executable_Destroy_Args>();
    args.executable = executable_;
    if (auto status = api.call(args); !status) base::warn("destroying ", name_, ": ", status.error().what());
  }
  auto args = c::make<c::PJRT_LoadedExecutable_Destroy_Args>();
  args.executable = loaded_;
  if (auto status = api.call(args); !status) base::warn("destroying ", name_, ": ", status.error().what());
}

base::Status Executable::read_outputs(const CompileOptions& options) {
  const Api& api = client_->api();
  auto count = c::make<c::PJRT_Executable_NumOutputs_Args>();
  count.executable = executable_;
  SLUICE_OK(api.call(count));
  auto types = c::make<c::PJRT_Executable_OutputElementTypes_Args>();
  types.executable = executable_;
  SLUICE_OK(api.call(types));
  auto shapes = c::make<c::PJRT_Executable_OutputDimensions_Args>();
  shapes.executable = executable_;
  SLUICE_OK(api.call(shapes));
  const int64_t* dims = shapes.dims;
  for (size_t i = 0; i < count.num_outputs; ++i) {
    const auto dtype = from_buffer_type(types.output_types[i]);
    if (!dtype) {
      return base::fail(Code::kUnimplemented, "output ", i, " of ", name_, " has the plugin's element type ",
                        static_cast<unsigned>(types.output_types[i]), ", which Sluice does not have");
    }
    stablehlo::Type type;
    type.dtype = *dtype;
    type.dims.assign(dims, dims + shapes.dim_sizes[i]);
    dims += shapes.dim_sizes[i];
    if (i < options.output_types.size() && type != options.output_types[i]) {
      return base::fail(Code::kInternal, "output ", i, " of ", name_, " is a ", type.str(),
                        " on each device: expected ", options.output_types[i].str());
    }
    output_types_.push_back(interned(type));
  }
  if (!options.output_types.empty() && options.output_types.size() != count.num_outputs) {
    return base::fail(Code::kInternal, name_, " has ", count.num_outputs, " outputs: expected ",
                      options.output_types.size());
  }
  return {};
}

base::Status Executable::read_devices() {
  auto args = c::make<c::PJRT_LoadedExecutable_AddressableDevices_Args>();
  args.executable = loaded_;
  SLUICE_OK(client_->api().call(args));
  for (size_t i = 0; i < args.num_addressable_devices; ++i) {
    for (Device* device : client_->devices()) {
      if (device->raw() == args.addressable_devices[i]) devices_.push_back(device);
    }
  }
  if (devices_.empty() || devices_.size() != args.num_addressable_devices) {
    return base::fail(Code::kFailedPrecondition, name_, " runs on ", args.num_addressable_devices,
                      " devices of this process, but the client knows ", devices_.size(), " of them");
  }
  return {};
}

// If all is well, this takes only one comparison of pointers for the type and one for the device.
base::Status Executable::check(std::span<const std::vector<Buffer*>> arguments) const {
  if (arguments.size() != devices_.size()) {
    return base::fail(Code::kInvalidArgument, name_, " runs on ", devices_.size(),
                      " replicas, found arguments for ", arguments.size());
  }
  for (size_t r = 0; r < arguments.size(); ++r) {
    const std::vector<Buffer*>& list = arguments[r];
    if (list.size() != argument_types_.size()) {
      return base::fail(Code::kInvalidArgument, name_, " takes ", argument_types_.size(),
                        " arguments, found ", list.size(), " for replica ", r);
    }
    for (size_t i = 0; i < list.size(); ++i) {
      const Buffer* buffer = list[i];
      if (buffer == nullptr || buffer->raw() == nullptr || buffer->interned_type() != argument_types_[i] ||
          buffer->device() != devices_[r]) [[unlikely]] {
        return refuse(r, i, buffer);
      }
    }
  }
  return {};
}

base::Status Executable::refuse(size_t replica, size_t argument, const Buffer* buffer) const {
  const std::string where = base::str("argument ", argument, " of ", name_, " (replica ", replica, ")");
  if (buffer == nullptr || buffer->raw() == nullptr) {
    return base::fail(Code::kInvalidArgument, where, ": expected a buffer of ",
                      argument_types_[argument]->str(), ", found an empty one");
  }
  if (buffer->interned_type() != argument_types_[argument]) {
    return base::fail(Code::kInvalidArgument, where, ": expected ", argument_types_[argument]->str(),
                      ", found ", buffer->type().str());
  }
  return base::fail(Code::kInvalidArgument, where, ": expected a buffer on device ", devices_[replica]->id(),
                    " of the program's client, found one on device ", buffer->device()->id(),
                    ": put the value on the replica's own device");
}

base::Result<Launch> Executable::execute(std::span<const std::vector<Buffer*>> arguments,
                                         std::span<const int64_t> not_donated) const {
  Launch launch;
  launch.outputs.resize(num_outputs());
  std::vector<std::vector<Buffer>*> outputs;
  for (std::vector<Buffer>& replicas : launch.outputs) outputs.push_back(&replicas);
  std::vector<Buffer> replaced;
  SLUICE_TRY(launch.done, execute_into(outputs, replaced, arguments, not_donated));
  return launch;
}

base::Result<std::vector<Event>> Executable::execute_into(std::span<std::vector<Buffer>* const> outputs,
                                                          std::vector<Buffer>& replaced,
                                                          std::span<const std::vector<Buffer*>> arguments,
                                                          std::span<const int64_t> not_donated) const {
  SLUICE_OK(check(arguments));
  if (outputs.size() != num_outputs()) {
    return base::fail(Code::kInvalidArgument, name_, " has ", num_outputs(), " outputs, found lists for ",
                      outputs.size());
  }
  static thread_local LaunchArrays arrays;
  arrays.fill(arguments, num_arguments(), num_outputs());
  auto options = c::make<c::PJRT_ExecuteOptions>();
  options.non_donatable_input_indices = not_donated.data();
  options.num_non_donatable_input_indices = not_donated.size();
  auto args = c::make<c::PJRT_LoadedExecutable_Execute_Args>();
  args.executable = loaded_;
  args.options = &options;
  args.argument_lists = arrays.argument_lists.data();
  args.num_devices = devices_.size();
  args.num_args = num_arguments();
  args.output_lists = arrays.output_lists.data();
  args.device_complete_events = arrays.events.data();
  SLUICE_OK(client_->api().call(args));
  for (size_t i = 0; i < num_outputs(); ++i) {
    std::vector<Buffer>& replicas = *outputs[i];
    for (Buffer& before : replicas) replaced.push_back(std::move(before));
    replicas.clear();
    replicas.reserve(devices_.size());
    for (size_t r = 0; r < devices_.size(); ++r)
      replicas.emplace_back(client_, devices_[r], output_types_[i], arrays.output_lists[r][i]);
  }
  std::vector<Event> done;
  for (c::PJRT_Event* event : arrays.events) done.emplace_back(client_->api(), event);
  return done;
}

base::Result<ProgramMemory> Executable::memory() const { return read_memory(client_->api(), executable_); }
base::Result<ProgramCost> Executable::cost() const { return read_cost(client_->api(), executable_); }
base::Result<std::string> Executable::serialize() const {
  return read_serialized(client_->api(), executable_);
}

}  // namespace sluice::pjrt
