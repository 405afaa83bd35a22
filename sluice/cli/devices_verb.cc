// sluice devices
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "sluice/base/strings.h"
#include "sluice/cli/verbs.h"
#include "sluice/pjrt/describe.h"

namespace sluice::cli {
namespace {

nlohmann::json to_json(const pjrt::DeviceReport& report) {
  nlohmann::json devices = nlohmann::json::array();
  for (const auto& device : report.devices) {
    nlohmann::json item = {{"id", device.id},
                           {"kind", device.kind},
                           {"process", device.process_index},
                           {"attributes", device.attributes}};
    if (device.memory) {
      item["bytes_in_use"] = device.memory->in_use;
      if (device.memory->limit) item["bytes_limit"] = *device.memory->limit;
    }
    devices.push_back(std::move(item));
  }
  return {{"plugin", report.plugin_name},
          {"path", report.plugin_path},
          {"api", base::str(report.api_major, ".", report.api_minor)},
          {"platform", report.platform_name},
          {"platform_version", report.platform_version},
          {"attributes", report.plugin_attributes},
          {"global_devices", report.global_device_count},
          {"devices", std::move(devices)}};
}

void print(const pjrt::DeviceReport& report) {
  std::printf("plugin    %s (%s)\n", report.plugin_name.c_str(), report.plugin_path.c_str());
  std::printf("PJRT API  %d.%d\n", report.api_major, report.api_minor);
  std::printf("platform  %s, version %s\n", report.platform_name.c_str(), report.platform_version.c_str());
  for (const auto& [name, value] : report.plugin_attributes)
    std::printf("          %s = %s\n", name.c_str(), value.c_str());
  for (const auto& device : report.devices) {
    std::string memory = "memory not reported";
    if (device.memory) {
      memory = base::str(device.memory->in_use >> 20, " MiB in use");
      if (device.memory->limit) memory += base::str(" of ", *device.memory->limit >> 20, " MiB");
    }
    std::printf("device %-3d %s, process %d, %s\n", device.id, device.kind.c_str(), device.process_index,
                memory.c_str());
  }
}

}  // namespace

void add_devices_verb(CLI::App& program, Action& action) {
  struct Flags {
    std::string plugin;
    int devices = 1;
    bool json = false;
  };
  CLI::App* verb = program.add_subcommand("devices", "Show the plugin, its version, devices and memory");
  auto flags = std::make_shared<Flags>();
  verb->add_option("--plugin", flags->plugin, "cpu, tpu, cuda or a path; empty: $SLUICE_PLUGIN, else cpu");
  verb->add_option("--devices", flags->devices, "Number of virtual devices of the cpu plugin");
  verb->add_flag("--json", flags->json, "As one JSON object");
  verb->callback([flags, &action] {
    action = [flags] {
      const auto report = base::value_or_throw(pjrt::describe(flags->plugin, flags->devices));
      if (flags->json)
        std::printf("%s\n", to_json(report).dump(2).c_str());
      else
        print(report);
      return 0;
    };
  });
}

}  // namespace sluice::cli
