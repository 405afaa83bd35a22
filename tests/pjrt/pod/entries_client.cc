// Clients and devices.
#include "tests/pjrt/pod/entry.h"

namespace emulated_pod {
namespace {

Status client_create(c::PJRT_Client_Create_Args& args) {
  SLUICE_TRY(auto client, Client::create(args));
  args.client = reinterpret_cast<c::PJRT_Client*>(client.release());
  return {};
}

Status client_destroy(c::PJRT_Client_Destroy_Args& args) {
  delete &of(args.client);
  return {};
}

Status client_platform_name(c::PJRT_Client_PlatformName_Args& args) {
  const std::string& name = of(args.client).settings().platform;
  args.platform_name = name.data();
  args.platform_name_size = name.size();
  return {};
}

Status client_platform_version(c::PJRT_Client_PlatformVersion_Args& args) {
  static constexpr std::string_view kVersion = "emulated pod";
  args.platform_version = kVersion.data();
  args.platform_version_size = kVersion.size();
  return {};
}

Status client_process_index(c::PJRT_Client_ProcessIndex_Args& args) {
  args.process_index = of(args.client).settings().worker;
  return {};
}

Status client_devices(c::PJRT_Client_Devices_Args& args) {
  const auto& devices = of(args.client).devices();
  args.devices = reinterpret_cast<c::PJRT_Device* const*>(devices.data());
  args.num_devices = devices.size();
  return {};
}

Status client_addressable_devices(c::PJRT_Client_AddressableDevices_Args& args) {
  const auto& devices = of(args.client).local_devices();
  args.addressable_devices = reinterpret_cast<c::PJRT_Device* const*>(devices.data());
  args.num_addressable_devices = devices.size();
  return {};
}

// Only values that lie densely in memory: Sluice has no others.
Status check_host_value(const c::PJRT_Client_BufferFromHostBuffer_Args& args, const Shape& shape) {
  if (args.memory != nullptr || args.device_layout != nullptr || args.device == nullptr)
    return fail(Code::kUnimplemented, "the emulated pod puts values on a device in its own layout only");
  if (element_bytes(shape.type) == 0)
    return fail(Code::kUnimplemented, "the emulated pod has no buffers of type ",
                static_cast<unsigned>(shape.type));
  int64_t stride = static_cast<int64_t>(element_bytes(shape.type));
  for (size_t i = args.num_byte_strides; i-- > 0;) {
    if (args.byte_strides[i] != stride)
      return fail(Code::kUnimplemented, "the emulated pod takes values in row-major order only");
    stride *= shape.dims[i];
  }
  if (args.data != nullptr || shape.bytes() == 0) return {};
  return fail(Code::kInvalidArgument, "the host value's address is null");
}

Status buffer_from_host_buffer(c::PJRT_Client_BufferFromHostBuffer_Args& args) {
  Shape shape{args.type, {args.dims, args.dims + args.num_dims}};
  SLUICE_OK(check_host_value(args, shape));
  SLUICE_TRY(auto buffer, of(args.client).put(args.data, std::move(shape), of(args.device)));
  args.buffer = reinterpret_cast<c::PJRT_Buffer*>(buffer.release());
  args.done_with_host_buffer = new_ready_event();
  return {};
}

Status device_get_description(c::PJRT_Device_GetDescription_Args& args) {
  args.device_description = reinterpret_cast<c::PJRT_DeviceDescription*>(&of(args.device).description);
  return {};
}

Status device_is_addressable(c::PJRT_Device_IsAddressable_Args& args) {
  args.is_addressable = of(args.device).addressable();
  return {};
}

Status device_local_hardware_id(c::PJRT_Device_LocalHardwareId_Args& args) {
  args.local_hardware_id = of(args.device).hardware_id;
  return {};
}

Status device_memory_stats(c::PJRT_Device_MemoryStats_Args& args) {
  const Device& device = of(args.device);
  if (!device.addressable()) {
    return fail(Code::kFailedPrecondition, "the memory of device ", device.id(), " is that of process ",
                device.description.worker, ": only addressable devices tell about theirs");
  }
  device.memory->report(args);
  return {};
}

Status description_id(c::PJRT_DeviceDescription_Id_Args& args) {
  args.id = of(args.device_description).id;
  return {};
}

Status description_process_index(c::PJRT_DeviceDescription_ProcessIndex_Args& args) {
  args.process_index = of(args.device_description).worker;
  return {};
}

Status description_kind(c::PJRT_DeviceDescription_Kind_Args& args) {
  const std::string& kind = of(args.device_description).kind;
  args.device_kind = kind.data();
  args.device_kind_size = kind.size();
  return {};
}

Status description_attributes(c::PJRT_DeviceDescription_Attributes_Args& args) {
  const auto& attributes = of(args.device_description).attributes;
  args.attributes = attributes.data();
  args.num_attributes = attributes.size();
  return {};
}

}  // namespace

void set_client_entries(c::PJRT_Api& api) {
  set_entries<&client_create, &client_destroy, &client_platform_name, &client_platform_version,
              &client_process_index, &client_devices, &client_addressable_devices, &buffer_from_host_buffer>(
      api);
}

void set_device_entries(c::PJRT_Api& api) {
  set_entries<&device_get_description, &device_is_addressable, &device_local_hardware_id,
              &device_memory_stats, &description_id, &description_process_index, &description_kind,
              &description_attributes>(api);
}

}  // namespace emulated_pod
