// sluice devices
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/cli/verbs.h"
#include "sluice/pjrt/machine/chip_use.h"
#include "sluice/pjrt/machine/choose_plugin.h"
#include "sluice/pjrt/machine/describe.h"

namespace sluice::cli {
namespace {

nlohmann::json to_json(const pjrt::Machine& machine, const std::vector<pjrt::Holder>& holders) {
  nlohmann::json held = nlohmann::json::array();
  for (const pjrt::Holder& holder : holders)
    held.push_back({{"process", holder.process},
                    {"command", holder.command},
                    {"user", holder.user},
                    {"since", holder.since},
                    {"files", holder.files}});
  return {{"tpu_chips", machine.tpu_chips},
          {"tpu_kind", machine.tpu_kind},
          {"tpu_files", machine.tpu_files},
          {"tpu_holders", std::move(held)},
          {"gpu_files", machine.gpu_files}};
}

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

// This is printed before the plugin is opened: if that fails, it says why.
void print(const pjrt::Machine& machine, const std::vector<pjrt::Holder>& holders) {
  std::printf("machine   %s, %s\n", machine.tpu_text().c_str(), machine.gpu_text().c_str());
  for (const pjrt::Holder& holder : holders) std::printf("          held by %s\n", holder.text().c_str());
  std::fflush(stdout);
}

void print(const pjrt::PluginChoice& choice, const pjrt::DeviceReport& report) {
  std::printf("plugin    %s (%s)\n", report.plugin_name.c_str(), report.plugin_path.c_str());
  std::printf("chosen    %s%s\n", choice.automatic ? "auto: " : "", choice.reason.c_str());
  if (!choice.unused.empty()) std::printf("not used  %s\n", choice.unused.c_str());
  std::printf("PJRT API  %d.%d\n", report.api_major, report.api_minor);
  std::printf("platform  %s, version %s\n", report.platform_name.c_str(), report.platform_version.c_str());
  for (const auto& [name, value] : report.plugin_attributes)
    std::printf("          %s = %s\n", name.c_str(), value.c_str());
  for (const auto& device : report.devices) {
    std::string memory = "memory not reported";
    if (device.memory) {
      memory = base::memory_text(device.memory->in_use) + " in use";
      if (device.memory->limit) memory += " of " + base::memory_text(*device.memory->limit);
    }
    std::printf("device %-3d %s, process %d, %s\n", device.id, device.kind.c_str(), device.process_index,
                memory.c_str());
  }
}

struct DevicesFlags {
  std::string plugin;
  int devices = 1;
  bool json = false;
};

int show_devices(const DevicesFlags& flags) {
  const pjrt::Machine machine = pjrt::find_machine();
  const std::vector<pjrt::Holder> holders = pjrt::chip_holders(machine);
  if (!flags.json) print(machine, holders);
  const auto choice = base::value_or_throw(pjrt::choose_plugin(flags.plugin));
  const auto report = base::value_or_throw(pjrt::describe(flags.plugin, flags.devices));
  if (!flags.json) {
    print(choice, report);
    return 0;
  }
  nlohmann::json json = to_json(report);
  json["machine"] = to_json(machine, holders);
  json["chosen"] = {{"automatic", choice.automatic}, {"reason", choice.reason}, {"not_used", choice.unused}};
  std::printf("%s\n", json.dump(2).c_str());
  return 0;
}

}  // namespace

Verb devices_verb() {
  auto flags = std::make_shared<DevicesFlags>();
  return {.name = "devices",
          .help = "Show what accelerators the machine has, who holds them, and the plugin with its devices",
          .add_flags =
              [flags](CLI::App& app) {
                app.add_option("--plugin", flags->plugin, kPluginHelp);
                app.add_option("--devices", flags->devices, "Number of virtual devices of the cpu plugin")
                    ->check(kAboveZero);
                app.add_flag("--json", flags->json, "As one JSON object");
              },
          .run = [flags] { return show_devices(*flags); }};
}

}  // namespace sluice::cli
