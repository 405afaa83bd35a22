#include "sluice/pjrt/cache/cache_identity.h"

#include <sys/stat.h>

#include <fstream>
#include <string_view>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/base/thread.h"
#include "sluice/pjrt/client.h"

namespace sluice::pjrt {
namespace {

// Uses the size and the first page: a checksum would read hundreds of MB. If the linker's build id is not in
// that page (libtpu's is), the time of the file counts, too.
std::string file_identity(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return path;
  std::string page(4096, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(page.data(), static_cast<std::streamsize>(page.size()));
  page.resize(static_cast<size_t>(file.gcount()));
  constexpr std::string_view kBuildIdNote("\3\0\0\0GNU\0", 8);  // NT_GNU_BUILD_ID, and the owner's name
  const bool has_build_id = page.find(kBuildIdNote) != std::string::npos;
  const std::string time =
      has_build_id ? "" : base::str(' ', status.st_mtim.tv_sec, ' ', status.st_mtim.tv_nsec);
  return base::str(status.st_size, time, '\n', page);
}

std::string plugin_identity(const Plugin& plugin) {
  std::string identity = base::str("PJRT ", plugin.api_major(), '.', plugin.api_minor(), '\n',
                                   file_identity(plugin.path()), '\n');
  for (const auto& [name, value] : plugin.attributes()) identity += base::str(name, '=', value, '\n');
  return identity;
}

std::string variables_identity() {
  std::string identity;
  for (const char* variable : {"XLA_FLAGS", "LIBTPU_INIT_ARGS", "NVIDIA_TF32_OVERRIDE"})
    identity += base::str('\n', variable, '=', base::environment(variable).value_or(""));
  return identity;
}

}  // namespace

std::string device_place(int id, const std::string& kind,
                         const std::map<std::string, std::string>& attributes) {
  std::string place = base::str(id, ' ', kind);
  for (const char* name : {"coords", "core_on_chip", "slice_index"})
    if (const auto found = attributes.find(name); found != attributes.end())
      place += base::str(' ', name, '=', found->second);
  return place;
}

std::string tpu_identity(const Plugin& plugin, std::span<const std::string> places) {
  std::string identity = base::str("TPUs\n", plugin_identity(plugin));
  for (const std::string& place : places) identity += base::str(place, '\n');
  return identity + variables_identity();
}

// XLA compiles for the exact processor that it runs on.
std::string processor_identity() {
  std::ifstream info("/proc/cpuinfo");
  std::string line, identity;
  while (std::getline(info, line) && !line.empty()) {  // the first processor ends at an empty line
    for (const char* name : {"vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU "}) {
      if (base::starts_with(line, name)) identity += line + '\n';
    }
  }
  return base::str(identity, base::available_processors());
}

std::string cache_identity(const Client& client, std::span<const std::string> places) {
  if (client.platform_name() == "tpu") return tpu_identity(*client.plugin(), places);
  std::string identity =
      base::str("plugin ", client.plugin()->name(), ' ', plugin_identity(*client.plugin()));
  identity += base::str("platform ", client.platform_name(), ' ', client.platform_version(), '\n');
  identity += base::str("devices ", client.global_devices().size(), '\n');
  for (const Device* device : client.devices())
    identity += base::str(device->id(), ' ', device->kind(), '\n');
  return identity + processor_identity() + variables_identity();
}

}  // namespace sluice::pjrt
