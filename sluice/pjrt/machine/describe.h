// Describes a plugin and its devices, for `sluice devices` and `sluice doctor`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/pjrt/device.h"

namespace sluice::pjrt {

struct DeviceDescription {
  int id = 0, local_hardware_id = 0, process_index = 0;
  std::string kind;
  std::optional<MemoryStats> memory;  // nullopt if the plugin does not report it
  std::map<std::string, std::string> attributes;
};

struct DeviceReport {
  std::string plugin_name, plugin_path;
  int api_major = 0, api_minor = 0;
  std::map<std::string, std::string> plugin_attributes;  // "stablehlo_current_version" …
  std::string platform_name, platform_version;
  int process_index = 0;
  size_t global_device_count = 0;          // of all processes
  std::vector<DeviceDescription> devices;  // of this process
};

// Opens the plugin (as open_plugin takes it), makes a client, and lists its devices. `cpu_devices` is the
// number of devices of XLA's CPU plugin.
base::Result<DeviceReport> describe(const std::string& plugin, int cpu_devices);

}  // namespace sluice::pjrt
