#include "sluice/pjrt/cache_identity.h"

#include <sys/stat.h>

#include <fstream>

#include "sluice/base/environment.h"
#include "sluice/base/file.h"
#include "sluice/base/strings.h"
#include "sluice/base/thread.h"
#include "sluice/pjrt/client.h"

namespace sluice::pjrt {
namespace {

// Uses the size, the time and the first page (with the build id): a checksum would read hundreds of MB.
std::string file_identity(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return path;
  std::string page(4096, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(page.data(), static_cast<std::streamsize>(page.size()));
  page.resize(static_cast<size_t>(file.gcount()));
  return base::str(status.st_size, ' ', status.st_mtim.tv_sec, ' ', status.st_mtim.tv_nsec, '\n', page);
}

}  // namespace

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

std::string cache_identity(const Client& client) {
  const Plugin& plugin = *client.plugin();
  std::string identity = base::str("plugin ", plugin.name(), " PJRT ", plugin.api_major(), '.',
                                   plugin.api_minor(), '\n', file_identity(plugin.path()), '\n');
  for (const auto& [name, value] : plugin.attributes()) identity += base::str(name, '=', value, '\n');
  identity += base::str("platform ", client.platform_name(), ' ', client.platform_version(), '\n');
  identity += base::str("devices ", client.global_devices().size(), '\n');
  for (const Device* device : client.devices())
    identity += base::str(device->id(), ' ', device->kind(), '\n');
  identity += processor_identity();
  for (const char* variable : {"XLA_FLAGS", "LIBTPU_INIT_ARGS", "NVIDIA_TF32_OVERRIDE"}) {
    identity += base::str('\n', variable, '=', base::environment(variable).value_or(""));
  }
  return identity;
}

}  // namespace sluice::pjrt
