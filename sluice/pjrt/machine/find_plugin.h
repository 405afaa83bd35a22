// Finds plugins.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::pjrt {

struct PluginFile {
  std::string name;  // "cpu", "tpu", "cuda", or the file's own
  std::string path;  // absolute
};

// Returns the file for "cpu", "tpu", "cuda" or a path. Names are looked for in the folders; for "tpu"
// $TPU_LIBRARY_PATH comes first. A file found by name must be writable only by this user and root
// (base/files/trusted_file.h), else kPermissionDenied.
base::Result<PluginFile> find_plugin(const std::string& wanted, const std::vector<std::string>& folders);

// Returns the folders that may contain plugins, in order: the project's own dependencies ($SLUICE_DEPS, the
// build's .deps, ../lib/sluice next to the program, sluice next to libsluice.so); /lib and /usr/lib, where
// TPU machines have libtpu.so; the folders of Python packages ($VIRTUAL_ENV, $CONDA_PREFIX, $PYTHONPATH, the
// home of the python3 in $PATH, ~/.local, /usr/local, /usr). Python is not run.
std::vector<std::string> plugin_search_folders();

// Loads NVIDIA's libraries, which the CUDA plugin needs and which come as Python packages next to it
// (…/nvidia/*/lib), so that it finds them. Does nothing if that folder does not exist.
void preload_nvidia_libraries(const std::string& plugin_path);
// Returns the CUDA folder with what XLA's compiler for GPUs reads and runs: nvvm/libdevice/libdevice.10.bc
// and bin/ptxas. Looks in $CUDA_HOME, $CUDA_PATH, the packages next to the plugin (nvidia-cuda-nvcc has
// both), the CUDA whose ptxas is in $PATH, and /usr/local/cuda. nullopt if there is none.
std::optional<std::string> find_cuda_tools(const std::string& plugin_path);

}  // namespace sluice::pjrt
