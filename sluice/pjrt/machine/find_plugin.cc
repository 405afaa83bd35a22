#include "sluice/pjrt/machine/find_plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/files/trusted_file.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"

namespace sluice::pjrt {
namespace fs = std::filesystem;
namespace {

struct KnownPlugin {
  const char* name;
  std::vector<std::string> files;  // below a folder of Python packages, best first
  const char* install;
};

const std::vector<KnownPlugin>& known_plugins() {
  static const auto& known = *new std::vector<KnownPlugin>{
      {"cpu", {"xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"}, "pip install xla-cpu-pjrt"},
      {"tpu", {"libtpu/libtpu.so", "libtpu.so"}, "pip install libtpu"},
      {"cuda",
       {"jax_plugins/xla_cuda13/xla_cuda_plugin.so", "jax_plugins/xla_cuda12/xla_cuda_plugin.so"},
       "pip install jax-cuda13-pjrt"},
  };
  return known;
}

const KnownPlugin* known_plugin(const std::string& name) {
  for (const KnownPlugin& plugin : known_plugins()) {
    if (plugin.name == name || (name == "gpu" && std::string_view(plugin.name) == "cuda")) return &plugin;
  }
  return nullptr;
}

bool is_path(const std::string& text) {
  return text.find('/') != std::string::npos || base::ends_with(text, ".so");
}

// Returns "cpu" for xla_cpu_pjrt.so, "tpu" for libtpu.so, "cuda" for xla_cuda_plugin.so, or the file's name.
std::string name_of_file(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  if (const size_t dot = name.find(".so"); dot != std::string::npos) name.erase(dot);
  if (name == "libtpu") return "tpu";
  if (name == "xla_cpu_pjrt" || name == "pjrt_c_api_cpu_plugin") return "cpu";
  if (name == "xla_cuda_plugin" || name == "pjrt_c_api_gpu_plugin") return "cuda";
  return base::starts_with(name, "lib") ? name.substr(3) : name;
}

std::string absolute(const std::string& path) {
  std::error_code error;
  const fs::path found = fs::canonical(path, error);
  return error ? path : found.string();
}

std::vector<fs::path> subfolders(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void add_folder(std::vector<std::string>& folders, const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return;
  const std::string path = absolute(folder.string());
  if (std::find(folders.begin(), folders.end(), path) == folders.end()) folders.push_back(path);
}

// Adds the package folders of a Python installed under `prefix`, newest Python first.
void add_python_prefix(std::vector<std::string>& folders, const fs::path& prefix) {
  for (const char* library : {"lib", "lib64"}) {
    std::vector<fs::path> versions = subfolders(prefix / library);
    std::reverse(versions.begin(), versions.end());
    for (const fs::path& version : versions) {
      if (!base::starts_with(version.filename().string(), "python3")) continue;
      add_folder(folders, version / "site-packages");
      add_folder(folders, version / "dist-packages");
    }
  }
}

// Adds a folder of dependencies, whose unpacked packages are in folders of their own or all in one.
void add_dependencies(std::vector<std::string>& folders, const fs::path& folder) {
  add_folder(folders, folder);
  for (const fs::path& package : subfolders(folder)) add_folder(folders, package);
}

fs::path folder_of_program() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path(".") : program.parent_path();
}

// Returns the folder of the file with this function: the program, or the shared library libsluice.so.
fs::path folder_of_this_library() {
  Dl_info found{};
  const auto address = reinterpret_cast<const void*>(&folder_of_program);
  if (::dladdr(address, &found) == 0 || found.dli_fname == nullptr) return ".";
  return fs::path(absolute(found.dli_fname)).parent_path();
}

void add_own_dependencies(std::vector<std::string>& folders) {
  if (const auto chosen = base::environment("SLUICE_DEPS"))
    add_dependencies(folders, base::expand_home(*chosen));
#ifdef SLUICE_DEPS_DIR
  add_dependencies(folders, SLUICE_DEPS_DIR);
#endif
  const fs::path program = folder_of_program();
  add_dependencies(folders, program / "../lib/sluice");
  add_dependencies(folders, folder_of_this_library() / "sluice");
}

void add_python_packages(std::vector<std::string>& folders) {
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const auto prefix = base::environment(variable)) add_python_prefix(folders, *prefix);
  }
  for (const std::string& entry : base::split(base::environment("PYTHONPATH").value_or(""), ':')) {
    if (!entry.empty()) add_folder(folders, entry);
  }
  // The python3 that a shell would run: of a virtual environment in $PATH, of pyenv, of a Python in /opt.
  for (const std::string& entry : base::split(base::environment("PATH").value_or(""), ':')) {
    if (entry.empty() || !base::path_exists(base::join_path(entry, "python3"))) continue;
    add_python_prefix(folders, fs::path(entry).parent_path());
    add_python_prefix(folders,
                      fs::path(absolute(base::join_path(entry, "python3"))).parent_path().parent_path());
  }
  if (const auto home = base::environment("HOME")) add_python_prefix(folders, fs::path(*home) / ".local");
  add_python_prefix(folders, "/usr/local");
  add_python_prefix(folders, "/usr");
}

base::Result<PluginFile> find_path(const std::string& given) {
  const std::string path = base::expand_home(given);
  if (base::is_directory(path)) {
    return base::fail(Code::kInvalidArgument, "expected the path of a plugin's .so file, found the folder ",
                      path);
  }
  if (!base::path_exists(path)) {
    return base::fail(
        Code::kNotFound, "there is no plugin at ", path,
        "; give the path of a PJRT plugin's .so file, or one of the names auto, cpu, tpu, cuda");
  }
  return PluginFile{name_of_file(path), absolute(path)};
}

base::Result<PluginFile> find_name(const std::string& name, const KnownPlugin& plugin,
                                   const std::vector<std::string>& folders) {
  if (const auto library = base::environment("TPU_LIBRARY_PATH"); library && name == "tpu") {
    const auto file = find_path(*library);
    if (!file) return base::fail_at(file, "TPU_LIBRARY_PATH=", *library);
    return PluginFile{name, file->path};
  }
  for (const std::string& folder : folders) {
    for (const std::string& file : plugin.files) {
      const std::string path = base::join_path(folder, file);
      if (!base::path_exists(path)) continue;
      // A plugin is code: one that was only found must not be another user's.
      if (const auto trusted = base::check_trusted(path); !trusted)
        return base::fail(Code::kPermissionDenied, "the ", name, " plugin ", path,
                          " is not loaded: ", trusted.error().what(),
                          ". If you trust it, set SLUICE_PLUGIN to its path");
      return PluginFile{plugin.name, absolute(path)};
    }
  }
  return base::fail(Code::kNotFound, "the ", name, " plugin (", plugin.files.front(),
                    ") is not installed: run `", plugin.install,
                    "`, or set SLUICE_PLUGIN to the path of a PJRT plugin's .so file. Looked in ",
                    base::join(folders, ", "));
}

}  // namespace

std::vector<std::string> plugin_search_folders() {
  std::vector<std::string> folders;
  add_own_dependencies(folders);
  for (const char* folder : {"/lib", "/usr/lib"}) add_folder(folders, folder);
  add_python_packages(folders);
  return folders;
}

base::Result<PluginFile> find_plugin(const std::string& wanted, const std::vector<std::string>& folders) {
  if (is_path(wanted)) return find_path(wanted);
  if (const KnownPlugin* plugin = known_plugin(wanted)) return find_name(plugin->name, *plugin, folders);
  std::vector<std::string> names = {"auto"};
  for (const KnownPlugin& plugin : known_plugins()) names.emplace_back(plugin.name);
  const std::string near = base::nearest(wanted, names);
  return base::fail(Code::kInvalidArgument, "unknown plugin '", wanted, "': expected ",
                    base::join(names, ", "), " or the path of a PJRT plugin's .so file",
                    near.empty() ? "" : base::str("; did you mean ", near, "?"));
}

namespace {

// The folder …/nvidia is next to the one of …/jax_plugins/xla_cuda13/xla_cuda_plugin.so.
std::vector<fs::path> nvidia_packages(const std::string& plugin_path) {
  return subfolders(fs::path(plugin_path).parent_path().parent_path().parent_path() / "nvidia");
}

}  // namespace

std::optional<std::string> find_cuda_tools(const std::string& plugin_path) {
  std::vector<fs::path> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const auto folder = base::environment(variable)) folders.emplace_back(*folder);
  for (const fs::path& package : nvidia_packages(plugin_path)) folders.push_back(package);
  for (const std::string& entry : base::split(base::environment("PATH").value_or(""), ':'))
    if (!entry.empty())
      folders.push_back(fs::path(absolute(base::join_path(entry, "ptxas"))).parent_path().parent_path());
  folders.emplace_back("/usr/local/cuda");
  for (const fs::path& folder : folders)
    if (base::path_exists((folder / "bin/ptxas").string()) &&
        base::path_exists((folder / "nvvm/libdevice/libdevice.10.bc").string()))
      return folder.string();
  return std::nullopt;
}

void preload_nvidia_libraries(const std::string& plugin_path) {
  std::vector<fs::path> folders;
  for (const fs::path& package : nvidia_packages(plugin_path)) folders.push_back(package / "lib");
  // Each library comes after the ones that it needs.
  for (const char* library :
       {"libcudart", "libnvrtc", "libnvJitLink", "libcublasLt", "libcublas", "libnccl", "libcupti",
        "libcusparse", "libcusolver", "libcufft", "libnvshmem_host", "libcudnn"}) {
    for (const fs::path& folder : folders) {
      std::error_code error;
      for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        if (!base::starts_with(entry->path().filename().string(), base::str(library, ".so."))) continue;
        if (::dlopen(entry->path().c_str(), RTLD_LAZY | RTLD_GLOBAL) == nullptr) {
          const char* reason = ::dlerror();
          base::debug("cannot preload ", entry->path().string(), ": ", reason == nullptr ? "?" : reason);
        }
      }
    }
  }
}

}  // namespace sluice::pjrt
