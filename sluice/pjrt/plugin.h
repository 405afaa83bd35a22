// A PJRT plugin: the shared library with a compiler and a run time for one kind of device.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "sluice/base/result.h"
#include "sluice/pjrt/api.h"
#include "sluice/pjrt/machine/find_plugin.h"
#include "sluice/pjrt/program/compile_options.h"

namespace sluice::pjrt {

// The oldest minor version of the C API (0.x) with every call that Sluice needs.
inline constexpr int kOldestMinor = 60;

// Loaded and initialised once for each file, and never unloaded. Threads: any.
class Plugin {
 public:
  // Loads "cpu", "tpu", "cuda", a path (it contains a '/' or ends with ".so"), or "auto" (choose_plugin.h);
  // "" means $SLUICE_PLUGIN, which takes the same values, or "auto". Errors say what was looked for, where,
  // and what to install.
  static base::Result<std::shared_ptr<Plugin>> load(const std::string& name_or_path = "");
  static base::Result<std::shared_ptr<Plugin>> load(const PluginFile& file);
  // Returns the plugin's version of the C API, "0.116", without initialising it: no chip is taken. Errors are
  // the same as for load().
  static base::Result<std::string> probe(const PluginFile& file);

  // "cpu", "tpu", "cuda", or, for any other file, its name without "lib" and ".so".
  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }
  int api_major() const { return api_.table()->pjrt_api_version.major_version; }
  int api_minor() const { return api_.table()->pjrt_api_version.minor_version; }
  // The plugin's attributes, for example "stablehlo_current_version" = "1.13.3".
  const std::map<std::string, std::string>& attributes() const { return attributes_; }
  const Api& api() const { return api_; }
  // The flags that its compiler gets with every program: for "cuda" the folder of find_cuda_tools().
  const XlaFlags& flags() const { return flags_; }
  // Returns its compiler's error about a program, with advice if a tool of CUDA's is missing.
  Error explained(const Error& refused) const;

 private:
  Plugin() = default;
  static base::Result<std::shared_ptr<Plugin>> load_once(const std::string& name, const std::string& path);

  std::string name_, path_;
  Api api_;
  std::map<std::string, std::string> attributes_;
  XlaFlags flags_;
};

}  // namespace sluice::pjrt
