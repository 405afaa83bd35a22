#include "sluice/pjrt/plugin.h"

#include <dlfcn.h>

#include <mutex>

#include "sluice/base/log.h"
#include "sluice/pjrt/machine/chip_use.h"
#include "sluice/pjrt/machine/choose_plugin.h"
#include "sluice/pjrt/named_value.h"

namespace sluice::pjrt {
namespace {

using GetPjrtApi = const c::PJRT_Api* (*)();

// Opens the library and calls its function for the table of functions.
base::Result<const c::PJRT_Api*> open_library(const std::string& path) {
  // Its symbols stay private (RTLD_LOCAL), so that two plugins, or a plugin and LibTorch, do not mix.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    return base::fail(Code::kFailedPrecondition, "cannot load the plugin ", path, ": ",
                      reason == nullptr ? "unknown reason" : reason,
                      "; install the library that is missing, or the plugin built for this system");
  }
  const auto get_api = reinterpret_cast<GetPjrtApi>(::dlsym(library, "GetPjrtApi"));
  if (get_api == nullptr) {
    return base::fail(
        Code::kInvalidArgument, path,
        " is not a PJRT plugin: expected the function GetPjrtApi, found none; SLUICE_PLUGIN takes the "
        "path of a plugin's .so, for example xla_cpu_pjrt.so or libtpu.so");
  }
  const c::PJRT_Api* table = get_api();
  if (table == nullptr)
    return base::fail(Code::kInternal, "the plugin ", path, " gave out no table of functions");
  return table;
}

base::Status check_version(const c::PJRT_Api& table, const std::string& path) {
  const int major = table.pjrt_api_version.major_version, minor = table.pjrt_api_version.minor_version;
  if (major == c::kApiMajor && minor >= kOldestMinor) return {};
  return base::fail(Code::kFailedPrecondition, "the plugin ", path, " has PJRT version ", major, ".", minor,
                    ", expected ", c::kApiMajor, ".", kOldestMinor, " or a later ", c::kApiMajor,
                    ".x: install a ",
                    major > c::kApiMajor ? "plugin that this Sluice knows" : "newer plugin");
}

// Opens the plugin and checks its version; does not initialise it.
base::Result<const c::PJRT_Api*> open_plugin(const std::string& name, const std::string& path) {
  if (name == "cuda") preload_nvidia_libraries(path);
  SLUICE_TRY(const c::PJRT_Api* const table, open_library(path));
  SLUICE_OK(check_version(*table, path));
  return table;
}

}  // namespace

base::Result<std::shared_ptr<Plugin>> Plugin::load(const std::string& name_or_path) {
  SLUICE_TRY(const PluginChoice choice, choose_plugin(name_or_path));
  return load(choice.file);
}

base::Result<std::shared_ptr<Plugin>> Plugin::load(const PluginFile& file) {
  // The map is never destroyed: buffers with static lifetime may otherwise outlive it. The lock is held while
  // a plugin is loaded, since it must be initialised only once.
  static std::mutex mutex;
  static auto& loaded = *new std::map<std::string, std::shared_ptr<Plugin>>();
  std::lock_guard lock(mutex);
  if (const auto found = loaded.find(file.path); found != loaded.end()) return found->second;
  SLUICE_TRY(std::shared_ptr<Plugin> plugin, load_once(file.name, file.path));
  loaded[file.path] = plugin;
  return plugin;
}

Error Plugin::explained(const Error& refused) const {
  const std::string_view text = refused.what();
  if (name_ != "cuda" || !flags_.empty() ||
      (text.find("PTX compilation") == std::string_view::npos &&
       text.find("libdevice") == std::string_view::npos))
    return refused;
  return Error(
      Code::kFailedPrecondition,
      base::str(
          "XLA's compiler for GPUs needs bin/ptxas and nvvm/libdevice/libdevice.10.bc of a CUDA, and neither "
          "CUDA_HOME, NVIDIA's Python packages, PATH nor /usr/local/cuda has both: run `pip install "
          "nvidia-cuda-nvcc`, or set CUDA_HOME. The compiler says: ",
          text));
}

base::Result<std::string> Plugin::probe(const PluginFile& file) {
  SLUICE_TRY(const c::PJRT_Api* const table, open_plugin(file.name, file.path));
  return base::str(table->pjrt_api_version.major_version, ".", table->pjrt_api_version.minor_version);
}

base::Result<std::shared_ptr<Plugin>> Plugin::load_once(const std::string& name, const std::string& path) {
  SLUICE_TRY(const c::PJRT_Api* const table, open_plugin(name, path));
  std::shared_ptr<Plugin> plugin(new Plugin());
  plugin->name_ = name;
  plugin->path_ = path;
  plugin->api_ = Api(table);
  auto initialize = c::make<c::PJRT_Plugin_Initialize_Args>();
  if (auto status = plugin->api_.call(initialize); !status) {
    return base::fail(status.error().code(), "the plugin ", path,
                      " cannot be initialised: ", status.error().what(),
                      name == "tpu" ? chips_finding(find_machine()) : "");
  }
  auto attributes = c::make<c::PJRT_Plugin_Attributes_Args>();
  if (plugin->api_.call(attributes)) {
    plugin->attributes_ = to_texts(attributes.attributes, attributes.num_attributes);
  }
  if (const auto folder = name == "cuda" ? find_cuda_tools(path) : std::nullopt)
    plugin->flags_.emplace("xla_gpu_cuda_data_dir", *folder);
  base::debug("plugin ", name, " (", path, "), PJRT ", plugin->api_major(), ".", plugin->api_minor());
  return plugin;
}

}  // namespace sluice::pjrt
