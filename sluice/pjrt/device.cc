#include "sluice/pjrt/device.h"

#include "sluice/pjrt/named_value.h"

namespace sluice::pjrt {

base::Result<Device> Device::describe(const Api& api, c::PJRT_Device* raw) {
  Device device;
  device.api_ = api;
  device.raw_ = raw;
  auto description = c::make<c::PJRT_Device_GetDescription_Args>();
  description.device = raw;
  SLUICE_OK(api.call(description));
  auto id = c::make<c::PJRT_DeviceDescription_Id_Args>();
  auto process = c::make<c::PJRT_DeviceDescription_ProcessIndex_Args>();
  auto kind = c::make<c::PJRT_DeviceDescription_Kind_Args>();
  id.device_description = process.device_description = kind.device_description =
      description.device_description;
  SLUICE_OK(api.call(id));
  SLUICE_OK(api.call(process));
  SLUICE_OK(api.call(kind));
  device.id_ = id.id;
  device.process_index_ = process.process_index;
  device.kind_.assign(kind.device_kind, kind.device_kind_size);
  // Not every plugin has the next two.
  auto local = c::make<c::PJRT_Device_LocalHardwareId_Args>();
  local.device = raw;
  device.local_hardware_id_ = api.call(local) ? local.local_hardware_id : id.id;
  auto attributes = c::make<c::PJRT_DeviceDescription_Attributes_Args>();
  attributes.device_description = description.device_description;
  if (api.call(attributes)) device.attributes_ = to_texts(attributes.attributes, attributes.num_attributes);
  return device;
}

std::optional<MemoryStats> Device::memory() const {
  auto args = c::make<c::PJRT_Device_MemoryStats_Args>();
  args.device = raw_;
  if (!api_.call(args)) return std::nullopt;
  MemoryStats stats;
  stats.in_use = args.bytes_in_use;
  if (args.peak_bytes_in_use_is_set) stats.peak = args.peak_bytes_in_use;
  if (args.bytes_limit_is_set) stats.limit = args.bytes_limit;
  if (args.bytes_reserved_is_set) stats.reserved = args.bytes_reserved;
  if (args.largest_free_block_bytes_is_set) stats.largest_free = args.largest_free_block_bytes;
  return stats;
}

}  // namespace sluice::pjrt
