#include "sluice/pjrt/machine/describe.h"

#include "sluice/pjrt/client.h"
#include "sluice/pjrt/machine/choose_plugin.h"

namespace sluice::pjrt {

base::Result<DeviceReport> describe(const std::string& name, int cpu_devices) {
  SLUICE_TRY(const std::shared_ptr<Plugin> plugin, open_plugin(name));
  ClientOptions options;
  options.cpu_device_count = cpu_devices;
  options.cache_dir = "";
  SLUICE_TRY(const std::shared_ptr<Client> client, Client::create(plugin, options));
  DeviceReport report;
  report.plugin_name = plugin->name();
  report.plugin_path = plugin->path();
  report.api_major = plugin->api_major();
  report.api_minor = plugin->api_minor();
  report.plugin_attributes = plugin->attributes();
  report.platform_name = client->platform_name();
  report.platform_version = client->platform_version();
  report.process_index = client->process_index();
  report.global_device_count = client->global_devices().size();
  for (const Device* device : client->devices()) {
    report.devices.push_back({device->id(), device->local_hardware_id(), device->process_index(),
                              device->kind(), device->memory(), device->attributes()});
  }
  return report;
}

}  // namespace sluice::pjrt
