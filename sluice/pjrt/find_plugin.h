// Where plugins are found.
#pragma once

#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::pjrt {

struct PluginFile {
  std::string name;  // "cpu", "tpu", "cuda", or the file's own
  std::string path;  // absolute
};

// The file for a name or path as Plugin::load takes them. A name is looked for in the project's own
// dependencies
// ($SLUICE_DEPS, the build's .deps, ../lib/sluice and ../../.deps beside the program), then in the folders of
// Python packages ($VIRTUAL_ENV, $CONDA_PREFIX, $PYTHONPATH, the home of the python3 in $PATH, ~/.local,
// /usr/local, /usr); for "tpu" $TPU_LIBRARY_PATH comes first. Python is not run.
base::Result<PluginFile> find_plugin(const std::string& name_or_path);
// The same, with the folders that a name is looked for in.
base::Result<PluginFile> find_plugin(const std::string& name_or_path,
                                     const std::vector<std::string>& folders);

// The folders that find_plugin looks through for a name, in order.
std::vector<std::string> plugin_search_folders();

// The CUDA plugin needs NVIDIA's libraries, which come as Python packages beside it (…/nvidia/*/lib): loads
// them so that it finds them. Does nothing where that folder is not.
void preload_nvidia_libraries(const std::string& plugin_path);

}  // namespace sluice::pjrt
